"""Evaluation of one node: same results as onnxruntime, or nothing."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array

from xbuilder.constants import evaluation
from xbuilder.constants.evaluation import (
    _KERNELS,
    constant_node_value,
    evaluate_node,
    predicted_bytes,
)
from xbuilder.tensors import halves

I64 = np.int64
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def evaluate(op_type, values, opset=18, **attributes):
    names = ["" if v is None else f"i{i}" for i, v in enumerate(values)]
    node = oh.make_node(op_type, names, ["y"], **attributes)
    values = [None if v is None else np.asarray(v) for v in values]
    answer = evaluate_node(node, values, {"": opset})
    return None if answer is None else answer["y"]


#: roundings, overflows, the smallest numbers, what is not a number
FLOATS = np.array([[1 / 3, -0.0, 1e30, 3e38], [np.nan, np.inf, 1e-40, -7e-8]], dtype=np.float32)
OTHERS = np.array([3e38, 1 / 7, 0.0, -1e-30], dtype=np.float32)

CASES = [
    ("Add", [np.array([1, 2]), np.array([[3], [2**63 - 1]])], {}),
    ("Add", [FLOATS, OTHERS], {}),
    ("And", [np.array([[True], [False]]), np.array([True, False])], {}),
    ("Cast", [FLOATS], {"to": TensorProto.FLOAT16}),
    ("Cast", [np.array([1 / 3, 1e300, -1e-50, np.nan])], {"to": TensorProto.FLOAT}),
    ("Cast", [ARRAY.astype(np.float16)], {"to": TensorProto.FLOAT}),
    ("Cast", [np.array([0.0, -1.0, 2.0**30], dtype=np.float32)], {"to": TensorProto.INT32}),
    ("Cast", [np.array([0, 3, -1])], {"to": TensorProto.BOOL}),
    ("Cast", [np.array([0, 3, -1, 2**24])], {"to": TensorProto.FLOAT}),
    ("Cast", [np.array([2**24 + 1, 2**63 - 1])], {"to": TensorProto.FLOAT}),
    ("Cast", [np.array([2**63 - 1, 2**53 + 1])], {"to": TensorProto.DOUBLE}),
    ("Cast", [np.array([-0.0, 1.0])], {"to": TensorProto.BOOL}),
    ("Cast", [np.array([-0.0, 2.0**40])], {"to": TensorProto.INT64}),
    ("CastLike", [FLOATS, np.array([], dtype=np.float64)], {}),
    ("CastLike", [FLOATS, OTHERS], {}),
    ("CastLike", [np.array([-1.0, 3.0]), np.array(1)], {}),
    ("Concat", [ARRAY, ARRAY], {"axis": -1}),
    ("ConstantOfShape", [np.array([2, 0, 3])], {}),
    ("ConstantOfShape", [np.array([2])], {"value": from_array(np.array([5], dtype=np.int8))}),
    ("Div", [FLOATS, OTHERS], {}),
    ("Div", [np.array([[0], [7], [2**63 - 1]]), np.array([1, 2, 2**63 - 1])], {}),
    ("Div", [np.array([-7, 7], dtype=np.int32), np.array([2, 2], dtype=np.int32)], {}),
    ("Equal", [np.array([[1.0], [np.nan]]), np.array([1.0, np.nan])], {}),
    ("Expand", [ARRAY[:1], np.array([2, 1])], {}),
    ("Expand", [ARRAY[:, :1], np.array([4, 1, 3])], {}),
    ("Gather", [ARRAY, np.array([[0, -1]])], {"axis": 1}),
    ("Gather", [ARRAY, np.array(1)], {}),
    ("Greater", [ARRAY, np.array(2, dtype=np.float32)], {}),
    ("GreaterOrEqual", [np.array([1, 2, 3]), np.array([[2]])], {}),
    ("Identity", [ARRAY], {}),
    ("Less", [np.array([np.nan, -np.inf, 0.0]), np.array(-0.0)], {}),
    ("LessOrEqual", [np.array([], dtype=np.int32), np.array([5], dtype=np.int32)], {}),
    ("Max", [np.array([[-3], [4]]), np.array([1, 2]), np.array(0)], {}),
    ("Max", [FLOATS, OTHERS], {}),
    ("Min", [np.array([5, -(2**63)])], {}),
    ("Mod", [np.array([[0], [7], [2**63 - 1]]), np.array([1, 2, 2**63 - 1])], {}),
    ("Mod", [np.array([9, 4], dtype=np.int32), np.array(5, dtype=np.int32)], {"fmod": 1}),
    ("Mod", [np.array([-7, 7]), np.array([2, -2])], {}),
    ("Mod", [np.array([-7, 7, -2]), np.array(5)], {}),
    ("Mod", [np.array([-7, 7]), np.array([2, 2])], {"fmod": 1}),
    ("Mod", [FLOATS, OTHERS], {"fmod": 1}),
    ("Mul", [np.array(3), np.array([1, 2])], {}),
    ("Mul", [FLOATS, OTHERS], {}),
    ("Mul", [FLOATS.astype(np.float64), np.array(1e-300)], {}),
    ("Neg", [FLOATS], {}),
    ("Not", [np.array([[True, False]])], {}),
    ("Or", [np.array([[True], [False]]), np.array([True, False])], {}),
    ("Range", [np.array(2), np.array(9), np.array(3)], {}),
    ("Range", [np.array(2), np.array(9), np.array(-3)], {}),
    ("Range", [np.array(v, dtype=np.int32) for v in (9, -1, -2)], {}),
    ("Range", [np.array(v, dtype=np.float32) for v in (0.0, 1.0, 0.1)], {}),
    ("Reciprocal", [FLOATS], {}),
    ("Reciprocal", [FLOATS.astype(np.float64)], {}),
    ("Reshape", [ARRAY, np.array([0, -1, 1])], {}),
    ("Reshape", [ARRAY[:0], np.array([3, 0])], {"allowzero": 1}),
    ("Reshape", [np.array([5.0]), np.array([], dtype=np.int64)], {}),
    ("Shape", [ARRAY], {"start": -1}),
    ("Shape", [ARRAY], {"start": -5, "end": 7}),
    ("Shape", [np.array(1.0)], {}),
    ("Slice", [ARRAY, np.array([1]), np.array([2**63 - 1]), np.array([-1])], {}),
    ("Slice", [ARRAY, np.array([0, -9]), np.array([-1, 9])], {}),
    ("Slice", [ARRAY, np.array([5]), np.array([9]), np.array([1]), np.array([2])], {}),
    ("Slice", [ARRAY, np.array([0]), np.array([3]), np.array([1]), np.array([2])], {}),
    ("Slice", [ARRAY, np.array([-1]), np.array([-9]), np.array([1]), np.array([-1])], {}),
    ("Sqrt", [FLOATS], {}),
    ("Sqrt", [FLOATS.astype(np.float64)], {}),
    ("Squeeze", [ARRAY[None, :, :1], np.array([0, -1])], {}),
    ("Squeeze", [ARRAY[None]], {}),
    ("Sub", [np.array([1]), np.array([5])], {}),
    ("Sub", [FLOATS, OTHERS], {}),
    ("Transpose", [ARRAY], {}),
    ("Transpose", [np.array(2.5)], {}),
    ("Transpose", [ARRAY[None]], {"perm": [2, 0, 1]}),
    ("Unsqueeze", [ARRAY, np.array([0, -1])], {}),
    ("Where", [np.array([[True], [False]]), FLOATS[0], np.array(0, dtype=np.float32)], {}),
    (
        "Where",
        [np.array([True, False]), np.array(["a", "b"], dtype=object), np.array("c", dtype=object)],
        {},
    ),
]


HALVES = {"to float": (np.float16, np.float32), "to double": (np.float16, np.float64)}
HALVES["to halves"] = HALVES["to float"][::-1]


@pytest.mark.parametrize("name", HALVES)
def test_onnxruntime_converts_many_floats_of_16_bits(monkeypatch, name):
    """Through one session, not one for each node."""
    source, target = HALVES[name]
    calls, convert = [], halves._converted
    monkeypatch.setattr(halves, "_converted", lambda *a: calls.append(1) or convert(*a))
    monkeypatch.setattr(evaluation, "_run_onnxruntime", lambda *a: pytest.fail("a session"))
    to = oh.np_dtype_to_tensor_dtype(np.dtype(target))
    x = np.random.default_rng(0).standard_normal((1 << 16) + 1).astype(source)
    few = evaluate("Cast", [x[1:]], to=to)
    assert not calls
    many = evaluate("Cast", [x], to=to)
    np.testing.assert_array_equal(many[1:], few)
    assert many.dtype == few.dtype == target and calls == [1]


@pytest.mark.parametrize("op_type,values,attributes", CASES)
def test_kernels_agree_with_onnxruntime(op_type, values, attributes, monkeypatch):
    got = evaluate(op_type, values, **attributes)
    monkeypatch.delitem(_KERNELS, op_type)
    expected = evaluate(op_type, values, **attributes)
    assert expected is not None
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape


def test_every_kernel_is_tested():
    assert {c[0] for c in CASES} == set(_KERNELS)


@pytest.mark.parametrize(
    "op_type,values,attributes",
    [
        ("Reshape", [ARRAY, np.array([5])], {}),
        ("Reshape", [ARRAY, np.array([-1, -1])], {}),
        ("Squeeze", [ARRAY, np.array([0])], {}),
        ("Transpose", [ARRAY], {"perm": [0, 0]}),
        ("Concat", [ARRAY, ARRAY.T], {"axis": 0}),
        ("Expand", [ARRAY, np.array([5, 3])], {}),
        ("Gather", [ARRAY, np.array([2])], {}),
        ("Gather", [ARRAY, np.array([-3])], {}),
        ("Unsqueeze", [ARRAY], {}),
        ("Unsqueeze", [ARRAY, np.array([2**63 - 1])], {}),
        ("NoSuchOperator", [ARRAY], {}),
        ("Div", [np.array([1, 2]), np.array([0, 1])], {}),
        ("Div", [np.array([-(2**63)]), np.array([-1])], {}),
        ("Mod", [np.array([1], dtype=np.int8), np.array([0], dtype=np.int8)], {}),
    ],
)
def test_what_cannot_be_computed(op_type, values, attributes):
    assert evaluate(op_type, values, **attributes) is None


@pytest.mark.parametrize(
    "op_type,values,attributes",
    [
        ("And", [np.array([1]), np.array([2])], {}),
        ("Where", [np.array([1]), ARRAY, ARRAY], {}),
        ("Where", [np.array([True]), ARRAY, ARRAY.astype(np.float64)], {}),
        ("Range", [np.array([2]), np.array(9), np.array(3)], {}),
        ("Range", [np.array(2), np.array(9), np.array(0)], {}),
        ("Range", [np.array(2), np.array(9), np.array(1, dtype=np.int32)], {}),
        ("Max", [np.array(2), np.array(9, dtype=np.int32)], {}),
        ("Mod", [np.array(-2), np.array(9)], {"fmod": 1}),
        ("Mod", [np.array(2), np.array(-9)], {}),
        ("Mod", [np.array(2), np.array(9, dtype=np.int32)], {}),
        ("Mod", [np.array(2), np.array(9)], {"broadcast": 1}),
        ("Div", [np.array(2), np.array(-9)], {}),
        ("Sqrt", [ARRAY.astype(np.float16)], {}),
        ("Cast", [ARRAY / 2], {"to": TensorProto.INT64}),
        ("Cast", [np.array([np.nan])], {"to": TensorProto.BOOL}),
        ("Cast", [np.array([1e300])], {"to": TensorProto.INT64}),
        ("Cast", [np.array([2**63 - 1])], {"to": TensorProto.FLOAT}),
        ("Cast", [np.array([2**40])], {"to": TensorProto.INT32}),
        ("Cast", [np.array([1])], {"to": TensorProto.INT8}),
        ("Slice", [ARRAY, np.array([-1]), np.array([-3]), np.array([1]), np.array([-1])], {}),
        ("Slice", [ARRAY, np.array([1]), np.array([-9]), np.array([1]), np.array([-1])], {}),
    ],
)
def test_what_kernels_leave(op_type, values, attributes):
    """A runtime computes it, or refuses it."""
    assert _KERNELS[op_type](values, attributes) is None


def test_division():
    assert evaluate("Div", [np.array([-7, 7]), np.array([2, -2])]).tolist() == [-3, -3]
    zero = np.array([0.0], dtype=np.float32)
    assert np.isinf(evaluate("Div", [zero + 1, zero]))[0]
    lowest = np.array([-(2**63)])
    assert evaluate("Div", [lowest, np.array([2])]).tolist() == [-(2**62)]


def test_broadcasting_of_old_opsets():
    """Before opset 7, the axis of the second operand was an attribute: [2, 3] + [2] on axis 0."""
    a, b = np.array([[1, 2, 3], [4, 5, 6]]), np.array([10, 20])
    got = evaluate("Add", [a, b], opset=6, axis=0, broadcast=1)
    assert got is None or got.tolist() == [[11, 12, 13], [24, 25, 26]]


def test_missing_optional_inputs():
    x = np.array([-1, 0.5, 3], dtype=np.float32)
    assert evaluate("Clip", [x, None, np.float32(1)]).tolist() == [-1, 0.5, 1]


def test_several_outputs():
    node = oh.make_node("Split", ["x", "s"], ["a", "b"], axis=0)
    found = evaluate_node(node, [np.arange(5), np.array([2, 3])], {"": 18})
    assert {k: v.tolist() for k, v in found.items()} == {"a": [0, 1], "b": [2, 3, 4]}
    node = oh.make_node("TopK", ["x", "k"], ["", "i"])
    found = evaluate_node(node, [np.array([1.0, 3.0]), np.array([1])], {"": 18})
    assert {k: v.tolist() for k, v in found.items()} == {"i": [1]}


def test_bfloat16_and_strings():
    import ml_dtypes

    x = np.array([1, 2], dtype=ml_dtypes.bfloat16)
    y = evaluate("Neg", [x])
    assert y is None or y.astype(np.float32).tolist() == [-1, -2]
    s = np.array(["a", "b"], dtype=object)
    assert evaluate("Concat", [s, s], axis=0).tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "([a-z]+)*[0-9]"])
@pytest.mark.parametrize("opset", [18, 20])
def test_a_regular_expression_ends(pattern, opset):
    """Python takes for ever on these, and opset 18 does not have the operator."""
    text = np.array(["a" * 60 + "!"], dtype=object)
    node = oh.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    found = evaluate_node(node, [text], {"": opset})
    assert found is None if opset == 18 else found["y"].tolist() == [False]


def test_every_channel_is_normalized():
    """onnxruntime has no kernel of LRN for double."""
    x = np.arange(1, 5, dtype=np.float32).reshape((1, 4, 1, 1))
    sums = np.array([5, 14, 29, 25], dtype=np.float32).reshape(x.shape)
    for value in (x, x.astype(np.float64)):
        got = evaluate("LRN", [value], size=3, alpha=3.0, beta=1.0)
        assert got.dtype == value.dtype
        np.testing.assert_allclose(got, x / (1 + sums), rtol=1e-6)


def test_an_operator_the_opset_does_not_have_is_left():
    node = oh.make_node("Gelu", ["x"], ["y"])
    assert evaluate_node(node, [np.ones(1, np.float32)], {"": 18}) is None
    assert evaluate_node(node, [np.ones(1, np.float32)], {"": 20}) is not None


@pytest.mark.parametrize(
    "attributes,expected",
    [
        ({"value_int": 3}, 3),
        ({"value_ints": [1, 2]}, [1, 2]),
        ({"value_float": 0.5}, 0.5),
        ({"value_floats": [0.5]}, [0.5]),
        ({"value": from_array(np.array([[1]]))}, [[1]]),
    ],
)
def test_constant_nodes(attributes, expected):
    node = oh.make_node("Constant", [], ["y"], **attributes)
    assert constant_node_value(node).tolist() == expected
    assert evaluate_node(node, [], {"": 18})["y"].tolist() == expected


def test_constant_nodes_without_dense_value():
    values = oh.make_tensor("v", 1, [1], [5.0])
    sparse = oh.make_sparse_tensor(values, oh.make_tensor("i", 7, [1], [1]), [3])
    assert constant_node_value(oh.make_node("Constant", [], ["y"], sparse_value=sparse)) is None
    node = oh.make_node("Constant", [], ["y"])
    ref = node.attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "value_float", "v", 1
    assert constant_node_value(node) is None


@pytest.mark.parametrize(
    "elem_type,shape,expected",
    [
        (1, (2, 3), 24),
        (1, (), 4),
        (11, (0, 5), 0),
        (1, ("N", 3), None),
        (1, None, None),
        (0, (2,), None),
        (TensorProto.STRING, (2,), None),
        (1, (10**6, 10**6, 10**6, 10**6), 4 * 10**24),
    ],
)
def test_predicted_bytes(elem_type, shape, expected):
    assert predicted_bytes(elem_type, shape) == expected
