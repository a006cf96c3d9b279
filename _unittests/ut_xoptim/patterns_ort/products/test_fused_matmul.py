"""FusedMatMul: transpositions and scalar factors."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xoptim.patterns_ort.products.matmul_models import FUSED_LEFT, LEFT, C, model

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

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


# -- FusedMatMul is never written for a product that may sum over an empty dimension

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
    head = """g (float[a, n, k] C, float[a, n, 1] D, float[a, m, k] E, float[a, m, 1] F)
        => (float[a, n, m] Y) { A = Concat<axis = 2>(C, D) B = Concat<axis = 2>(E, F)"""
    before = f"{head} t = Transpose<perm = [0, 2, 1]>(B) Y = MatMul(A, t) }}"
    after = f"{head} Y = com.microsoft.FusedMatMul<transB = 1>(A, B) }}"
    sizes = [{"a": 2, "n": 3, "m": 4, "k": 0}, {"a": 0, "n": 3, "m": 4, "k": 2}]
    check_pattern(before, after, "FusedMatMul", atol=1e-5, sizes=sizes)


# -- FusedMatMul: what is refused

MATRICES = {"a": "5, 4", "b": "5, 3", "y": "4, 3"}
NOT_SCALAR = "float[3] c = {1, 2, 3}"

#: pattern -> case -> (model, reason)
REFUSED = {
    "FusedMatMul": {
        "int64": (model(LEFT, elem_type="int64"), "for this type"),
        "float16": (model(LEFT, elem_type="float16"), "for this type"),
        "matrices": (
            model("t = Transpose<perm = [1, 0]>(A) Y = MatMul(t, B)", **MATRICES),
            "two dimensions",
        ),
        "other perm": (
            model("t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)", "4, a, 5"),
            "last two dimensions transposed",
        ),
        "default perm": (
            model("t = Transpose(A) Y = MatMul(t, B)", "5, 4, a"),
            "last two dimensions transposed",
        ),
        "no Transpose": (model("Y = MatMul(A, B)", "a, 4, 5"), "last two dimensions transposed"),
        "a vector": (model(LEFT, b="5", y="a, 4"), "at least two dimensions"),
        "transBatch": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A)"
                " Y = com.microsoft.FusedMatMul<transBatchA = 1>(t, B)",
                "4, 5, a",
                "a, 5, 3",
                "a, 4, 3",
            ),
            "batch dimension",
        ),
        "product of a mul": (
            model("t = Transpose<perm = [0, 2, 1]>(B) Y = Mul(A, t)", "a, 3, 5", y="a, 3, 5"),
            None,
        ),
    },
    "FusedMatMulDiv": {
        "int32 scalar": (
            model(
                "m = MatMul(A, B) Y = Mul(m, c)",
                "a, 4, 5",
                elem_type="int32",
                constants="int32 c = {2}",
            ),
            "no product by a scalar",
        ),
        "not a scalar": (
            model("m = MatMul(A, B) Y = Mul(m, c)", "a, 4, 5", constants=NOT_SCALAR),
            "no product by a scalar",
        ),
        "scalar is an input": (
            model("m = MatMul(A, A) Y = Mul(m, B)", "4, 4", "1", "4, 4"),
            "no product by a scalar",
        ),
        "scalar of a higher rank": (
            model(
                "m = MatMul(A, B) Y = Mul(m, c)",
                "4, 5",
                "5, 3",
                "1, 4, 3",
                constants="float[1, 1, 1] c = {2}",
            ),
            "no product by a scalar",
        ),
        "inverse": (
            model("m = MatMul(A, B) Y = Div(c, m)", "a, 4, 5", constants=C),
            "no product by a scalar",
        ),
        "squared result": (
            model("m = MatMul(A, B) Y = Mul(m, m)", "a, 4, 5"),
            "no product by a scalar",
        ),
        "division by zero": (
            model("m = MatMul(A, B) Y = Div(m, c)", "a, 4, 5", constants="float c = {0}"),
            "no product by a scalar",
        ),
        "null factor": (
            model("m = MatMul(A, B) Y = Mul(m, c)", "a, 4, 5", constants="float c = {0}"),
            "no product by a scalar",
        ),
        "double precision": (
            model(
                "m = MatMul(A, B) Y = Mul(m, c)",
                "a, 4, 5",
                elem_type="double",
                constants="double c = {0.1}",
            ),
            "cannot hold",
        ),
        "product is an output": (
            model(
                "m = MatMul(A, B) Y = Mul(m, c)",
                "a, 4, 5",
                outputs=", float[a, 4, 3] m",
                constants=C,
            ),
            "no product by a scalar",
        ),
    },
    "FusedMatMulx2": {
        "int64 scaled": (
            model(
                "s = Mul(A, c) Y = MatMul(s, B)",
                "a, 4, 5",
                elem_type="int64",
                constants="int64 c = {2}",
            ),
            "no operand is scaled",
        ),
        "scaled is used elsewhere": (
            model(
                "s = Mul(A, c) m = MatMul(s, B) r = Relu(s) Y = Add(m, r)",
                "4, 4",
                "4, 4",
                "4, 4",
                constants=C,
            ),
            "used elsewhere",
        ),
        "scaled is an output": (
            model(
                "s = Mul(A, c) Y = MatMul(s, B)",
                "a, 4, 5",
                outputs=", float[a, 4, 5] s",
                constants=C,
            ),
            "used elsewhere",
        ),
        "not scaled": (model("Y = MatMul(A, B)", "a, 4, 5"), "no operand is scaled"),
    },
    "FusedMatMulTranspose": {
        "a weight": (
            """g (float[a, 4, 2] A) => (float[a, 2, 4] Y) <float[2, 2] w = {1, 2, 3, 4}> {
                m = MatMul(A, w) Y = Transpose<perm = [0, 2, 1]>(m)
            }""",
            "the right operand is a constant",
        ),
        "int64 transposed": (
            model(
                "m = MatMul(A, B) Y = Transpose<perm = [0, 2, 1]>(m)",
                "a, 4, 5",
                y="a, 3, 4",
                elem_type="int64",
            ),
            "for this type",
        ),
        "transBatch turned": (
            model(
                "m = com.microsoft.FusedMatMul<transBatchB = 1>(A, B)"
                " Y = Transpose<perm = [0, 2, 1]>(m)",
                "a, 4, 5",
                "5, a, 3",
                "a, 3, 4",
            ),
            "batch dimension",
        ),
        "transposed is an output": (
            model(
                "m = MatMul(A, B) Y = Transpose<perm = [0, 2, 1]>(m)",
                "a, 4, 5",
                y="a, 3, 4",
                outputs=", float[a, 4, 3] m",
            ),
            "only use does not transpose",
        ),
    },
    "TransposeFusedMatMulB": {
        "transposed twice": (
            model(
                "t = Transpose<perm = [0, 2, 3, 1]>(B) Y = com.microsoft.FusedMatMul<transB = 1>(A, t)",
                "a, h, 4, 3",
                "a, 3, h, 5",
                "a, h, 4, 5",
            ),
            "transposed twice",
        ),
        "transposed and used elsewhere": (
            model(
                "t = Transpose<perm = [0, 2, 3, 1]>(B) Y = MatMul(A, t)",
                "a, h, 4, 5",
                "a, 3, h, 5",
                "a, h, 4, 3",
                outputs=", float[a, h, 5, 3] t",
            ),
            "used elsewhere",
        ),
        "int64 moved": (
            model(
                "t = Transpose<perm = [0, 2, 3, 1]>(B) Y = MatMul(A, t)",
                "a, h, 4, 5",
                "a, 3, h, 5",
                "a, h, 4, 3",
                "int64",
            ),
            "for this type",
        ),
        "the last axis goes elsewhere": (
            model(
                "t = Transpose<perm = [0, 2, 1, 3]>(A) Y = MatMul(t, B)",
                "a, 3, h, 5",
                "a, h, 5, 4",
                "a, h, 3, 4",
            ),
            "no Transpose brings the last axis",
        ),
        "the last two only": (
            model(
                "t = Transpose<perm = [0, 1, 3, 2]>(A) Y = MatMul(t, B)",
                "a, h, 3, 5",
                "a, h, 3, 4",
                "a, h, 5, 4",
            ),
            "no Transpose brings the last axis",
        ),
    },
}


test_refuses = refusal_tests(REFUSED)
