"""One number that multiplies an operand or the result of Gemm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

ABC = "g (float[a, b] A, float[b, c] B, float[c] C) => (float[a, c] y)"
AB = "g (float[a, b] A, float[b, c] B) => (float[a, c] y)"
DOUBLE = "g (double[a, b] A, double[b, c] B) => (double[a, c] y)"
K = "float k = {4}"

MODELS = {
    "GemmScalar": {
        "a bias": (
            f"{ABC} <{K}> {{ r = Gemm<alpha=0.5>(A, B, C) y = Mul(r, k) }}",
            f"{ABC} {{ y = Gemm<alpha=2.0, beta=4.0>(A, B, C) }}",
        ),
        "no bias": (
            f"{AB} <float[1, 1] k = {{4}}> {{ r = Gemm(A, B) y = Mul(k, r) }}",
            f"{AB} {{ y = Gemm<alpha=4.0>(A, B) }}",
        ),
        "a division": (
            f"{ABC} <{K}> {{ r = Gemm<beta=2.0>(A, B, C) y = Div(r, k) }}",
            f"{ABC} {{ y = Gemm<alpha=0.25, beta=0.5>(A, B, C) }}",
        ),
        "a double": (
            f"{DOUBLE} <double k = {{0.25}}> {{ r = Gemm(A, B) y = Mul(r, k) }}",
            f"{DOUBLE} {{ y = Gemm<alpha=0.25>(A, B) }}",
        ),
    },
    "ScalarGemm": {
        "the first operand": (
            f"{ABC} <{K}> {{ r = Mul(A, k) y = Gemm<alpha=0.5, beta=3.0>(r, B, C) }}",
            f"{ABC} {{ y = Gemm<alpha=2.0, beta=3.0>(A, B, C) }}",
        ),
        "the second operand": (
            f"{AB} <{K}> {{ r = Div(B, k) y = Gemm(A, r) }}",
            f"{AB} {{ y = Gemm<alpha=0.25>(A, B) }}",
        ),
        "both": (
            f"{AB} <{K}, float[1] l = {{8}}> {{ r = Div(A, k) s = Mul(B, l) y = Gemm(r, s) }}",
            f"{AB} {{ y = Gemm<alpha=2.0>(A, B) }}",
        ),
    },
}

ELSEWHERE = "g (float[a, b] A, float[b, c] B) => (float[a, c] y, float[d, e] r)"
NEAR_MISSES = {
    "GemmScalar": {
        "used elsewhere": (
            f"{ELSEWHERE} <{K}> {{ r = Gemm(A, B) y = Mul(r, k) }}",
            "the product is used elsewhere",
        ),
        "not constant": (
            "g (float[a, b] A, float[b, c] B, float k) => (float[a, c] y)"
            "{ r = Gemm(A, B) y = Mul(r, k) }",
            "not one constant number",
        ),
        "no column": (
            "g (float[a, b] A, float[b, 0] B) => (float[a, 0] y) <float[0] k = {}>"
            "{ r = Gemm(A, B) y = Mul(r, k) }",
            "not one constant number",
        ),
        "columns": (
            "g (float[a, b] A, float[b, 2] B) => (float[a, 2] y) <float[2] k = {1, 2}>"
            "{ r = Gemm(A, B) y = Mul(r, k) }",
            "not one constant number",
        ),
        "three dimensions": (
            "g (float[a, b] A, float[b, c] B) => (float[1, a, c] y) <float[1, 1, 1] k = {2}>"
            "{ r = Gemm(A, B) y = Mul(r, k) }",
            "not one constant number",
        ),
        "a constant divided": (
            f"{AB} <{K}> {{ r = Gemm(A, B) y = Div(k, r) }}",
            "not one constant number",
        ),
        "null": (
            f"{AB} <float k = {{0}}> {{ r = Gemm(A, B) y = Mul(r, k) }}",
            "not one constant number, finite and not null",
        ),
        "overflow": (
            f"{AB} <float k = {{1e38}}> {{ r = Gemm<alpha=1e6>(A, B) y = Mul(r, k) }}",
            "alpha would be null, or not finite",
        ),
        "not a float": (
            f"{DOUBLE} <double k = {{0.1}}> {{ r = Gemm(A, B) y = Mul(r, k) }}",
            "alpha is not precise enough",
        ),
        "integers": (
            "g (int32[a, b] A, int32[b, c] B) => (int32[a, c] y) <int32 k = {2}>"
            "{ r = Gemm(A, B) y = Mul(r, k) }",
            "not one constant number",
        ),
    },
    "ScalarGemm": {
        "the half of a Gelu": (
            f"{AB} <float one = {{1}}, float half = {{0.5}}> {{ e = Erf(A) s = Add(e, one)"
            " m = Mul(A, s) c1 = Mul(m, half) y = Gemm(c1, B) }",
            "it is a part of a Gelu",
        ),
        "used elsewhere": (
            f"{ELSEWHERE} <{K}> {{ r = Mul(A, k) y = Gemm(r, B) }}",
            "what the product reads is used elsewhere",
        ),
        "columns": (
            "g (float[a, 2] A, float[2, c] B) => (float[a, c] y) <float[2] k = {1, 2}>"
            "{ r = Mul(A, k) y = Gemm(r, B) }",
            "not one constant number",
        ),
        "the bias": (
            f"{ABC} <{K}> {{ r = Mul(C, k) y = Gemm(A, B, r) }}",
            "no .* before",
        ),
        "null": (
            f"{AB} <float k = {{0}}> {{ r = Mul(A, k) y = Gemm(r, B) }}",
            "not one constant number, finite and not null",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(NEAR_MISSES)


def model_of(op: str, number: float, alpha: float, turned: tuple[int, int], before: bool) -> str:
    """A Gemm with one number before or after it."""
    left, right = (("b, a", "a, b")[not turned[0]], ("c, b", "b, c")[not turned[1]])
    attributes = f"transA={turned[0]}, transB={turned[1]}, alpha={alpha}"
    nodes = (
        f"r = {op}(A, k) y = Gemm<{attributes}>(r, B, C)"
        if before
        else f"r = Gemm<{attributes}>(A, B, C) y = {op}(r, k)"
    )
    inputs = f"float[{left}] A, float[{right}] B, float[a, c] C"
    return f"g ({inputs}) => (float[a, c] y) <float k = {{{number}}}> {{ {nodes} }}"


def check_any(case: tuple[str, float, float, tuple[int, int], bool], size: int) -> None:
    """The rewrite applies, whatever the attributes and the sizes."""
    sizes = {"a": size, "b": 2, "c": 3}
    after = check_pattern(
        model_of(*case), None, ["GemmScalar", "ScalarGemm"], atol=1e-3, rtol=1e-4, sizes=sizes
    )
    assert [n.op_type for n in after.graph.node] == ["Gemm"]


CASES = st.tuples(
    st.sampled_from(["Mul", "Div"]),
    st.sampled_from([-3.0, 0.125, 0.1, 7.0]),
    st.sampled_from([1.0, -0.5, 3.0]),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
    st.booleans(),
)


@settings(max_examples=8, deadline=None)
@given(CASES, st.integers(0, 3))
def test_any(case: tuple[str, float, float, tuple[int, int], bool], size: int) -> None:
    check_any(case, size)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(CASES, st.integers(0, 4))
def test_many(case: tuple[str, float, float, tuple[int, int], bool], size: int) -> None:
    check_any(case, size)
