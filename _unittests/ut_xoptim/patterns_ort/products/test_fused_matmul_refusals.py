"""FusedMatMul: what is refused."""

from __future__ import annotations

from ut_xoptim.patterns_ort.products.matmul_models import LEFT, C, model

from xoptim.testing import refusal_tests

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
            "for this type",
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
            "cannot hold",
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
            "for this type",
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
