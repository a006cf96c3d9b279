"""A builder becomes a proto: what the file holds survives."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto
from onnx.numpy_helper import to_array
from ut_xbuilder.graph_checks import op_types, optimized, parse, run_onnxruntime

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions, OptionError
from xbuilder.errors import InvalidModelError
from xbuilder.operators.opsets import newest_opset


def full_model():
    model = parse(
        """
        agraph (float[batch,3] x) => (float[batch,3] y)
        <float[3] w = {1.0, 2.0, 3.0}, float[batch,3] t, float[batch,3] gone>
        { t = Add(x, w) i = Identity(t) y = Neg(i) gone = Exp(i) }
        """
    )
    model.producer_name, model.producer_version = "me", "1.2"
    model.domain, model.model_version, model.doc_string = "d", 7, "doc"
    model.graph.name, model.graph.doc_string = "name", "graph doc"
    model.graph.input[0].doc_string = "input doc"
    model.graph.value_info[0].doc_string = "kept"
    model.metadata_props.add(key="k", value="v")
    model.graph.metadata_props.add(key="gk", value="gv")
    for name in ("t", "gone"):
        annotation = model.graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    return model


def test_everything_around_the_graph_is_kept():
    model = full_model()
    after = optimized(model)
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        assert getattr(after, field) == getattr(model, field)
    assert after.ir_version == model.ir_version
    assert list(after.metadata_props) == list(model.metadata_props)
    assert after.graph.name == "name" and after.graph.doc_string == "graph doc"
    assert list(after.graph.metadata_props) == list(model.graph.metadata_props)
    assert list(after.graph.input) == list(model.graph.input)
    assert list(after.graph.output) == list(model.graph.output)
    # the value_info and the annotation of what is still there
    assert [v.name for v in after.graph.value_info] == ["t"]
    assert after.graph.value_info[0] == model.graph.value_info[0]
    assert [a.tensor_name for a in after.graph.quantization_annotation] == ["t"]


def test_a_wrong_value_info_is_corrected():
    model = full_model()
    model.graph.value_info[0].type.tensor_type.shape.dim.add().dim_value = 8
    with pytest.warns(UserWarning, match="'t'"):
        builder = GraphBuilder(model, infer_shapes_options=True)
    after = builder.to_onnx(optimize=False)
    dims = after.graph.value_info[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["batch", 3]


def build(**kwargs):
    builder = GraphBuilder(
        18, optimization_options=OptimizationOptions(patterns=None, constant_size=0), **kwargs
    )
    builder.make_tensor_input("x", None if kwargs.get("as_function") else 1, ("n",))
    builder.make_initializer("w", np.arange(3, dtype=np.float32))
    builder.make_initializer("big", np.zeros(1000, dtype=np.float32), external=True)
    builder.op.Add("x", "w", outputs=["a"])
    builder.op.Concat("a", "big", axis=0, outputs=["b"])
    builder.make_tensor_output(["a", "b"])
    return builder


def test_kinds_of_protos():
    onx = build().to_onnx()
    assert isinstance(onx, ModelProto) and onx.producer_name == "xoptim"
    onnx.checker.check_model(onx)
    graph = build().to_onnx(as_graph_proto=True)
    assert isinstance(graph, GraphProto) and len(graph.initializer) == 2
    function = build(as_function=True).to_onnx()
    assert isinstance(function, FunctionProto)
    assert op_types(function) == ["Constant", "Constant", "Add", "Concat"]
    options = FunctionOptions(export_as_function=True, name="F", domain="dom")
    function = build().to_onnx(function_options=options)
    assert (function.domain, function.name) == ("dom", "F")
    with pytest.raises(OptionError, match="as_graph_proto"):
        build().to_onnx(as_graph_proto=True, large_model=True)
    with pytest.raises(OptionError, match="as_graph_proto"):
        build().to_onnx(as_graph_proto=True, function_options=options)


def test_a_function_runs():
    from onnx.reference import ReferenceEvaluator

    options = FunctionOptions(export_as_function=True, name="F", domain="dom")
    function = build().to_onnx(function_options=options)
    got = ReferenceEvaluator(function).run(None, {"x": np.ones(3, dtype=np.float32)}, {})
    assert got[0].tolist() == [1, 2, 3] and got[1].shape == (1003,)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["w", "big"]),
        ({"move_initializer_to_constant": True, "external_threshold": 100}, ["big"]),
        ({"move_initializer_to_constant": True}, []),
    ],
)
def test_a_function_with_its_weights(options, expected):
    builder = build()
    inner = GraphBuilder(18)
    inner.make_tensor_input("u", TensorProto.FLOAT, ("n",))
    inner.op.Neg("u", outputs=["v"])
    inner.make_tensor_output("v")
    builder.make_nodes(inner, ["a"], ["c"], function_options=FunctionOptions(name="G"))
    builder.make_tensor_output("c")
    asked = FunctionOptions(name="F", domain="*", return_initializer=True, **options)
    found = builder.to_onnx(function_options=asked, inline=False)
    assert found["initializers_name"] == expected == list(found["initializers_dict"])
    proto, renaming = found["proto"], found["initializers_renaming"]
    assert list(proto.input) == ["x", *expected] and proto.domain == "local_function"
    assert [f.name for f in found["functions"]] == ["G"]
    call = oh.make_node(
        "F", ["x", *map(renaming.get, expected)], ["a", "b", "c"], domain=proto.domain
    )
    info = oh.make_tensor_value_info
    model = oh.make_model(
        oh.make_graph(
            [call],
            "g",
            [info("x", 1, [3])],
            [info(n, 1, None) for n in "abc"],
            list(found["initializers_dict"].values()),
        ),
        functions=[*found["functions"], proto],
        opset_imports=[oh.make_opsetid("", 18), oh.make_opsetid(proto.domain, 1)],
        ir_version=9,
    )
    a, b, c = run_onnxruntime(model, {"x": np.ones(3, dtype=np.float32)})
    assert a.tolist() == [1, 2, 3] and b.shape == (1003,) and c.tolist() == [-1, -2, -3]


@pytest.mark.parametrize("threshold,stored", [(1024, ["big"]), (4, ["big", "w"]), (10**6, [])])
def test_container(tmp_path, threshold, stored):
    builder = build()
    before = dict(builder.initializers_dict)
    container = builder.to_onnx(large_model=True, external_threshold=threshold)
    path = tmp_path / "m.onnx"
    container.save(str(path), size_threshold=threshold)
    proto = onnx.load(str(path), load_external_data=False)
    external = sorted(
        i.name for i in proto.graph.initializer if i.data_location == TensorProto.EXTERNAL
    )
    assert external == stored
    onnx.checker.check_model(str(path))
    loaded = GraphBuilder(path)
    np.testing.assert_array_equal(loaded.get_constant("big"), before["big"])
    again = loaded.to_onnx()
    assert {i.name: to_array(i).sum() for i in again.graph.initializer} == {"w": 3, "big": 0}


def test_report_and_masks():
    onx, statistics = build().to_onnx(return_optimize_report=True)
    assert isinstance(onx, ModelProto) and isinstance(statistics, list)
    assert all({"pattern", "time_in"} <= set(row) for row in statistics)
    onx, statistics = build().to_onnx(optimize=False, return_optimize_report=True)
    assert statistics == []
    builder = build()
    onx = builder.to_onnx(mask_outputs=[True, False])
    assert [o.name for o in onx.graph.output] == ["a"]
    assert op_types(onx) == ["Add"] and [i.name for i in onx.graph.initializer] == ["w"]
    with pytest.raises(OptionError, match="1 values for 2 outputs"):
        build().to_onnx(mask_outputs=[True])
    options = FunctionOptions(export_as_function=True, name="F", domain="dom")
    function, statistics = build().to_onnx(function_options=options, return_optimize_report=True)
    assert isinstance(function, FunctionProto) and statistics


def test_expected_names():
    builder = build(input_names=["x"], output_names=["a", "b"])
    builder.to_onnx()
    builder = build(output_names=["b", "a"])
    with pytest.raises(OptionError, match="output names"):
        builder.to_onnx()


@pytest.mark.parametrize("opset", range(11, newest_opset() + 1))
def test_versions(opset):
    builder = GraphBuilder(opset)
    builder.make_tensor_input("x", 1, ("n",))
    builder.op.Neg("x", outputs=["y"])
    builder.make_tensor_output("y")
    onx = builder.to_onnx()
    onnx.checker.check_model(onx)
    assert onx.opset_import[0].version == opset
    assert GraphBuilder(opset, ir_version=9).effective_ir_version == 9


def test_generated_dimensions_are_not_written():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("n",))
    builder.op.NonZero("x", outputs=["y"])
    builder.make_tensor_output("y")
    dims = builder.to_onnx().graph.output[0].type.tensor_type.shape.dim
    assert dims[0].dim_value == 1 and dims[1].WhichOneof("value") is None


@pytest.mark.filterwarnings("ignore:The model declares something else")
def test_an_output_whose_declared_rank_is_wrong():
    """onnx.checker wants a shape: the rank is known, the dimensions are not."""
    model = parse(
        "agraph (float[3,N] x, int64[2] axes) => (float[3,1,1] y) { y = Unsqueeze(x, axes) }"
    )
    onx = GraphBuilder(model, infer_shapes_options=True).to_onnx()
    onnx.checker.check_model(onx)
    assert len(onx.graph.output[0].type.tensor_type.shape.dim) == 4


@pytest.mark.filterwarnings("ignore:The model declares something else")
def test_an_output_whose_declared_type_is_wrong():
    """Nothing is known of its rank: what was declared of it stays, onnx.checker wants a shape."""
    model = parse("agraph (float[N] x, int64[L] s) => (double[3,K] y) { y = Reshape(x, s) }")
    onx = GraphBuilder(model, infer_shapes_options=True).to_onnx()
    onnx.checker.check_model(onx)
    tensor = onx.graph.output[0].type.tensor_type
    assert tensor.elem_type == TensorProto.FLOAT
    assert [d.dim_value or d.dim_param for d in tensor.shape.dim] == [3, "K"]


def test_an_initializer_that_holds_nothing_of_what_it_declares():
    tensor = oh.make_tensor("s", TensorProto.INT64, [1], [2])
    tensor.dims[0] = 2**40
    node = oh.make_node("ConstantOfShape", ["s"], ["y"])
    output = oh.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = oh.make_model(oh.make_graph([node], "g", [], [output], [tensor]))
    with pytest.raises(InvalidModelError, match=f"'s' declares {2**43} bytes and holds 1"):
        GraphBuilder(model, infer_shapes_options=True).to_onnx()


def with_size(shape, name="n", kind=TensorProto.INT64) -> ModelProto:
    """A model whose first input says that it holds the dimension `name`."""
    g = GraphBuilder(18)
    g.make_tensor_input("size", kind, shape)
    g.make_tensor_input("x", TensorProto.FLOAT, ("n", 3))
    count = g.op.Cast("size", to=TensorProto.INT64)
    count = g.op.Reshape(count, np.array([], dtype=np.int64))
    rows = g.op.Range(np.array(0, np.int64), count, np.array(1, np.int64))
    g.op.Gather("x", rows, axis=0, outputs=["y"])
    g.make_tensor_output("y", TensorProto.FLOAT, (None, 3))
    model = g.to_onnx(optimize=False)
    model.graph.input[0].metadata_props.add(key="xoptim.dimension", value=name)
    return model


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_file_says_which_input_is_a_dimension(shape):
    """The use of an input is still known once the model was a file."""
    g = GraphBuilder(18)
    g.make_tensor_input("n", TensorProto.INT64, shape, is_dimension=True)
    g.make_tensor_input("x", TensorProto.FLOAT, ("n", 3))
    g.op.Neg("x", outputs=["y"])
    g.make_tensor_output("y", TensorProto.FLOAT, ("n", 3))
    first = g.to_onnx(optimize=False)
    onnx.checker.check_model(first, full_check=True)
    for proto in (first, GraphBuilder(first).to_onnx()):
        [(key, value)] = [(p.key, p.value) for p in proto.graph.input[0].metadata_props]
        assert (key, value) == ("xoptim.dimension", "n") and not proto.graph.input[1].metadata_props
        assert GraphBuilder(proto).value_as_shape("n") == (("n",) if shape else "n")

    model = with_size(shape)
    assert op_types(GraphBuilder(model).to_onnx()) == ["Identity"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    feeds = {"size": np.full(shape, 2, dtype=np.int64), "x": x}
    assert run_onnxruntime(model, feeds)[0].tolist() == x.tolist()


@pytest.mark.parametrize(
    "shape, name, kind",
    [((), "m", 7), ((2,), "n", 7), (("k",), "n", 7), ((), "n", 6), ((), "", 7)],
    ids=["another dimension", "two numbers", "any length", "another type", "no name"],
)
def test_an_input_that_is_no_dimension(shape, name, kind):
    model = with_size(shape, name, kind)
    assert "Gather" in op_types(GraphBuilder(model).to_onnx())
    positive = OptimizationOptions(positive_dims=["m"])
    if name == "m":
        GraphBuilder(model, optimization_options=positive)
    else:
        with pytest.raises(OptionError, match="names 'm'"):
            GraphBuilder(model, optimization_options=positive)
