"""Graphs made of other graphs: functions, splicing, Constant nodes."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array, to_array
from ut_xbuilder.graph_checks import (
    check_stores,
    initializer_names,
    op_types,
    parse,
    run_onnxruntime,
)

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions, OptionError


def inner_builder(bias=1.0, local="t"):
    builder = GraphBuilder(18)
    builder.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    builder.make_initializer("w", np.array([[1, 2], [3, 4]], dtype=np.float32))
    builder.make_initializer("b", np.array([bias], dtype=np.float32))
    builder.make_node("MatMul", ["a", "w"], [local])
    builder.make_node("Add", [local, "b"], ["r"])
    builder.make_tensor_output("r", TensorProto.FLOAT, ("n", 2))
    return builder


def outer_builder():
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 2))
    return builder


def run(onx, x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onx).run(None, {"x": x})[0]


X = np.array([[1, 2], [3, -4], [5, 6]], dtype=np.float32)
EXPECTED = X @ np.array([[1, 2], [3, 4]], dtype=np.float32) + 1


def options(**kwargs):
    return FunctionOptions(export_as_function=True, name="Linear", domain="d", **kwargs)


@pytest.mark.parametrize(
    "kwargs,n_inputs,n_constants",
    [
        ({}, 1, 2),
        ({"move_initializer_to_constant": True}, 1, 2),
        ({"return_initializer": True}, 3, 0),
        ({"return_initializer": True, "move_initializer_to_constant": True}, 1, 2),
        (
            {
                "return_initializer": True,
                "move_initializer_to_constant": True,
                "external_threshold": 10,
            },
            2,
            1,
        ),
        ({"external_threshold": 10}, 2, 1),
    ],
)
def test_make_local_function(kwargs, n_inputs, n_constants):
    builder = outer_builder()
    added, key = builder.make_local_function(
        inner_builder(), options(**kwargs), metadata_props={"source": "test"}
    )
    assert key == ("d", "Linear")
    assert len(added) == n_inputs - 1
    assert all(name in builder.initializers_dict for name in added)
    function = builder.functions[key]
    assert len(function.input) == n_inputs
    assert op_types(function).count("Constant") == n_constants
    assert function.metadata_props[0].value == "test"
    builder.make_node(key[1], ["x", *added], ["y"], domain=key[0])
    builder.make_tensor_output("y", TensorProto.FLOAT, ("batch", 2))
    kept = builder.to_onnx(inline=False, optimize=False)
    np.testing.assert_array_equal(run(kept, X), EXPECTED)
    onx = builder.to_onnx()
    assert op_types(onx)[-2:] == ["MatMul", "Add"]
    np.testing.assert_array_equal(run(onx, X), EXPECTED)


def test_make_local_function_names():
    builder = outer_builder()
    with pytest.raises(OptionError, match="export_as_function"):
        builder.make_local_function(inner_builder(), FunctionOptions())
    builder.make_local_function(inner_builder(), options())
    with pytest.raises(OptionError, match="An equal function"):
        builder.make_local_function(inner_builder(), options())
    with pytest.raises(OptionError, match="A different function"):
        builder.make_local_function(inner_builder(2.0), options(merge_allowed=True))
    _, key = builder.make_local_function(inner_builder(), options(merge_allowed=True))
    assert key == ("d", "Linear")
    both = options(merge_allowed=True, rename_allowed=True)
    for _ in range(2):
        _, key = builder.make_local_function(inner_builder(2.0), both)
        assert key == ("d", "Linear_2")
    assert sorted(builder.functions) == [("d", "Linear"), ("d", "Linear_2")]
    assert builder.functions["d", "Linear_2"].name == "Linear_2"


def test_functions_called_by_a_function_come_with_it():
    middle = GraphBuilder(18)
    middle.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    _, key = middle.make_local_function(inner_builder(), options())
    middle.make_node(key[1], ["a"], ["c"], domain=key[0])
    middle.make_node("Neg", ["c"], ["r"])
    middle.make_tensor_output("r", TensorProto.FLOAT, ("n", 2))
    builder = outer_builder()
    # another function of the same name is there
    builder.make_local_function(inner_builder(5.0), options())
    opts = FunctionOptions(True, name="Middle", domain="d", rename_allowed=True)
    _, key = builder.make_local_function(middle, opts)
    builder.make_node(key[1], ["x"], ["y"], domain="d")
    builder.make_tensor_output("y", TensorProto.FLOAT, ("batch", 2))
    assert sorted(builder.functions) == [("d", "Linear"), ("d", "Linear_2"), ("d", "Middle")]
    kept = builder.to_onnx(inline=False, optimize=False)
    np.testing.assert_array_equal(run(kept, X), -EXPECTED)
    np.testing.assert_array_equal(run(builder.to_onnx(), X), -EXPECTED)


@pytest.mark.parametrize("prefix,forced", [("", None), ("p_", None), ("", "q_")])
def test_make_nodes(prefix, forced):
    builder = outer_builder()
    builder.make_initializer("w", np.array([9], dtype=np.float32))
    inner = inner_builder()
    result = builder.make_nodes(inner, ["x"], ["y"], prefix=prefix, force_rename_with_prefix=forced)
    assert result == "y"
    builder.make_tensor_output("y")
    assert builder.get_shape("y") == ("batch", 2)
    check_stores(builder)
    onx = builder.to_onnx()
    np.testing.assert_array_equal(run(onx, X), EXPECTED)
    expected = {"": ["b", "w1"], "p_": ["b", "p_w"]}[prefix] if forced is None else ["q_b", "q_w"]
    assert initializer_names(onx) == expected


def test_make_nodes_twice_and_as_a_function():
    builder = outer_builder()
    builder.make_nodes(inner_builder(), ["x"], ["u"])
    opts = options(move_initializer_to_constant=True)
    builder.make_nodes(inner_builder(), ["u"], ["y"], function_options=opts, optimize=True)
    assert builder.get_type("y") == TensorProto.FLOAT
    builder.make_tensor_output("y")
    expected = EXPECTED @ np.array([[1, 2], [3, 4]], dtype=np.float32) + 1
    kept = builder.to_onnx(inline=False, optimize=False)
    assert op_types(kept) == ["MatMul", "Add", "Linear"]
    np.testing.assert_array_equal(run(kept, X), expected)
    np.testing.assert_array_equal(run(builder.to_onnx(), X), expected)


def test_make_nodes_refuses():
    builder = outer_builder()
    with pytest.raises(OptionError, match="1 inputs"):
        builder.make_nodes(inner_builder(), ["x", "x"], ["y"])
    with pytest.raises(OptionError, match="1 outputs"):
        builder.make_nodes(inner_builder(), ["x"], ["y", "z"])
    with pytest.raises(OptionError, match="'unknown' does not exist"):
        builder.make_nodes(inner_builder(), ["unknown"], ["y"])
    with pytest.raises(OptionError, match="exists already"):
        builder.make_nodes(inner_builder(), ["x"], ["x"])
    other = GraphBuilder(17)
    other.make_tensor_input("a", 1, (2,))
    other.make_node("Neg", ["a"], ["b"])
    other.make_tensor_output("b")
    with pytest.raises(OptionError, match="version 18 in this graph and 17"):
        builder.make_nodes(other, ["x"], ["y"])


def test_make_nodes_with_an_output_that_is_an_input():
    inner = GraphBuilder(18)
    inner.make_tensor_input("a", 1, ("n", 2))
    inner.make_tensor_input("d", 1, (1,), default_initializer=np.array([3], dtype=np.float32))
    inner.make_node("Add", ["a", "d"], ["r"])
    inner.make_tensor_output(["a", "r"])
    builder = outer_builder()
    assert builder.make_nodes(inner, ["x", ""], ["y", "z"]) == ["y", "z"]
    builder.make_tensor_output("z")
    np.testing.assert_array_equal(run(builder.to_onnx(), X), X + 3)


def test_make_nodes_brings_functions():
    inner = GraphBuilder(18)
    inner.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    inner.make_local_function(inner_builder(), options())
    inner.make_node("Linear", ["a"], ["c"], domain="d")
    inner.make_tensor_output("c", TensorProto.FLOAT, ("n", 2))
    builder = outer_builder()
    builder.make_local_function(inner_builder(7.0), options())
    builder.make_nodes(inner, ["x"], ["y"])
    builder.make_tensor_output("y")
    assert builder.store.nodes[0].op_type == "Linear_2"
    np.testing.assert_array_equal(run(builder.to_onnx(), X), EXPECTED)


def test_move_initializers_to_constant():
    builder = inner_builder()
    assert builder.move_initializers_to_constant("w") == 1
    assert builder.move_initializers_to_constant("", threshold=4) == 0
    assert builder.move_initializers_to_constant(full_parameter_name=False) == 1
    check_stores(builder)
    onx = builder.to_onnx(optimize=False)
    assert op_types(onx) == ["Constant", "Constant", "MatMul", "Add"]
    assert not onx.graph.initializer
    from onnx.reference import ReferenceEvaluator

    got = ReferenceEvaluator(onx).run(None, {"a": X})[0]
    np.testing.assert_array_equal(got, EXPECTED)


def sparse_model(opset=18):
    model = parse("agraph (float[n,4] X) => (float[n,4] Y) { Y = Add(X, W) }", opset)
    values = from_array(np.array([1, 2, 3], dtype=np.float32), "W")
    indices = from_array(np.array([0, 2, 3], dtype=np.int64), "W_i")
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, indices, [4]))
    return model


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("function", [True, False])
def test_make_nodes_with_a_sparse_initializer(function, inline):
    options = FunctionOptions(export_as_function=True, name="f", domain="d") if function else None
    g = GraphBuilder(18)
    g.make_tensor_input("X", TensorProto.FLOAT, ("n", 4))
    g.make_initializer("W", np.full(4, 10, dtype=np.float32))
    g.make_nodes(GraphBuilder(sparse_model()), ["X"], ["T"], "p_", options)
    g.make_node("Add", ["T", "W"], ["Y"])
    g.make_tensor_output("Y", TensorProto.FLOAT, ("n", 4), indexed=False)
    x = np.ones((2, 4), dtype=np.float32)
    (found,) = run_onnxruntime(g.to_onnx(inline=inline), {"X": x})
    np.testing.assert_array_equal(found, np.array([[12, 11, 13, 14]] * 2))


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_values_of_a_function_become_dense(indices):
    model = sparse_model()
    sparse = model.graph.sparse_initializer[0]
    sparse.values.CopyFrom(from_array(np.array([7, 8], dtype=np.float32), "W"))
    sparse.indices.CopyFrom(from_array(np.array(indices, dtype=np.int64), "W_i"))
    sparse.dims[:] = [2, 3]
    options = FunctionOptions(export_as_function=True, name="f", domain="d")
    proto = GraphBuilder(model).to_onnx(optimize=False, function_options=options)
    assert [n.op_type for n in proto.node] == ["Constant", "Add"]
    assert to_array(proto.node[0].attribute[0].t).tolist() == [[0, 7, 0], [0, 0, 8]]
