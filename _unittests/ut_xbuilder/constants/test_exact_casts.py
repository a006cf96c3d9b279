"""Conversions whose result is the same everywhere, and those that are left to the runtime."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import op_types

from xbuilder import GraphBuilder
from xbuilder.constants.evaluation import evaluate_node
from xbuilder.constants.exact_casts import why_not_exact
from xbuilder.runtimes.sessions import plain_session

F8 = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]


def cast(values, to, **attributes):
    """Folds a Cast: the value, or the reason why there is none."""
    node = oh.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    x = np.asarray(values)
    found = evaluate_node(node, [x], {"": 21}, [to])
    reason = why_not_exact(node, [x], [to])
    assert (found is None) == bool(reason)
    return reason or found["y"]


def through_onnxruntime(x, to, **attributes):
    """The value of Cast(Cast(x)) as a float."""
    elem_type = oh.np_dtype_to_tensor_dtype(x.dtype)
    graph = oh.make_graph(
        [
            oh.make_node("Cast", ["x"], ["t"], to=to, **attributes),
            oh.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
        ],
        "g",
        [oh.make_tensor_value_info("x", elem_type, x.shape)],
        [oh.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10)
    return plain_session(model.SerializeToString()).run(None, {"x": x})[0]


def many_floats(dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000) * 10.0 ** rng.integers(-8, 6, 2000)
    special = [0, -0.0, np.nan, np.inf, -np.inf, 448, 464, 465, 57344, 61440, 240, 248, 2**-9]
    with np.errstate(over="ignore"):
        return np.concatenate([x, special, np.arange(-600, 600) / 2]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", [*F8, "BFLOAT16"])
def test_types_numpy_does_not_have(name, dtype):
    """onnxruntime returns the bits of a float8 as uint8: they are not the value."""
    to, x = getattr(TensorProto, name), many_floats(dtype)
    got = cast(x, to)
    assert got.dtype == oh.tensor_dtype_to_np_dtype(to)
    np.testing.assert_array_equal(got.astype(np.float32), through_onnxruntime(x, to))


@pytest.mark.parametrize("name", F8)
def test_overflow_without_saturation(name):
    to = getattr(TensorProto, name)
    largest = float(ml_dtypes.finfo(oh.tensor_dtype_to_np_dtype(to)).max)
    x = np.array([1.5, -largest, largest], dtype=np.float32)
    assert cast(x, to, saturate=0).astype(np.float32).tolist() == x.tolist()
    for bad in (largest * 1.01, np.inf, np.nan):
        assert cast(np.array([bad], np.float32), to, saturate=0) == "a float8 overflows"
        assert not isinstance(cast(np.array([bad], np.float32), to), str)


PACKED = ["INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1"]


@pytest.mark.parametrize("name", PACKED)
def test_less_than_a_byte(name):
    reason = "runtimes disagree on the types of less than a byte"
    to = getattr(TensorProto, name)
    assert cast(np.array([1.0], np.float32), to) == reason
    assert cast(np.array([1], np.int64), to) == reason
    packed = np.array([1], np.float32).astype(oh.tensor_dtype_to_np_dtype(to))
    assert cast(packed, TensorProto.FLOAT) == reason


def test_exponents():
    assert cast(np.array([1.0]), TensorProto.FLOAT8E8M0) == "runtimes disagree on float8e8m0"


NOT_INTEGERS = "a float is not an integer of the new type"


@pytest.mark.parametrize(
    "values,to,exact",
    [
        ([1.0, -3.0, -0.0], TensorProto.INT64, True),
        ([1.5], TensorProto.INT64, False),
        ([np.nan], TensorProto.INT64, False),
        ([np.inf], TensorProto.INT32, False),
        ([2.0**31], TensorProto.INT32, False),
        ([2.0**31 - 1], TensorProto.INT32, True),
        ([-(2.0**31)], TensorProto.INT32, True),
        ([2.0**63], TensorProto.INT64, False),
        ([-(2.0**63)], TensorProto.INT64, True),
        ([255.0], TensorProto.UINT8, True),
        ([256.0], TensorProto.UINT8, False),
        ([-1.0], TensorProto.UINT8, False),
        ([2.0**64], TensorProto.UINT64, False),
        ([0.5, np.nan], TensorProto.BOOL, True),
        ([0.1, 1e300], TensorProto.FLOAT, True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_to_integers(values, to, exact, dtype):
    with np.errstate(over="ignore"):
        x = np.array(values, dtype=dtype)
    if dtype == np.float32 and values == [2.0**31 - 1]:
        exact = False  # the float is 2**31
    got = cast(x, to)
    if exact:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, x.astype(oh.tensor_dtype_to_np_dtype(to)))
    else:
        assert got == NOT_INTEGERS


@pytest.mark.parametrize(
    "x,scale,exact",
    [([1.0, 1e30], 0.5, True), ([np.nan], 0.5, False), ([np.inf], 1, False), ([1.0], 0, False)],
)
def test_quantization_saturates_finite_numbers(x, scale, exact):
    values = [np.array(x, np.float32), np.array(scale, np.float32), np.array(0, np.int8)]
    node = oh.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    found = evaluate_node(node, values, {"": 21}, [TensorProto.INT8])
    assert (found is not None) == exact
    if exact:
        assert found["y"].tolist() == [2, 127]
    else:
        assert why_not_exact(node, values, [TensorProto.INT8]) == "a float is not finite"


def test_integers_wrap():
    assert cast(np.array([300, -1]), TensorProto.UINT8).tolist() == [44, 255]


def test_the_reason_is_in_the_statistics():
    builder = GraphBuilder(21)
    builder.make_initializer("w", np.array([1.5, np.nan], dtype=np.float32))
    builder.make_initializer("i", np.array([1, 2], dtype=np.int64))
    builder.make_tensor_input("x", TensorProto.FLOAT, (2,))
    integers = builder.op.Add(builder.op.Cast("w", to=TensorProto.INT64), "i")
    packed = builder.op.Cast(builder.op.Cast("i", to=TensorProto.INT4), to=TensorProto.FLOAT)
    builder.op.Mul(builder.op.Mul("x", packed), builder.op.Cast(integers, to=1), outputs=["y"])
    builder.make_tensor_output("y")
    model, statistics = builder.to_onnx(return_optimize_report=True)
    assert op_types(model).count("Cast") == 4
    names = {row["pattern"] for row in statistics}
    assert f"constant_folding: {NOT_INTEGERS}" in names
    assert "constant_folding: runtimes disagree on the types of less than a byte" in names


def test_a_folded_float8_is_written_right():
    builder = GraphBuilder(21)
    w = np.array([0.3, 1.0, -448.0, 1000.0], dtype=np.float32)
    builder.make_initializer("w", w)
    builder.make_tensor_input("x", TensorProto.FLOAT8E4M3FN, (4,))
    builder.op.Concat("x", builder.op.Cast("w", to=TensorProto.FLOAT8E4M3FN), axis=0, outputs=["y"])
    builder.make_tensor_output("y")
    model = builder.to_onnx()
    assert op_types(model) == ["Concat"]
    (tensor,) = model.graph.initializer
    assert tensor.data_type == TensorProto.FLOAT8E4M3FN
    want = through_onnxruntime(w, TensorProto.FLOAT8E4M3FN)
    got = np.frombuffer(tensor.raw_data, dtype=ml_dtypes.float8_e4m3fn)
    assert got.astype(np.float32).tolist() == want.tolist() == [0.3125, 1, -448, 448]
