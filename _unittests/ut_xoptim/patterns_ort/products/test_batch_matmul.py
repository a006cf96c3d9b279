"""FusedMatMul of operands whose batch is behind the rows."""

from __future__ import annotations

from ut_xoptim.patterns_ort.products.matmul_models import model

from xoptim.testing import refusal_tests, rewrite_tests

#: what the documentation draws: name -> (before, after)
MODELS = {
    "FusedMatMulBatch": (
        model(
            "s = Transpose<perm = [1, 0, 2]>(A) t = Transpose<perm = [1, 2, 0]>(B) Y = MatMul(s, t)",
            "n, h, 5",
            "m, h, 5",
            "h, n, m",
        ),
        model(
            "Y = com.microsoft.FusedMatMul<transB = 1, transBatchA = 1, transBatchB = 1>(A, B)",
            "n, h, 5",
            "m, h, 5",
            "h, n, m",
        ),
    ),
}

#: pattern -> case -> (before, after)
CASES = {
    "FusedMatMulBatch": {
        "one operand, a broadcast batch": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)",
                "4, h, 5",
                "1, 5, 3",
                "h, 4, 3",
            ),
            model(
                "Y = com.microsoft.FusedMatMul<transBatchA = 1>(A, B)",
                "4, h, 5",
                "1, 5, 3",
                "h, 4, 3",
            ),
        ),
        "two axes of the batch": (
            model(
                "t = Transpose<perm = [1, 2, 0, 3]>(B) Y = MatMul(A, t)",
                "a, b, 4, 5",
                "5, a, b, 3",
                "a, b, 4, 3",
            ),
            model(
                "Y = com.microsoft.FusedMatMul<transBatchB = 1>(A, B)",
                "a, b, 4, 5",
                "5, a, b, 3",
                "a, b, 4, 3",
            ),
        ),
        "swapped twice, a factor": (
            model(
                "t = Transpose<perm = [1, 2, 0]>(A)"
                " Y = com.microsoft.FusedMatMul<transA = 1, alpha = 2.0>(t, B)",
                "4, h, 5",
                "h, 5, 3",
                "h, 4, 3",
            ),
            model(
                "Y = com.microsoft.FusedMatMul<alpha = 2.0, transBatchA = 1>(A, B)",
                "4, h, 5",
                "h, 5, 3",
                "h, 4, 3",
            ),
        ),
        "the Transpose is an output": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)",
                "4, h, 5",
                "h, 5, 3",
                "h, 4, 3",
                outputs=", float[h, 4, 5] t",
            ),
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = com.microsoft.FusedMatMul<transBatchA = 1>(A, B)",
                "4, h, 5",
                "h, 5, 3",
                "h, 4, 3",
                outputs=", float[h, 4, 5] t",
            ),
        ),
    },
}

#: pattern -> case -> (model, reason)
REFUSED = {
    "FusedMatMulBatch": {
        "another axis": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(A) Y = MatMul(t, B)",
                "h, 5, 4",
                "h, 5, 3",
                "h, 4, 3",
            ),
            "moves the first axis",
        ),
        "heads beside the batch": (
            model(
                "t = Transpose<perm = [0, 2, 1, 3]>(A) Y = MatMul(t, B)",
                "a, 4, h, 5",
                "a, h, 5, 3",
                "a, h, 4, 3",
            ),
            "moves the first axis",
        ),
        "no Transpose": (model("Y = MatMul(A, B)", "a, 4, 5"), "moves the first axis"),
        "another rank": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)", "4, h, 5", "5, 3", "h, 4, 3"
            ),
            "the same rank",
        ),
        "no row": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)",
                "4, h, k",
                "h, k, 3",
                "h, 4, 3",
            ),
            "may sum over an empty dimension",
        ),
        "moved already": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A)"
                " Y = com.microsoft.FusedMatMul<transBatchA = 1>(t, B)",
                "h, 4, 5",
                "h, 5, 3",
                "h, 4, 3",
            ),
            "batch dimension",
        ),
        "integers": (
            model(
                "t = Transpose<perm = [1, 0, 2]>(A) Y = MatMul(t, B)",
                "4, h, 5",
                "h, 5, 3",
                "h, 4, 3",
                "int64",
            ),
            "for this type",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)
test_refused = refusal_tests(REFUSED)
