"""Operators without kernel for a type run on a wider one."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import xoptim
from xoptim.testing import (
    assert_same_outputs,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    run_onnxruntime,
    run_reference,
)

BRAIN, HALF = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16


def unary(op_type: str, elem_type: str = "bfloat16") -> str:
    """One operator."""
    return f"agraph ({elem_type}[a, 4] X) => ({elem_type}[a, 4] Y) {{ Y = {op_type}(X) }}"


def through_float(op_type: str, elem_type: str = "bfloat16") -> str:
    """One operator between two casts."""
    to = {"bfloat16": BRAIN, "float16": HALF}[elem_type]
    return f"""agraph ({elem_type}[a, 4] X) => ({elem_type}[a, 4] Y) {{
        x = Cast<to = 1>(X)
        y = {op_type}(x)
        Y = Cast<to = {to}>(y)
    }}"""


RANGE = """agraph (float16 A, float16 B, float16 C) => (float16[n] Y) { Y = Range(A, B, C) }"""
REDUCE = """agraph (bfloat16[a, 4] X) => (bfloat16[a, 1] Y) <int64[1] axes = {1}> {
    Y = ReduceMax<keepdims = 1>(X, axes) }"""
TOPK = """agraph (bfloat16[a, 4] X) => (bfloat16[a, 2] Y, int64[a, 2] I) <int64[1] k = {2}> {
    Y, I = TopK<axis = 1, largest = 0>(X, k) }"""

#: what the documentation draws: name -> (before, after)
MODELS = {
    "MissingRange": (
        RANGE,
        """agraph (float16 A, float16 B, float16 C) => (float16[n] Y) {
            a = Cast<to = 1>(A) b = Cast<to = 1>(B) c = Cast<to = 1>(C)
            y = Range(a, b, c) Y = Cast<to = 10>(y) }""",
    ),
    "MissingType": (unary("Cos"), through_float("Cos")),
    "MissingReduceMax": (
        REDUCE,
        """agraph (bfloat16[a, 4] X) => (bfloat16[a, 1] Y) <int64[1] axes = {1}> {
            x = Cast<to = 1>(X) y = ReduceMax<keepdims = 1>(x, axes) Y = Cast<to = 16>(y) }""",
    ),
    "MissingTopK": (
        TOPK,
        """agraph (bfloat16[a, 4] X) => (bfloat16[a, 2] Y, int64[a, 2] I) <int64[1] k = {2}> {
            x = Cast<to = 1>(X) y, I = TopK<axis = 1, largest = 0>(x, k) Y = Cast<to = 16>(y) }""",
    ),
}


def feeds_of(name: str) -> list[dict[str, np.ndarray]]:
    """Values: a range has three scalars."""
    if name == "MissingRange":
        values = ((0, 5, 1), (2.5, -3, -0.5), (0, 0, 1))
        return [
            {n: np.array(v, dtype=np.float16) for n, v in zip("ABC", t, strict=True)}
            for t in values
        ]
    rng = np.random.default_rng(0)
    dtype = oh.tensor_dtype_to_np_dtype(BRAIN)
    return [{"X": (rng.permutation(4 * n) + 1).reshape(n, 4).astype(dtype)} for n in (1, 3)]


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    """onnxruntime cannot run the first model: the reference evaluator tells what is expected."""
    before, after = MODELS[name]
    feeds = feeds_of(name)
    result = check_pattern(before, after, name, opset=22, feeds=feeds, atol=1e-2, runtime=False)
    if name == "MissingRange":
        for feed in feeds:
            expected = run_reference(result, feed)
            assert_same_outputs(expected, run_onnxruntime(result, feed), 0, 0, "onnxruntime")
    else:
        _loads(result)


def _loads(model: onnx.ModelProto) -> None:
    import onnxruntime

    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        _session(model_from_text(unary("Cos"), 22))
    assert isinstance(_session(model), onnxruntime.InferenceSession)


def _session(model: onnx.ModelProto) -> object:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("op_type", ["Cos", "Sin", "Log"])
@pytest.mark.parametrize("elem_type", ["float16", "bfloat16"])
def test_unary(op_type: str, elem_type: str) -> None:
    """Values are rounded once to a type of 8 or 11 bits."""
    dtype = oh.tensor_dtype_to_np_dtype({"bfloat16": BRAIN, "float16": HALF}[elem_type])
    feeds = [{"X": np.array([[0.5, 1, 2, 3]], dtype=dtype)}]
    check_pattern(
        unary(op_type, elem_type),
        through_float(op_type, elem_type),
        "MissingCosSin",
        opset=22,
        feeds=feeds,
        atol=1e-2,
        runtime=elem_type == "float16",
    )


BODIES = {
    "a branch": (
        """agraph (bfloat16[a] X, bool C) => (bfloat16[a] Y) { Y = If(C) <
        then_branch = t () => (bfloat16[a] u) { u = Exp(X) },
        else_branch = e () => (bfloat16[a] v) { v = Identity(X) } > }""",
        {"C": np.array(True)},
    ),
    "a loop": (
        """agraph (bfloat16[a] X, int64 N, bool C) => (bfloat16[a] Y) { Y = Loop(N, C, X) <
        body = b (int64 i, bool c, bfloat16[a] v) => (bool d, bfloat16[a] w) {
            d = Identity(c) w = Exp(v) } > }""",
        {"N": np.array(1), "C": np.array(True)},
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_in_a_body(name: str) -> None:
    text, feeds = BODIES[name]
    found, _, _ = optimize_with(model_from_text(text, 22), "default+onnxruntime")
    x = np.array([0, 1, -2, 80]).astype(oh.tensor_dtype_to_np_dtype(BRAIN))
    (got,) = run_onnxruntime(found, {"X": x, **feeds})
    np.testing.assert_array_equal(got, np.exp(x.astype(np.float32)).astype(x.dtype))


def test_in_a_function() -> None:
    """A function of the model, which is inlined: the types of the inputs depend on the call."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 22, "own" : 1]>
        g (bfloat16[a] x) => (bfloat16[a] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 22]> f (x) => (y) { e = Exp(x) y = Sigmoid(e) }"""
    )
    x = np.array([0, 1, -2, 3]).astype(oh.tensor_dtype_to_np_dtype(BRAIN))
    expected = run_reference(model, {"x": x})
    found = xoptim.optimize(model, patterns="default+onnxruntime").model
    assert_same_outputs(expected, run_onnxruntime(found, {"x": x}), 1e-2, 1e-2, "function")


#: nodes before, after
INTEGERS = {
    "int16": (
        "agraph (int16[a] X, int16[a] Z) => (int16[a] Y) { Y = Max(X, Z) }",
        """agraph (int16[a] X, int16[a] Z) => (int16[a] Y) {
        x = Cast<to = 6>(X) z = Cast<to = 6>(Z) y = Max(x, z) Y = Cast<to = 5>(y) }""",
    ),
    "uint32": (
        "agraph (uint32[a, b] X) => (uint32[a, b] Y) { Y = Trilu(X) }",
        """agraph (uint32[a, b] X) => (uint32[a, b] Y) {
        x = Cast<to = 7>(X) y = Trilu(x) Y = Cast<to = 12>(y) }""",
    ),
    "the type of the result": (
        "agraph (float[a, b] X) => (float16[a, b] Y) { Y = EyeLike<dtype = 10>(X) }",
        """agraph (float[a, b] X) => (float16[a, b] Y) {
        y = EyeLike<dtype = 1>(X) Y = Cast<to = 10>(y) }""",
    ),
    "one of two types": (
        "agraph (double[a] X, bfloat16 k) => (double[a] Y) { Y = Pow(X, k) }",
        "agraph (double[a] X, bfloat16 k) => (double[a] Y) { w = Cast<to = 1>(k) Y = Pow(X, w) }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_other_types(name: str) -> None:
    check_pattern(*INTEGERS[name], "MissingType", opset=22, runtime=False)


def test_one_bound_twice() -> None:
    """The same operand is cast once."""
    before = "agraph (float16 A, float16 B) => (float16[n] Y) { Y = Range(A, B, B) }"
    after = """agraph (float16 A, float16 B) => (float16[n] Y) {
        a = Cast<to = 1>(A) b = Cast<to = 1>(B) y = Range(a, b, b) Y = Cast<to = 10>(y) }"""
    feeds = [{"A": np.array(0, dtype=np.float16), "B": np.array(2, dtype=np.float16)}]
    check_pattern(before, after, "MissingRange", feeds=feeds, runtime=False)


EXISTS = "the kernel exists for this type"
LOADS = "onnxruntime loads the operator"
REFUSED = {
    "MissingCosSin": {
        "float": (unary("Cos", "float"), EXISTS),
        "double": (unary("Sin", "double"), LOADS),
        "another processor": (unary("Cos"), "another processor", {"processor": "CPU,CUDA"}),
        "another processor, float16": (
            unary("Cos", "float16"),
            "another processor",
            {"processor": "CUDA"},
        ),
    },
    "MissingRange": {
        "double": (RANGE.replace("float16", "double"), LOADS),
        "int64": (RANGE.replace("float16", "int64"), EXISTS),
    },
    "MissingReduceMax": {"float16": (REDUCE.replace("bfloat16", "float16"), LOADS)},
    "MissingTopK": {"float": (TOPK.replace("bfloat16", "float"), EXISTS)},
    "MissingType": {
        "a session casts": (unary("Sinh", "float16"), LOADS),
        "a kernel": (unary("Sign"), LOADS),
        "the function": (unary("Swish", "float16"), "loads the function", {"opset": 28}),
        "double": (
            "agraph (double[a, 4, 4] X) => (double[a] Y) { Y = Det(X) }",
            "no kernel for a wider type",
        ),
        "64 bits": (
            "agraph (uint64[a] X, int64 K) => (uint64[a] Y) { Y = CumSum(X, K) }",
            EXISTS,
        ),
        "fractions of a bool": (
            """agraph (bool[1, 1, 2, 2] X, float[4] S) => (bool[1, 1, a, b] Y) {
            Y = Resize(X, , S) }""",
            "no kernel for a wider type",
        ),
        "a sequence": (
            "agraph (bfloat16[4] X) => (seq(bfloat16[a]) Y) { Y = SplitToSequence(X) }",
            "no tensor",
        ),
    },
}


test_refuses = refusal_tests(REFUSED, opset=22)
