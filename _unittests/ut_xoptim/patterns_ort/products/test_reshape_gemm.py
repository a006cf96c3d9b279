"""Gemm on rows of batches."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests


def model(
    body: str,
    y: str = "c, 4",
    x: str = "a, b, 3",
    w: str = "3, 4",
    outputs: str = "",
    inits: str = "",
    elem_type: str = "float",
) -> str:
    """Batches and a matrix."""
    return f"""agraph ({elem_type}[{x}] X, {elem_type}[{w}] W) => ({elem_type}[{y}] Y{outputs}) <
    int64[2] flat = {{-1, 3}}, int64[2] other = {{-1, 6}}, int64[2] rows = {{-1, 4}}{inits}
> {{
    {body}
}}"""


ROWS = "r = Reshape(X, flat) "
BACK = (
    "s = Shape<start = 0, end = 2>(X) four = Constant<value_ints = [4]>()"
    " d = Concat<axis = 0>(s, four) Y = Reshape(m, d)"
)
#: the rows of the product of batches
FLAT = "f = com.microsoft.FusedMatMul(X, W) m = Reshape(f, rows) "
SIX = "int64[3] six = {2, -1, 4}"
ROWS_OF_BATCHES = model("m = com.microsoft.FusedMatMul(X, W) Y = Reshape(m, rows)")

#: what the documentation draws: name -> (before, after)
MODELS = {
    "ReshapeGemm": (
        model(ROWS + "m = Gemm(r, W) Y = Reshape(m, six)", "2, 6, 4", "4, 3, 3", inits=f", {SIX}"),
        model(FLAT + "Y = Reshape(m, six)", "2, 6, 4", "4, 3, 3", inits=f", {SIX}"),
    ),
    "ReshapeGemmReshape": (
        model(ROWS + "m = Gemm(r, W) " + BACK, "a, b, 4"),
        model("Y = com.microsoft.FusedMatMul(X, W)", "a, b, 4"),
    ),
}

#: pattern -> case -> (before, after)
CASES = {
    "ReshapeGemm(even_slower=True)": {
        "no Reshape after": (model(ROWS + "Y = Gemm(r, W)"), ROWS_OF_BATCHES),
        "the product is an output": (
            model(ROWS + "m = Gemm(r, W) " + BACK, "a, b, 4", outputs=", float[c, 4] m"),
            model(FLAT + BACK, "a, b, 4", outputs=", float[c, 4] m"),
        ),
        "alpha and transB": (
            model(ROWS + "Y = Gemm<alpha = 0.5, transB = 1>(r, W)", w="4, 3"),
            model(
                "m = com.microsoft.FusedMatMul<alpha = 0.5, transB = 1>(X, W) Y = Reshape(m, rows)",
                w="4, 3",
            ),
        ),
        "beta without bias": (model(ROWS + "Y = Gemm<beta = 3.0>(r, W)"), ROWS_OF_BATCHES),
        "rows are an output": (
            model(ROWS + "Y = Gemm(r, W)", outputs=", float[c, 3] r"),
            model(
                ROWS + "m = com.microsoft.FusedMatMul(X, W) Y = Reshape(m, rows)",
                outputs=", float[c, 3] r",
            ),
        ),
    },
    "ReshapeGemmReshape": {
        "restored, alpha and transB": (
            model(ROWS + "m = Gemm<alpha = 2.0, transB = 1>(r, W) " + BACK, "a, b, 4", w="4, 3"),
            model(
                "Y = com.microsoft.FusedMatMul<alpha = 2.0, transB = 1>(X, W)", "a, b, 4", w="4, 3"
            ),
        ),
        "static": (
            model(
                ROWS + "m = Gemm(r, W) Y = Reshape(m, six)", "2, 5, 4", "2, 5, 3", inits=f", {SIX}"
            ),
            model("Y = com.microsoft.FusedMatMul(X, W)", "2, 5, 4", "2, 5, 3"),
        ),
    },
    "ReshapeGemm,ReshapeGemmReshape": {
        "dynamic dimensions after": (
            model(ROWS + "m = Gemm(r, W) Y = Reshape(m, six)", "2, d, 4", inits=f", {SIX}"),
            model(FLAT + "Y = Reshape(m, six)", "2, d, 4", inits=f", {SIX}"),
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, atol=1e-5)


test_cases = rewrite_tests(CASES, atol=1e-5)


#: pattern -> case -> (model, reason)
REFUSED = {
    "ReshapeGemm": {
        # (a, b, 3) read as rows of 6: the last dimension is not the one of the matrix
        "another last dimension": (
            model("r = Reshape(X, other) Y = Gemm(r, W)", x="a, 2, 3", w="6, 4"),
            "last dimension changes",
        ),
        "unknown last dimension": (
            model(ROWS + "Y = Gemm(r, W)", x="a, b, k"),
            "last dimension changes",
        ),
        "bias": (
            model(ROWS + "Y = Gemm(r, W, B)", inits=", float[4] B = {1, 2, 3, 4}"),
            "there is a bias",
        ),
        "transA": (
            model(ROWS + "Y = Gemm<transA = 1>(r, W)", "3, 4", "2, 2, 3", "4, 4"),
            "rows are transposed",
        ),
        "int64": (model(ROWS + "Y = Gemm(r, W)", elem_type="int64"), "for this type"),
        "two dimensions": (
            model(ROWS + "Y = Gemm(r, W)", "a, 4", "a, 3"),
            "at least three dimensions",
        ),
        "null alpha": (model(ROWS + "Y = Gemm<alpha = 0.0>(r, W)"), "alpha is null"),
        "no Reshape after": (
            model(ROWS + "Y = Gemm(r, W)"),
            "no Reshape after meets the new one, even_slower=True applies it",
        ),
        "no Reshape": (model("Y = Gemm(X, W)", "a, 4", "a, 3"), "no Reshape before"),
        "unknown width": (model(ROWS + "Y = Gemm(r, W)", "c, n", w="3, n"), "not a known integer"),
    },
}


test_refuses = refusal_tests(REFUSED)
