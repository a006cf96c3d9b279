"""FusedMatMul is never written for a product that may sum over an empty dimension."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, model_from_text

EMPTY = "may sum over an empty dimension"


def product(body: str, a: str, b: str, y: str, rows: str = "") -> str:
    """Two operands, a scalar constant."""
    return f"""agraph (float[{a}] A, float[{b}] B) => (float[{y}] Y) <float c = {{4}}{rows}> {{
    {body}
}}"""


#: pattern -> (body, shapes of A, B, Y), K is the dimension the product sums over
PRODUCTS = {
    "FusedMatMul": (
        "t = Transpose<perm = [0, 2, 1]>(A) u = Transpose<perm = [0, 2, 1]>(B) Y = MatMul(t, u)",
        ("a, K, 4", "a, 3, K", "a, 4, 3"),
    ),
    "FusedMatMulDiv": (
        "m = MatMul(A, B) Y = Div(m, c)",
        ("a, 4, K", "a, K, 3", "a, 4, 3"),
    ),
    "FusedMatMulx2": ("s = Mul(A, c) Y = MatMul(s, B)", ("a, 4, K", "a, K, 3", "a, 4, 3")),
    "FusedMatMulTranspose": (
        "m = com.microsoft.FusedMatMul<transA = 1>(A, B) Y = Transpose<perm = [0, 2, 1]>(m)",
        ("a, K, 4", "a, K, 3", "a, 3, 4"),
    ),
    "TransposeFusedMatMulB": (
        "t = Transpose<perm = [0, 2, 3, 1]>(B) Y = MatMul(A, t)",
        ("a, h, 4, K", "a, 3, h, K", "a, h, 4, 3"),
    ),
    "ReshapeGemm": (
        "s = Shape<start = 2>(A) e = Concat<axis = 0>(left, s) r = Reshape(A, e) Y = Gemm(r, B)",
        ("a, 5, K", "K, 3", "c, 3"),
    ),
}


@pytest.mark.parametrize(
    ("name", "k"),
    # -1 has no meaning in the target of a Reshape when the other dimension is 0
    [(n, k) for n in PRODUCTS for k in ("k", "0") if (n, k) != ("ReshapeGemm", "0")],
)
def test_refused(name: str, k: str) -> None:
    body, shapes = PRODUCTS[name]
    rows = ", int64[1] left = {-1}" if name == "ReshapeGemm" else ""
    a, b, y = (s.replace("K", k) for s in shapes)
    check_no_match(product(body, a, b, y, rows), name, EMPTY)


@pytest.mark.parametrize(("a", "b"), [("a, 5, 4", "a, k, 3"), ("a, k, 4", "a, 5, 3")])
def test_one_operand_tells_the_length(a: str, b: str) -> None:
    before = product("t = Transpose<perm = [0, 2, 1]>(A) Y = MatMul(t, B)", a, b, "a, 4, 3")
    after = product("Y = com.microsoft.FusedMatMul<transA = 1>(A, B)", a, b, "a, 4, 3")
    rng = np.random.default_rng(0)
    feeds = {
        "A": rng.standard_normal((2, 5, 4)).astype(np.float32),
        "B": rng.standard_normal((2, 5, 3)).astype(np.float32),
    }
    check_pattern(model_from_text(before), after, "FusedMatMul", atol=1e-5, feeds=[feeds])


def test_at_least_one_by_construction() -> None:
    """k + 1 is not null whatever k is; the batch and the other dimensions may be."""
    shapes = ('a, n, "k+1"', 'a, m, "k+1"', "a, n, m")
    before = product("t = Transpose<perm = [0, 2, 1]>(B) Y = MatMul(A, t)", *shapes)
    after = product("Y = com.microsoft.FusedMatMul<transB = 1>(A, B)", *shapes)
    sizes = [{"a": 2, "n": 3, "m": 4, "k": 0}, {"a": 0, "n": 3, "m": 4, "k": 2}]
    check_pattern(before, after, "FusedMatMul", atol=1e-5, sizes=sizes)
