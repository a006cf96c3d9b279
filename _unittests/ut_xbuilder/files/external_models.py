"""Models whose tensors are in files."""

from __future__ import annotations

import onnx
import onnx.helper as oh
from onnx import TensorProto


def make_external(name="W", dims=(2, 3), data_type=TensorProto.FLOAT, **entries):
    tensor = TensorProto(name=name, dims=dims, data_type=data_type)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def make_model(*tensors, **more):
    graph = oh.make_graph(
        [oh.make_node("Identity", [tensors[0].name if tensors else "X"], ["Y"])],
        "g",
        [],
        [oh.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        list(tensors),
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], **more)


def make_everywhere():
    """A model with one external tensor in every place a tensor can be."""

    def place(name):
        return make_external(name, (1,), offset=0, length=4)

    sub = oh.make_graph(
        [oh.make_node("Constant", [], ["c1"], value=place("subgraph_constant"))],
        "sub",
        [],
        [oh.make_tensor_value_info("c1", TensorProto.FLOAT, [1])],
        [place("subgraph_initializer")],
    )
    sparse = onnx.SparseTensorProto(dims=[4])
    sparse.values.CopyFrom(place("sparse_values"))
    sparse.indices.CopyFrom(make_external("sparse_indices", (1,), TensorProto.INT64, offset=8))
    liar = onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, f=1)
    liar.t.CopyFrom(place("hidden_by_the_type"))
    constant = oh.make_node("Constant", [], ["c3"])
    constant.attribute.append(liar)
    custom = oh.make_node("Custom", [], ["c4"], domain="test")
    custom.attribute.add(
        name="many", type=onnx.AttributeProto.TENSORS, tensors=[place("list_of_tensors")]
    )
    custom.attribute.add(name="subs", type=onnx.AttributeProto.GRAPHS, graphs=[sub])
    custom.attribute.add(
        name="sparses", type=onnx.AttributeProto.SPARSE_TENSORS, sparse_tensors=[sparse]
    )
    model = make_model(place("initializer"))
    model.graph.node.extend(
        [
            oh.make_node("Constant", [], ["c2"], name="n2", value=place("constant")),
            oh.make_node("Constant", [], ["c5"], sparse_value=sparse),
            oh.make_node("If", ["cond"], ["r"], then_branch=sub, else_branch=sub),
            constant,
            custom,
        ]
    )
    model.graph.sparse_initializer.append(sparse)
    function = oh.make_function(
        "test",
        "F",
        [],
        ["o"],
        [oh.make_node("Constant", [], ["o"], value=place("function_constant"))],
        [oh.make_opsetid("", 18)],
    )
    function.attribute_proto.append(oh.make_attribute("d", place("function_default")))
    model.functions.append(function)
    training = model.training_info.add()
    training.initialization.initializer.append(place("training_initialization"))
    training.algorithm.initializer.append(place("training_algorithm"))
    return model


EXPECTED_PLACES = {
    "initializer": 1,
    "constant": 1,
    "sparse_values": 3,
    "sparse_indices": 3,
    "subgraph_constant": 3,
    "subgraph_initializer": 3,
    "hidden_by_the_type": 1,
    "list_of_tensors": 1,
    "function_constant": 1,
    "function_default": 1,
    "training_initialization": 1,
    "training_algorithm": 1,
}
