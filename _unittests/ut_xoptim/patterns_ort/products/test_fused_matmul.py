"""FusedMatMul: transpositions and scalar factors."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.products.matmul_models import FUSED_LEFT, LEFT, C, model

from xoptim.testing import check_pattern, rewrite_tests

#: what the documentation draws: name -> (before, after)
MODELS = {
    "FusedMatMul": (model(LEFT), model(FUSED_LEFT)),
    "FusedMatMulDiv": (
        model("m = MatMul(A, B) Y = Div(m, c)", "a, 4, 5", constants=C),
        model("Y = com.microsoft.FusedMatMul<alpha = 0.25>(A, B)", "a, 4, 5"),
    ),
    "FusedMatMulx2": (
        model("s = Mul(A, c) Y = MatMul(s, B)", "a, 4, 5", constants=C),
        model("Y = com.microsoft.FusedMatMul<alpha = 4.0>(A, B)", "a, 4, 5"),
    ),
    "FusedMatMulTranspose": (
        model("m = MatMul(A, B) Y = Transpose<perm = [0, 2, 1]>(m)", "a, 4, 5", y="a, 3, 4"),
        model(
            "Y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(B, A)", "a, 4, 5", y="a, 3, 4"
        ),
    ),
    "TransposeFusedMatMulB": (
        model(
            "t = Transpose<perm = [0, 2, 3, 1]>(B) Y = MatMul(A, t)",
            "a, h, 4, 5",
            "a, 3, h, 5",
            "a, h, 4, 3",
        ),
        model(
            "t = Transpose<perm = [0, 2, 1, 3]>(B) Y = com.microsoft.FusedMatMul<transB = 1>(A, t)",
            "a, h, 4, 5",
            "a, 3, h, 5",
            "a, h, 4, 3",
        ),
    ),
}

#: pattern -> case -> (before, after)
CASES = {
    "TransposeFusedMatMulB": {
        "left operand": (
            model(
                "t = Transpose<perm = [0, 2, 3, 1]>(A) Y = MatMul(t, B)",
                "a, 3, h, 5",
                "a, h, 3, 4",
                "a, h, 5, 4",
            ),
            model(
                "t = Transpose<perm = [0, 2, 1, 3]>(A)"
                " Y = com.microsoft.FusedMatMul<transA = 1>(t, B)",
                "a, 3, h, 5",
                "a, h, 3, 4",
                "a, h, 5, 4",
            ),
        ),
        "another permutation": (
            model(
                "t = Transpose<perm = [1, 2, 0]>(B) Y = MatMul(A, t)",
                "a, 4, 5",
                "3, a, 5",
                "a, 4, 3",
            ),
            model(
                "t = Transpose<perm = [1, 0, 2]>(B)"
                " Y = com.microsoft.FusedMatMul<transB = 1>(A, t)",
                "a, 4, 5",
                "3, a, 5",
                "a, 4, 3",
            ),
        ),
        "both operands": (
            model(
                "t = Transpose<perm = [1, 2, 0]>(A) u = Transpose<perm = [1, 2, 0]>(B)"
                " Y = MatMul(t, u)",
                "5, a, 4",
                "3, a, 5",
            ),
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) u = Transpose<perm = [1, 0, 2]>(B)"
                " Y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(t, u)",
                "5, a, 4",
                "3, a, 5",
            ),
        ),
    },
    "FusedMatMul": {
        "right": (
            model("t = Transpose<perm = [0, 2, 1]>(B) Y = MatMul(A, t)", "a, 4, 5", "a, 3, 5"),
            model("Y = com.microsoft.FusedMatMul<transB = 1>(A, B)", "a, 4, 5", "a, 3, 5"),
        ),
        "both": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A) u = Transpose<perm = [0, 2, 1]>(B)"
                " Y = MatMul(t, u)",
                b="a, 3, 5",
            ),
            model("Y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(A, B)", b="a, 3, 5"),
        ),
        "rank 4": (
            model(
                "t = Transpose<perm = [0, 1, 3, 2]>(A) Y = MatMul(t, B)",
                "a, 2, 5, 4",
                "a, 2, 5, 3",
                "a, 2, 4, 3",
            ),
            model(FUSED_LEFT, "a, 2, 5, 4", "a, 2, 5, 3", "a, 2, 4, 3"),
        ),
        "matrix on the right": (
            model("t = Transpose<perm = [1, 0]>(B) Y = MatMul(A, t)", "a, 4, 5", "3, 5"),
            model("Y = com.microsoft.FusedMatMul<transB = 1>(A, B)", "a, 4, 5", "3, 5"),
        ),
        "matrix on the left, default perm": (
            model("t = Transpose(A) Y = MatMul(t, B)", "5, 4"),
            model(FUSED_LEFT, "5, 4"),
        ),
        "broadcast batch": (model(LEFT, "1, 5, 4"), model(FUSED_LEFT, "1, 5, 4")),
        "already transposed": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A)"
                " Y = com.microsoft.FusedMatMul<transA = 1, alpha = 0.5>(t, B)",
                "a, 4, 5",
            ),
            model("Y = com.microsoft.FusedMatMul<alpha = 0.5>(A, B)", "a, 4, 5"),
        ),
        "scalar after": (
            model(LEFT.replace("Y =", "m =") + " Y = Mul(c, m)", constants=C),
            model("Y = com.microsoft.FusedMatMul<transA = 1, alpha = 4.0>(A, B)"),
        ),
        "Transpose is an output": (
            model(LEFT, outputs=", float[a, 4, 5] t"),
            model("t = Transpose<perm = [0, 2, 1]>(A) " + FUSED_LEFT, outputs=", float[a, 4, 5] t"),
        ),
        "one Transpose, two products": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A) m = MatMul(t, B) n = MatMul(t, B) Y = Add(m, n)"
            ),
            model(
                "m = com.microsoft.FusedMatMul<transA = 1>(A, B)"
                " n = com.microsoft.FusedMatMul<transA = 1>(A, B) Y = Add(m, n)"
            ),
        ),
        "one Transpose, both operands": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A) m = MatMul(t, t) Y = Add(m, B)",
                "a, 4, 4",
                "a, 4, 4",
                "a, 4, 4",
            ),
            model(
                "m = com.microsoft.FusedMatMul<transA = 1, transB = 1>(A, A) Y = Add(m, B)",
                "a, 4, 4",
                "a, 4, 4",
                "a, 4, 4",
            ),
        ),
    },
    "FusedMatMulDiv": {
        "Mul": (
            model("m = MatMul(A, B) Y = Mul(c, m)", "a, 4, 5", constants="float[1, 1] c = {0.5}"),
            model("Y = com.microsoft.FusedMatMul<alpha = 0.5>(A, B)", "a, 4, 5"),
        ),
        "alpha twice": (
            model(
                "m = com.microsoft.FusedMatMul<alpha = 2.0, transA = 1>(A, B) Y = Div(m, c)",
                constants=C,
            ),
            model("Y = com.microsoft.FusedMatMul<alpha = 0.5, transA = 1>(A, B)"),
        ),
        "double": (
            model(
                "m = MatMul(A, B) Y = Div(m, c)",
                "a, 4, 5",
                elem_type="double",
                constants="double c = {4}",
            ),
            model(
                "Y = com.microsoft.FusedMatMul<alpha = 0.25>(A, B)", "a, 4, 5", elem_type="double"
            ),
        ),
        "matrices": (
            model("m = MatMul(A, B) Y = Div(m, c)", "a, 5", "5, 3", "a, 3", constants=C),
            model("Y = com.microsoft.FusedMatMul<alpha = 0.25>(A, B)", "a, 5", "5, 3", "a, 3"),
        ),
    },
    "FusedMatMulx2": {
        "both operands": (
            model(
                "s = Mul(A, c) r = Div(B, k) Y = MatMul(s, r)",
                "a, 4, 5",
                constants=f"{C}, float k = {{2}}",
            ),
            model("Y = com.microsoft.FusedMatMul<alpha = 2.0>(A, B)", "a, 4, 5"),
        ),
        "squared": (
            model(
                "s = Mul(A, c) m = MatMul(s, s) Y = Add(m, B)", "4, 4", "4, 4", "4, 4", constants=C
            ),
            model(
                "m = com.microsoft.FusedMatMul<alpha = 16.0>(A, A) Y = Add(m, B)",
                "4, 4",
                "4, 4",
                "4, 4",
            ),
        ),
        "two products": (
            model(
                "s = Mul(c, A) m = MatMul(s, B) n = MatMul(s, B) Y = Add(m, n)",
                "a, 4, 5",
                constants=C,
            ),
            model(
                "m = com.microsoft.FusedMatMul<alpha = 4.0>(A, B)"
                " n = com.microsoft.FusedMatMul<alpha = 4.0>(A, B) Y = Add(m, n)",
                "a, 4, 5",
            ),
        ),
    },
    "FusedMatMulTranspose": {
        "turned flags": (
            model(
                "m = com.microsoft.FusedMatMul<transA = 1, alpha = 0.5>(A, B)"
                " Y = Transpose<perm = [0, 2, 1]>(m)",
                y="a, 3, 4",
            ),
            model("Y = com.microsoft.FusedMatMul<transA = 1, alpha = 0.5>(B, A)", y="a, 3, 4"),
        ),
        "turned broadcast": (
            model(
                "m = MatMul(A, B) Y = Transpose<perm = [0, 1, 3, 2]>(m)",
                "4, 5",
                "2, a, 5, 3",
                "2, a, 3, 4",
            ),
            model(
                "Y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(B, A)",
                "4, 5",
                "2, a, 5, 3",
                "2, a, 3, 4",
            ),
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, atol=1e-5)


test_cases = rewrite_tests(CASES, atol=1e-5)


@pytest.mark.parametrize("elem_type", ["float16", "double"])
@pytest.mark.parametrize("name", ["FusedMatMul", "FusedMatMulTranspose"])
def test_types(name: str, elem_type: str) -> None:
    """float16: CUDA has the kernel, CPU casts; products of five terms, 10 bits of precision."""
    before, after = (t.replace("float", elem_type) for t in MODELS[name])
    atol, processor = (2e-2, "CUDA") if elem_type == "float16" else (1e-12, "CPU")
    check_pattern(before, after, name, atol=atol, processor=processor)


def test_together() -> None:
    """The four patterns on one attention-like chain."""
    before = model(
        "s = Mul(A, c) t = Transpose<perm = [0, 2, 1]>(B) m = MatMul(s, t) d = Div(m, k)"
        " Y = Transpose<perm = [0, 2, 1]>(d)",
        "a, 4, 5",
        "a, 3, 5",
        "a, 3, 4",
        constants=f"{C}, float k = {{8}}",
    )
    after = model(
        "Y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(B, A)",
        "a, 4, 5",
        "a, 3, 5",
        "a, 3, 4",
    )
    patterns = "FusedMatMul,FusedMatMulDiv,FusedMatMulx2,FusedMatMulTranspose"
    check_pattern(before, after, patterns, atol=1e-5)
