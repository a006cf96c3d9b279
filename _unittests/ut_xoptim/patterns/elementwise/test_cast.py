"""Conversions of types: those that lose nothing go, the others stay."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xoptim.patterns.rounding_errors import HALVES, TYPES, difference, numbers

from xoptim.catalogue.registry import all_patterns
from xoptim.patterns.elementwise.cast import INTEGERS, SIGNIFICANDS, casts_directly
from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

FLOAT, FLOAT16, DOUBLE, BFLOAT16 = 1, 10, 11, 16
BOOL, INT8, INT32, INT64, UINT8, UINT32 = 9, 3, 6, 7, 2, 12


def _chain(source: str, middle: int, target: int, out: str) -> str:
    return (
        f"g ({source}[a] x) => ({out}[a] y)"
        f"{{ i = Identity(x) m = Cast<to={middle}>(i) y = Cast<to={target}>(m) }}"
    )


def _one(source: str, target: int, out: str) -> str:
    return f"g ({source}[a] x) => ({out}[a] y) {{ y = Cast<to={target}>(x) }}"


MODELS = {
    "Cast": {
        "same type": (
            "g (float[a] x) => (float[a] y) { c = Cast<to=1>(x) y = Abs(c) }",
            "g (float[a] x) => (float[a] y) { y = Abs(x) }",
        ),
        "bool": (
            "g (bool[a] x) => (bool[a] y) { c = Cast<to=9>(x) y = Not(c) }",
            "g (bool[a] x) => (bool[a] y) { y = Not(x) }",
        ),
        "an inferred type": (
            "g (float[a] x) => (int64[1] y) { s = Shape(x) c = Cast<to=7>(s) y = Neg(c) }",
            "g (float[a] x) => (int64[1] y) { s = Shape(x) y = Neg(s) }",
        ),
    },
    "CastCast": {
        "float16, float, float16": (
            _chain("float16", FLOAT, FLOAT16, "float16"),
            "g (float16[a] x) => (float16[a] y) { y = Identity(x) }",
        ),
        "float16, float, double": (
            _chain("float16", FLOAT, DOUBLE, "double"),
            _one("float16", DOUBLE, "double"),
        ),
        "float, double, float16": (
            _chain("float", DOUBLE, FLOAT16, "float16"),
            _one("float", FLOAT16, "float16"),
        ),
        "bool, int32, float": (
            _chain("bool", INT32, FLOAT, "float"),
            _one("bool", FLOAT, "float"),
        ),
        "uint8, uint32, float": (
            _chain("uint8", UINT32, FLOAT, "float"),
            _one("uint8", FLOAT, "float"),
        ),
        "int32, int64, float": (
            _chain("int32", INT64, FLOAT, "float"),
            _one("int32", FLOAT, "float"),
        ),
        "int64, int32, int8": (_chain("int64", INT32, INT8, "int8"), _one("int64", INT8, "int8")),
        "int32, double, bool": (_chain("int32", DOUBLE, BOOL, "bool"), _one("int32", BOOL, "bool")),
        "bool, float, int64": (_chain("bool", FLOAT, INT64, "int64"), _one("bool", INT64, "int64")),
        "int32, int64, int32": (
            _chain("int32", INT64, INT32, "int32"),
            "g (int32[a] x) => (int32[a] y) { y = Identity(x) }",
        ),
        "uint8, float, uint8": (
            _chain("uint8", FLOAT, UINT8, "uint8"),
            "g (uint8[a] x) => (uint8[a] y) { y = Identity(x) }",
        ),
        "the first one changes nothing": (
            _chain("float", FLOAT, INT32, "int32"),
            _one("float", INT32, "int32"),
        ),
        "the inner result is an output": (
            "g (int32[a] x) => (int64[a] y, float[a] z) { y = Cast<to=7>(x) z = Cast<to=1>(y) }",
            "g (int32[a] x) => (int64[a] y, float[a] z) { y = Cast<to=7>(x) z = Cast<to=1>(x) }",
        ),
        "the inner result is read elsewhere": (
            "g (int32[a] x) => (int64[a] y, float[a] z)"
            "{ c = Cast<to=7>(x) y = Neg(c) z = Cast<to=1>(c) }",
            "g (int32[a] x) => (int64[a] y, float[a] z)"
            "{ c = Cast<to=7>(x) y = Neg(c) z = Cast<to=1>(x) }",
        ),
    },
    "CastCastBinary": {
        "add": (
            "g (float16[a] x, float16[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Add(l, r) }",
            "g (float16[a] x, float16[a] k) => (float[a] y) { l = Add(x, k) y = Cast<to=1>(l) }",
        ),
    },
    "ComputationCastOpCast": {
        "left": (
            "g (float16[a] x, float[a] k) => (float[a] y) { l = Cast<to=1>(x) y = Sub(l, k) }",
            "g (float16[a] x, float[a] k) => (float[a] y)"
            "{ d = Cast<to=10>(k) n = Sub(x, d) y = Cast<to=1>(n) }",
        ),
        "right": (
            "g (float16[a] x, float[b, a] k) => (float[b, a] y) { l = Cast<to=1>(x) y ="
            " Sub(k, l) }",
            "g (float16[a] x, float[b, a] k) => (float[b, a] y)"
            "{ d = Cast<to=10>(k) n = Sub(d, x) y = Cast<to=1>(n) }",
        ),
    },
    "CastOpCast": {
        "one operand": (
            "g (float16[a] x) => (float16[a] y){ l = Cast<to=1>(x) n = Neg(l) y = Cast<to=10>(n) }",
            "g (float16[a] x) => (float16[a] y) { y = Neg(x) }",
        ),
        "attributes": (
            "g (float16[a, 3] x) => (float16[a, 3] y)"
            "{ l = Cast<to=1>(x) n = Softmax<axis=0>(l) y = Cast<to=10>(n) }",
            "g (float16[a, 3] x) => (float16[a, 3] y) { y = Softmax<axis=0>(x) }",
        ),
        "two operands": (
            "g (float16[a] x, float16[a] k) => (float16[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) n = Mul(l, r) y = Cast<to=10>(n) }",
            "g (float16[a] x, float16[a] k) => (float16[a] y) { y = Mul(x, k) }",
        ),
        "a constant": (
            "g (float16[a] x) => (float16[a] y) <float c = {2}>"
            "{ l = Cast<to=1>(x) n = Sub(c, l) y = Cast<to=10>(n) }",
            "g (float16[a] x) => (float16[a] y) <float c = {2}>"
            "{ d = Cast<to=10>(c) y = Sub(d, x) }",
        ),
    },
}

#: the lowest number of float16, its bits
LOWEST = 0xFBFF
HUGE = "infinities, or huge numbers"
NEAR_MISSES = {
    "Cast": {
        "other type": (
            "g (float[a] x) => (double[a] y) { y = Cast<to=11>(x) }",
            "the type changes",
        ),
        "unknown type": (
            "g (float[a] x) => (float[a] y) { u = com.unknown.Op(x) y = Cast<to=1>(u) }",
            "the type of the input is not known",
        ),
        "4 bits": (
            "g (int4[a] x) => (int4[a] y) { y = Cast<to=22>(x) }",
            "no runtime has Identity",
        ),
    },
    "CastCast": {
        "alone": (_one("float", INT32, "int32"), "no Cast before"),
        "unknown type": (
            "g (float[a] x) => (float[a] y) { u = com.unknown.Op(x) v = Cast<to=11>(u) y ="
            " Cast<to=1>(v) }",
            "a type is not known",
        ),
        "float, int32, bool": (_chain("float", INT32, BOOL, "bool"), "changes the values"),
        "float, float16, float": (_chain("float", FLOAT16, FLOAT, "float"), "changes the values"),
        "float, bfloat16, float": (_chain("float", BFLOAT16, FLOAT, "float"), "changes the values"),
        "int64, float, int64": (_chain("int64", FLOAT, INT64, "int64"), "changes the values"),
        "int32, float, int32": (_chain("int32", FLOAT, INT32, "int32"), "changes the values"),
        "float, int64, float": (_chain("float", INT64, FLOAT, "float"), "changes the values"),
        "int64, int32, bool": (_chain("int64", INT32, BOOL, "bool"), "changes the values"),
        "int64, int32, int64": (_chain("int64", INT32, INT64, "int64"), "changes the values"),
        "int8, uint8, int32": (_chain("int8", UINT8, INT32, "int32"), "changes the values"),
        "float16, float, int32": (_chain("float16", FLOAT, INT32, "int32"), "changes the values"),
        "float, double, string": (_chain("float", DOUBLE, 8, "string"), "changes the values"),
        "float8, float, float8": (
            _chain("float8e5m2", FLOAT, 19, "float8e5m2"),
            "changes the values",
            {"opset": 19},
        ),
        "int32, double, bfloat16": (
            _chain("int32", DOUBLE, BFLOAT16, "bfloat16"),
            "changes the values",
        ),
    },
    "CastCastBinary": {
        "bfloat16 on CPU": (
            "g (bfloat16[a] x, bfloat16[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Add(l, r) }",
            "no kernel on CPU",
        ),
        "bfloat16 before opset 13": (
            "g (bfloat16[a] x, bfloat16[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Add(l, r) }",
            "the operator does not know bfloat16",
            {"opset": 12},
        ),
        "a mask": (
            "g (float16[a] x, bool[a] c) => (float[a] y)"
            f"<float16 z = {{0}}, float16 m = {{{LOWEST}}}> {{ k = Where(c, z, m)"
            "l = Cast<to=1>(x) r = Cast<to=1>(k) y = Add(l, r) }",
            HUGE,
        ),
        "different types": (
            "g (float16[a] x, bfloat16[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Add(l, r) }",
            "different types",
        ),
        "integers": (
            "g (int32[a] x, int32[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Div(l, r) }",
            "no operand is widened",
        ),
        "narrowed": (
            "g (double[a] x, double[a] k) => (float[a] y)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Div(l, r) }",
            "no operand is widened",
        ),
        "used elsewhere": (
            "g (float16[a] x, float16[a] k) => (float[a] y, float[a] l, float[a] r)"
            "{ l = Cast<to=1>(x) r = Cast<to=1>(k) y = Div(l, r) }",
            "no operand is widened",
        ),
    },
    "ComputationCastOpCast": {
        "bfloat16 on CPU": (
            "g (bfloat16[a] x, float[a] k) => (float[a] y) { l = Cast<to=1>(x) y = Add(l, k) }",
            "no kernel on CPU",
        ),
        "bfloat16 before opset 13": (
            "g (bfloat16[a] x, float[a] k) => (float[a] y) { l = Cast<to=1>(x) y = Add(l, k) }",
            "the operator does not know bfloat16",
            {"opset": 12},
        ),
        "a mask": (
            "g (float16[a] x, bool[a] c) => (float[a] y) <float z = {0}, float m = {-1e9}>"
            "{ k = Where(c, z, m) l = Cast<to=1>(x) y = Add(l, k) }",
            HUGE,
        ),
        "a mask that is widened": (
            "g (float[a] x, bool[a] c) => (float[a] y)"
            f"<float16 z = {{0}}, float16 m = {{{LOWEST}}}> {{ k = Where(c, z, m)"
            "r = Cast<to=1>(k) y = Add(x, r) }",
            HUGE,
        ),
        "integers": (
            "g (int64[a] x, float[a] k) => (float[a] y) { l = Cast<to=1>(x) y = Mul(l, k) }",
            "no operand is widened",
        ),
    },
    "CastOpCast": {
        "bfloat16 on CPU": (
            "g (bfloat16[a] x) => (bfloat16[a] y)"
            "{ l = Cast<to=1>(x) n = Neg(l) y = Cast<to=16>(n) }",
            "no kernel on CPU",
        ),
        "bfloat16 before opset 13": (
            "g (bfloat16[a] x) => (bfloat16[a] y)"
            "{ l = Cast<to=1>(x) n = Neg(l) y = Cast<to=16>(n) }",
            "the operator does not know bfloat16",
            {"opset": 12},
        ),
        "a constant float16 cannot hold": (
            "g (float16[a] x) => (float16[a] y) <float c = {100000}>"
            "{ l = Cast<to=1>(x) n = Mul(l, c) y = Cast<to=10>(n) }",
            HUGE,
        ),
        "integers around a float": (
            "g (int64[a] x) => (int64[a] y) <float c = {0.5}>"
            "{ l = Cast<to=1>(x) n = Mul(l, c) y = Cast<to=7>(n) }",
            "not widened",
        ),
        "no Cast after": (
            "g (float16[a] x) => (float[a] y) { l = Cast<to=1>(x) y = Neg(l) }",
            "does not go to one Cast only",
        ),
        "the result is an output": (
            "g (float16[a] x) => (float[a] n, float16[a] y)"
            "{ l = Cast<to=1>(x) n = Neg(l) y = Cast<to=10>(n) }",
            "does not go to one Cast only",
        ),
        "the result is captured": (
            "g (float16[a] x, bool c) => (float16[a] y, float[a] z)"
            "{ l = Cast<to=1>(x) n = Neg(l) z = If(c) <"
            "  then_branch = g1 () => (float[a] o1) { o1 = Neg(n) },"
            "  else_branch = g2 () => (float[a] o2) { o2 = Abs(n) } > y = Cast<to=10>(n) }",
            "does not go to one Cast only",
        ),
        "another type after": (
            "g (float16[a] x) => (double[a] y) { l = Cast<to=1>(x) n = Neg(l) y = Cast<to=11>(n) }",
            "is not the type before",
        ),
        "constants only": (
            "g (float[a] x) => (float[a] y) <float c = {2}>"
            "{ n = Neg(c) d = Cast<to=1>(n) y = Mul(x, d) }",
            "no operand is widened",
        ),
        "an operand without Cast": (
            "g (float16[a] x, float[a] k) => (float16[a] y)"
            "{ l = Cast<to=1>(x) n = Mul(l, k) y = Cast<to=10>(n) }",
            "not widened",
        ),
    },
}


APPROXIMATE = ("CastCastBinary", "CastOpCast", "ComputationCastOpCast")


test_exact_casts = rewrite_tests({p: MODELS[p] for p in ("Cast", "CastCast")})


# float16 has 11 bits of precision
test_approximate_casts = rewrite_tests({p: MODELS[p] for p in APPROXIMATE}, atol=2e-3, rtol=2e-3)


test_refuses = refusal_tests(NEAR_MISSES)


LOSSY = {
    "float, int32, bool": ("float", INT32, BOOL, [-0.2, -0.1, 0, 0.1, 0.2], [False] * 5),
    "float, float16, float": ("float", FLOAT16, FLOAT, [1e-12, 123456.7], [0, np.inf]),
}


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_casts_keep_their_results(name: str):
    source, middle, target, values, expected = LOSSY[name]
    out = "bool" if target == BOOL else source
    model, _, _ = optimize_with(model_from_text(_chain(source, middle, target, out)), "default")
    got = run_onnxruntime(model, {"x": np.array(values, dtype=np.float32)})[0]
    assert got.tolist() == expected


def test_approximate_casts_are_in_no_set():
    patterns = all_patterns()
    for name in ("CastOpCast", "ComputationCastOpCast"):
        assert patterns[name].tags == ("approximate",)


def test_half_of_an_integer_keeps_its_factor():
    text = (
        "g (int64[a] x) => (int64[a] y) <float c = {0.5}>"
        "{ l = Cast<to=1>(x) n = Mul(l, c) y = Cast<to=7>(n) }"
    )
    model, _, _ = optimize_with(model_from_text(text), "default+approximate")
    assert run_onnxruntime(model, {"x": np.array([3, 8])})[0].tolist() == [1, 4]


def _limits(elem_type: int) -> np.ndarray:
    """Values of a type where conversions go wrong: limits, powers of two, halves, NaN."""
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    if elem_type == BOOL:
        return np.array([False, True])
    if elem_type in INTEGERS:
        info = np.iinfo(dtype)
        near = {s * (1 << b) + d for b in range(64) for s in (-1, 1) for d in (-1, 0, 1)}
        return np.array(sorted(v for v in near if info.min <= v <= info.max), dtype=dtype)
    values = [s * 2.0**e * m for e in range(-30, 60) for s in (-1, 1) for m in (1, 1.5, 1.001)]
    with np.errstate(over="ignore"):
        return np.array([0.0, -0.0, np.nan, np.inf, -np.inf, *values]).astype(dtype)


@pytest.mark.parametrize("source", [BOOL, INT8, UINT8, INT32, INT64, FLOAT16, FLOAT])
def test_every_accepted_chain_is_exact(source: int):
    """A direct conversion gives what two give, on the values where they could differ."""
    types = [BOOL, *INTEGERS, *(t for t in SIGNIFICANDS if t != BFLOAT16)]
    names = {v: k.lower() for k, v in TensorProto.DataType.items()}
    x = _limits(source)
    count = 0
    for middle, target in itertools.product(types, types):
        if source == middle or not casts_directly(source, middle, target):
            continue
        two = model_from_text(_chain(names[source], middle, target, names[target]))
        one = model_from_text(_one(names[source], target, names[target]))
        expected, got = (run_onnxruntime(m, {"x": x})[0] for m in (two, one))
        np.testing.assert_array_equal(got, expected, err_msg=f"{middle} {target}")
        count += 1
    assert count >= (1 if source in (FLOAT, INT64) else 3)


def test_type_written_as_text():
    """Before opset 6, the type is a name."""
    model = model_from_text('g (float[a] x) => (float[a] y) { y = Cast<to="FLOAT">(x) }', opset=5)
    result, _, _ = optimize_with(model, "Cast")
    assert [n.op_type for n in result.graph.node] == ["Identity"]


# -- the largest errors that the docstrings tell, measured

OPERATORS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_cast_binary(op_type: str, kind: str) -> None:
    text = f"""g ({kind}[a] x, {kind}[a] k) => (float[a] y) {{
        l = Cast<to = 1>(x) r = Cast<to = 1>(k) y = {op_type}(l, r) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers(kind, 1, -1, 2)}
    error, value = difference(text, "CastCastBinary", feeds)
    normal = value > 6.1e-5
    assert (error <= 5e-4 * HALVES[kind] * value)[normal].all()


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_computation_cast_op_cast(op_type: str, kind: str) -> None:
    text = f"""g ({kind}[a] x, float[a] k) => (float[a] y) {{
        l = Cast<to = 1>(x) y = {op_type}(l, k) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers("float", 1, -1, 2)}
    error, value = difference(text, "ComputationCastOpCast", feeds)
    product = op_type in ("Mul", "Div")
    bound = 1e-3 * value if product else 5e-4 * (np.abs(feeds["k"]) + value)
    assert (error <= HALVES[kind] * bound)[value > 6.1e-5].all()


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_op_cast_two_operands(op_type: str, kind: str) -> None:
    """The result is rounded once or twice, this is the same."""
    text = f"""g ({kind}[a] x, {kind}[a] k) => ({kind}[a] y) {{ l = Cast<to = 1>(x)
        r = Cast<to = 1>(k) n = {op_type}(l, r) y = Cast<to = {TYPES[kind]}>(n) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers(kind, 1, -1, 2)}
    error, _ = difference(text, "CastOpCast", feeds)
    assert error.max() == 0


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_op_cast_constant(op_type: str, kind: str) -> None:
    constant = 1.00043
    text = f"""g ({kind}[a] x) => ({kind}[a] y) <float c = {{{constant}}}> {{
        l = Cast<to = 1>(x) n = {op_type}(l, c) y = Cast<to = {TYPES[kind]}>(n) }}"""
    error, value = difference(text, "CastOpCast", {"x": numbers(kind, 0)})
    product = op_type in ("Mul", "Div")
    bound = 1.5e-3 * value if product else 5e-4 * (constant + 2 * value)
    assert (error <= HALVES[kind] * bound)[value > 6.1e-5].all()


@pytest.mark.parametrize("op_type", ["Sigmoid", "Softmax"])
def test_cast_op_cast_function(op_type: str) -> None:
    text = f"""g (float16[a, 20] x) => (float16[a, 20] y) {{
        l = Cast<to = 1>(x) n = {op_type}(l) y = Cast<to = 10>(n) }}"""
    error, _ = difference(text, "CastOpCast", {"x": numbers("float16", 0, -3, 1).reshape(-1, 20)})
    assert error.max() <= 2e-3
