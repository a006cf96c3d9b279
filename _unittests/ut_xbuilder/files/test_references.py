"""Tests of xbuilder.files.references."""

from __future__ import annotations

import sys

import onnx.helper as oh
import pytest
from onnx import ModelProto, TensorProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import ExternalDataError, OptionError
from xbuilder.files.references import check_references, proto_bytes


def products(count, size):
    """A chain of products by matrices of zeros, all in the proto."""
    model = oh.make_model(
        oh.make_graph(
            [oh.make_node("Identity", ["x"], ["m0"])]
            + [oh.make_node("MatMul", [f"m{i}", f"w{i}"], [f"m{i + 1}"]) for i in range(count)],
            "products",
            [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", size])],
            [oh.make_tensor_value_info(f"m{count}", TensorProto.FLOAT, ["batch", size])],
        ),
        opset_imports=[oh.make_opsetid("", 18)],
        ir_version=9,
    )
    for i in range(count):
        tensor = model.graph.initializer.add()
        tensor.name, tensor.data_type = f"w{i}", TensorProto.FLOAT
        tensor.dims.extend([size, size])
        tensor.raw_data = bytes(4 * size * size)
    return model


def _external(location: str) -> TensorProto:
    tensor = TensorProto(name="w0", data_type=TensorProto.FLOAT, dims=[2, 2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def _in_initializer(model: ModelProto, tensor: TensorProto) -> None:
    model.graph.initializer[0].CopyFrom(tensor)


def _in_sparse_initializer(model: ModelProto, tensor: TensorProto) -> None:
    model.graph.sparse_initializer.add().values.CopyFrom(tensor)


def _in_attribute(model: ModelProto, tensor: TensorProto) -> None:
    model.graph.node.append(oh.make_node("Constant", [], ["c"], value=tensor))


BIG = oh.make_tensor("t", TensorProto.FLOAT, [600, 600], bytes(4 * 600 * 600), raw=True)


def _in_another_attribute(model: ModelProto, tensor: TensorProto) -> None:
    node = oh.make_node("Constant", [], ["c"], value=BIG)
    model.graph.node.append(node)
    model.graph.node[-1].attribute.append(oh.make_attribute("more", tensor))


def _beside_the_tensor(model: ModelProto, tensor: TensorProto) -> None:
    """The attribute says it is a tensor, and it holds a list of them too."""
    node = oh.make_node("Constant", [], ["c"], value=BIG)
    node.attribute[0].tensors.append(tensor)
    model.graph.node.append(node)


def _in_body(model: ModelProto, tensor: TensorProto) -> None:
    body = oh.make_graph([], "body", [], [], initializer=[tensor])
    model.graph.node.append(oh.make_node("If", ["x"], ["c"], then_branch=body, else_branch=body))


def _in_function(model: ModelProto, tensor: TensorProto) -> None:
    node = oh.make_node("Constant", [], ["c"], value=tensor)
    model.functions.append(oh.make_function("f", "F", [], ["c"], [node], []))


def _in_default_value(model: ModelProto, tensor: TensorProto) -> None:
    model.functions.append(oh.make_function("f", "F", [], [], [], []))
    model.functions[0].attribute_proto.append(oh.make_attribute("value", tensor))


def _in_training(model: ModelProto, tensor: TensorProto) -> None:
    model.training_info.add().algorithm.initializer.append(tensor)


@pytest.mark.parametrize(
    "place",
    [
        _in_initializer,
        _in_sparse_initializer,
        _in_attribute,
        _in_another_attribute,
        _beside_the_tensor,
        _in_body,
        _in_function,
        _in_default_value,
        _in_training,
    ],
)
@pytest.mark.parametrize("size", [2, 400], ids=["small weights", "big weights"])
@pytest.mark.parametrize("location", ["/etc/passwd", "../w.data"])
def test_a_reference_out_of_the_folder(location, place, size):
    model = products(2, size)
    place(model, _external("w.data"))
    check_references(model)
    model = products(2, size)
    place(model, _external(location))
    with pytest.raises(ExternalDataError, match="w0"):
        check_references(model)


@pytest.mark.parametrize("place", [_in_attribute, _in_another_attribute, _beside_the_tensor])
def test_big_weights_are_constants(place):
    model = products(0, 2)
    model.graph.node.append(oh.make_node("Constant", [], ["weight"], value=BIG))
    model.graph.node.append(oh.make_node("Constant", [], ["nothing"]))
    model.graph.node.append(oh.make_node("Constant", [], ["number"], value_float=1.0))
    check_references(model)
    place(model, _external("/etc/passwd"))
    with pytest.raises(ExternalDataError, match="w0"):
        check_references(model)


def test_the_size_of_a_proto():
    model = products(2, 8)
    assert proto_bytes(model) == len(model.SerializeToString())
    assert proto_bytes(ModelProto()) == 0


@pytest.mark.slow
def test_a_model_of_more_than_two_gigabytes_in_memory():
    model = products(9, 8000)
    assert proto_bytes(model) == sys.maxsize
    builder = GraphBuilder(
        model, optimization_options=OptimizationOptions(patterns="Identity", constant_fusing=False)
    )
    container = builder.to_onnx(optimize=True, large_model=True)
    assert [n.op_type for n in container.proto.graph.node] == ["MatMul"] * 9
    assert container.nbytes() == 9 * 4 * 8000**2
    with pytest.raises(OptionError, match="large_model=True"):
        builder.to_onnx(optimize=False)
