"""Parts of models as local functions, which stay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import check_pattern, model_from_text, refusal_tests, rewrite_tests

HALVES = "g (float[a, 6] x, float[a, 6] z) => (float[a, 6] y)"
_ROTARY = (
    f"{HALVES} {{ a1, b1 = Split <axis = -1, num_outputs = 2> (x) n = Neg(b1)"
    "c = Concat <axis = 1> (n, a1) y = Mul(z, c) }"
)
X = "g (float[a, b] x) => (float[a, b] y)"
C = "<float d = {3}, float a1 = {0.044715}, float[1] b1 = {0.7978846}>"
_TANH = f"{X} {C} {{ p = Pow(x, d) m = Mul(p, a1) s = Add(x, m) n = Mul(b1, s) y = Tanh(n) }}"
HEAD = "g (float[a, 4, 6] x) => (float[a, 2, 4, 3] q, float[a, 2, 4, 3] k, float[a, 2, 4, 3] v)"
_W = ", ".join(
    f"float[6, 6] w{i} = {{{', '.join(str((i * 7 + j) % 5 - 2) for j in range(36))}}}"
    for i in range(3)
)
WEIGHTS = f"<int64[4] s = {{0, 0, 2, 3}}, {_W}>"
_PACKED = (
    f"{HEAD} {WEIGHTS} {{"
    + " ".join(
        f"m{i} = MatMul(x, w{i}) r{i} = Reshape(m{i}, s) {o} = Transpose <perm = [0, 2, 1, 3]> (r{i})"
        for i, o in enumerate("qkv")
    )
    + "}"
)
MODELS = {
    "FunctionSplitRotaryMul": (
        _ROTARY,
        f"{HALVES} <int64[2] h = {{3, 3}}> {{ y = investigation.SplitRotaryMul(x, h, z) }}",
    ),
    "FunctionPowTanh": (_TANH, f"{X} {C} {{ y = investigation.PowTanh(x, d, a1, b1) }}"),
    "FunctionPackedMatMul": (
        _PACKED,
        f"{HEAD} {WEIGHTS} {{ q, k, v = investigation.PackedMatMul3 <perm = [0, 2, 1, 3]>"
        "(x, s, w0, w1, w2) }",
        {"atol": 1e-5, "rtol": 1e-5},
    ),
}
REFUSED = {
    "FunctionSplitRotaryMul": {
        "the first half": (
            _ROTARY.replace("Neg(b1)", "Neg(a1)").replace("(n, a1)", "(b1, n)"),
            "the second half does not change its sign",
        ),
        "no product": (_ROTARY.replace("Mul(z, c)", "Add(z, c)"), "is not the only use"),
        "squared": (_ROTARY.replace("Mul(z, c)", "Mul(c, c)"), "is not the only use"),
        "uneven": (
            _ROTARY.replace("<axis = -1, num_outputs = 2> (x)", "<axis = -1> (x, t)").replace(
                "] y)", "] y) <int64[2] t = {2, 4}>"
            ),
            "the halves may not have the same size",
        ),
    },
    "FunctionPowTanh": {
        "a factor that is not constant": (
            _TANH.replace("float d", "float e").replace("] x)", "] x, float d)"),
            "not a scalar constant",
        ),
        "another operand": (_TANH.replace("Add(x, m)", "Add(p, m)"), ""),
        "an output": (_TANH.replace("b] y)", "b] y, float[a, b] s)"), "used elsewhere"),
    },
    "FunctionPackedMatMul": {
        "a null dimension": (
            _PACKED.replace("Reshape(m1, s)", "Reshape<allowzero = 1>(m1, s)"),
            "not reshaped to the same shape",
        ),
        "weights of several sizes": (
            _PACKED.replace(
                "float[6, 6] w1 = {",
                "float[6, 12] w1 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0,"
                " 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ",
            )
            .replace("float[a, 2, 4, 3] k", "float[a, 2, 4, 6] k")
            .replace("{0, 0, 2, 3}", "{0, 0, 2, -1}"),
            "the weights do not have the same shape",
        ),
        "one product": (
            f"{HEAD} {WEIGHTS} {{ q = MatMul(x, w0) }}".replace(
                "float[a, 2, 4, 3] q, float[a, 2, 4, 3] k, float[a, 2, 4, 3] v", "float[a, 4, 6] q"
            ),
            "not the first of several",
        ),
        "another shape": (
            _PACKED.replace("Reshape(m1, s)", "Reshape(m1, t)").replace(
                "<int64[4] s", "<int64[4] t = {-1, 4, 2, 3}, int64[4] s"
            ),
            "not reshaped to the same shape",
        ),
        "another permutation": (
            _PACKED.replace(
                "k = Transpose <perm = [0, 2, 1, 3]>", "k = Transpose <perm = [0, 2, 3, 1]>"
            ),
            "the permutations differ",
        ),
        "a weight that is computed": (
            _PACKED.replace("MatMul(x, w1)", "MatMul(x, u)").replace(
                "6] x)", "6] x, float[6, 6] u)"
            ),
            "not constant matrices",
        ),
        "an inner result is needed": (
            _PACKED.replace("3] v)", "3] v, float[a, 4, 6] m1)"),
            "is not the only use",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_functions_stay(name: str) -> None:
    """The functions are in the model that is written, which is valid on its own."""
    options = OptimizationOptions(patterns="investigation", verifies=True)
    builder = GraphBuilder(
        model_from_text(MODELS[name][0]), infer_shapes_options=True, optimization_options=options
    )
    model = builder.to_onnx()
    assert [n.domain for n in model.graph.node] == ["investigation"]
    assert [f.domain for f in model.functions] == ["investigation"]


def test_two_calls_share_a_function() -> None:
    text = f"{X} {C} {{ p = Pow(x, d) m = Mul(p, a1) s = Add(x, m) n = Mul(b1, s) t = Tanh(n)"
    text += " p2 = Pow(t, d) m2 = Mul(p2, a1) s2 = Add(t, m2) n2 = Mul(s2, a1) y = Tanh(n2) }"
    model = check_pattern(text, None, "FunctionPowTanh")
    assert len(model.graph.node) == 2 and len(model.functions) == 1


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_sizes(half: int, rows: int, known: bool) -> None:
    text = _ROTARY.replace("6]", f"{2 * half}]")
    if known:
        text = text.replace("[a,", f"[{rows},")
    check_pattern(text, None, "FunctionSplitRotaryMul", sizes=[{"a": rows}])
