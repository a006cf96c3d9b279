"""Gemm on the rows of a sequence."""

from __future__ import annotations

import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern
from xoptim.testing import check_pattern, model_from_text, refusal_tests, rewrite_tests

W = "float[3, 4] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}"
V = "float[4, 3] V = {1, -2, 3, 4, -5, 6, 7, 8, 9, 1, 2, 3}"
WIDE = "float[4, 2] V = {1, -2, 3, 4, -5, 6, 7, 8}"
VECTORS = "float[4] B = {1, -1, 2, 0.5}, float[3] C = {0.5, 1, -1}, float one = {1}"
ROWS = "int64[2] flat = {-1, 3}"


def model(
    body: str, y: str, x: str = "a, b, 3", inits: str = "", kind: str = "float", outputs: str = ""
) -> str:
    """A sequence, two matrices, their biases."""
    constants = f"{W}, {V}, {VECTORS}, {ROWS}"
    if "[4, 2] V" in inits:
        constants, inits = constants.replace(V, inits), ""
    constants += f", {inits}" if inits else ""
    constants = constants.replace("float", kind)
    return f"agraph ({kind}[{x}] X) => ({kind}[{y}] Y{outputs}) < {constants} > {{ {body} }}"


FIRST = "m = MatMul(X, W) s = Add(m, B) "
HIDDEN = "r = Reshape(X, flat) h = Gemm(r, W, B) "
BACK = "t = Shape(X) Y = Reshape<allowzero = 1>(p, t)"
LAST = "q = MatMul(f, V) Y = Add(q, C)"
AFTER = "p = Gemm(f, V, C) " + BACK
TWO = "int64[3] to = {-1, 20, 4}"
RESIDUAL = "float[a, 3] X, float[a, 4] R"


def residual(
    body: str, inputs: str = RESIDUAL, kind: str = "float", outputs: str = "", out: str = "a, 4"
) -> str:
    """A product of matrices and what it is added to."""
    text = f"agraph ({inputs}) => (float[{out}] Y{outputs}) <{W}, {VECTORS}> {{ {body} }}"
    return text.replace("float", kind)


#: what the documentation draws: name -> (before, after)
MODELS = {
    "FeedForwardGemm": (
        model(FIRST + "f = com.microsoft.Gelu(s) " + LAST, "a, b, 3"),
        model(HIDDEN + "f = com.microsoft.Gelu(h) " + AFTER, "a, b, 3"),
    ),
    "RowsGemm": (
        model("m = MatMul(X, W) Y = Add(m, B)", "a, 20, 4", "a, 20, 3"),
        model("r = Reshape(X, flat) g = Gemm(r, W, B) Y = Reshape(g, to)", "a, 20, 4", "a, 20, 3", TWO),
    ),
    "GemmResidual": (
        residual("g = Gemm(X, W, B) Y = Add(g, R)"),
        residual("g = Gemm(X, W, R) Y = Add(g, B)"),
    ),
    "SwitchReshapeGelu": (
        model(HIDDEN + "q = Reshape(h, to) Y = com.microsoft.FastGelu(q)", "a, 20, 4", "a, 20, 3", TWO),
        model(HIDDEN + "f = com.microsoft.FastGelu(h) Y = Reshape(f, to)", "a, 20, 4", "a, 20, 3", TWO),
    ),
}  # fmt: skip


def reshaped(body: str, **options: str) -> str:
    """The rows of a product, as a sequence."""
    return model(body, "a, 20, 4", "a, 20, 3", TWO, **options)


def normalized(body: str, more: str = "", out: str = "float[r, 3] Y") -> str:
    """A product, what it is added to, and the normalization of the sum, as rows."""
    scale = "float[4] S = {1, 2, 1, 0.5}, int64[2] wide = {-1, 4}"
    return f"""agraph (float[a, b, 3] X, float[a, b, 4] R) => ({out}) <
        {W}, {V}, {VECTORS}, {ROWS}, {scale}{more}> {{ {body} }}"""


NORMALIZED = """u = Add(s, R) n = LayerNormalization(u, S, B) k = Reshape(n, wide)
    Y = Gemm(k, V, C)"""
#: pattern -> case -> (before, after)
CASES = {
    "GemmResidual": {
        "Sum, the residual first": (
            residual("g = Gemm(X, W, B) Y = Sum(R, g)"),
            residual("g = Gemm(X, W, R) Y = Add(g, B)"),
            {"sizes": [{"a": 5}, {"a": 0}, {"a": 1}]},
        ),
        "attributes but beta": (
            residual("g = Gemm<alpha = 0.5, transA = 1>(X, W, B) Y = Add(g, R)", "float[3, a] X, float[a, 4] R"),
            residual("g = Gemm<alpha = 0.5, transA = 1>(X, W, R) Y = Add(g, B)", "float[3, a] X, float[a, 4] R"),
        ),
        "two products": (
            residual("g = Gemm(X, W, B) h = Gemm(X, W) Y = Add(h, g)"),
            residual("h = Gemm(X, W) g = Gemm(X, W, h) Y = Add(g, B)"),
        ),
    },
    "SwitchReshapeGelu": {
        "Gelu of a MatMul": (
            reshaped("r = Reshape(X, flat) h = MatMul(r, W) q = Reshape(h, to) Y = com.microsoft.Gelu(q)"),
            reshaped("r = Reshape(X, flat) h = MatMul(r, W) f = com.microsoft.Gelu(h) Y = Reshape(f, to)"),
        ),
        "QuickGelu keeps its attribute": (
            reshaped(HIDDEN + "q = Reshape(h, to) Y = com.microsoft.QuickGelu<alpha = 1.5>(q)"),
            reshaped(HIDDEN + "f = com.microsoft.QuickGelu<alpha = 1.5>(h) Y = Reshape(f, to)"),
        ),
    },
    "FeedForwardGemm": {
        "BiasGelu": (
            model("m = MatMul(X, W) f = com.microsoft.BiasGelu(m, B) " + LAST, "a, b, 3"),
            MODELS["FeedForwardGemm"][1],
        ),
        "Relu, the bias comes first": (
            model("m = MatMul(X, W) s = Add(B, m) f = Relu(s) q = MatMul(f, V) Y = Add(C, q)", "a, b, 3"),
            model(HIDDEN + "f = Relu(h) " + AFTER, "a, b, 3"),
        ),
        "QuickGelu keeps its attribute": (
            model(FIRST + "f = com.microsoft.QuickGelu<alpha = 1.5>(s) " + LAST, "a, b, 3"),
            model(HIDDEN + "f = com.microsoft.QuickGelu<alpha = 1.5>(h) " + AFTER, "a, b, 3"),
        ),
        "no last bias": (
            model(FIRST + "f = Relu(s) Y = MatMul(f, V)", "a, b, 3"),
            model(HIDDEN + "f = Relu(h) p = MatMul(f, V) " + BACK, "a, b, 3"),
        ),
        "a sum after": (
            model(FIRST + "f = Relu(s) q = MatMul(f, V) Y = Add(q, X)", "a, b, 3"),
            model(HIDDEN + "f = Relu(h) p = MatMul(f, V) t = Shape(X) "
                  "q = Reshape<allowzero = 1>(p, t) Y = Add(q, X)", "a, b, 3"),
        ),
        "another length": (
            model(FIRST + "f = Relu(s) Y = MatMul(f, V)", "a, b, 2", inits=WIDE),
            model(HIDDEN + "f = Relu(h) p = MatMul(f, V) t = Shape<start = 0, end = -1>(X) "
                  "two = Constant<value_ints = [2]>() k = Concat<axis = 0>(t, two) "
                  "Y = Reshape<allowzero = 1>(p, k)", "a, b, 2", inits=WIDE),
        ),
        "one unknown dimension, four dimensions": (
            model(FIRST + "f = Relu(s) " + LAST, "2, a, 5, 3", "2, a, 5, 3"),
            model(HIDDEN + "f = Relu(h) p = Gemm(f, V, C) Y = Reshape(p, to)",
                  "2, a, 5, 3", "2, a, 5, 3", "int64[4] to = {2, -1, 5, 3}"),
        ),
    },
    "RowsGemm": {
        "the sum is normalized, then made of rows": (
            normalized("m = MatMul(X, W) s = Add(m, B) " + NORMALIZED),
            normalized(
                "r = Reshape(X, flat) g = Gemm(r, W, B) t = Shape<start = 0, end = -1>(X) "
                "to = Concat<axis = 0>(t, four) s = Reshape<allowzero = 1>(g, to) " + NORMALIZED,
                ", int64[1] four = {4}",
            ),
            {"sizes": [{"a": 2, "b": 5}, {"a": 0, "b": 3}, {"a": 1, "b": 1}]},
        ),
        "static": (
            model("m = MatMul(X, W) Y = Add(B, m)", "2, 8, 4", "2, 8, 3"),
            model("r = Reshape(X, flat) g = Gemm(r, W, B) Y = Reshape(g, to)", "2, 8, 4", "2, 8, 3",
                  "int64[3] to = {2, 8, 4}"),
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)


@pytest.mark.parametrize(
    "sizes", [{"a": 0, "b": 5}, {"a": 2, "b": 0}, {"a": 0, "b": 0}, {"a": 1, "b": 1}]
)
def test_sizes(sizes: dict[str, int]) -> None:
    """Empty batches, empty sequences, one row."""
    found = check_pattern(
        MODELS["FeedForwardGemm"][0], None, "FeedForwardGemm", sizes=sizes, atol=1e-5
    )
    assert {"Gemm", "Reshape"} <= {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_batches(batch: int) -> None:
    found = check_pattern(MODELS["RowsGemm"][0], None, "RowsGemm", sizes={"a": batch}, atol=1e-5)
    assert [n.op_type for n in found.graph.node] == ["Reshape", "Gemm", "Reshape"]


@pytest.mark.parametrize("name", ["FeedForwardGemm", "RowsGemm"])
def test_processor(name: str) -> None:
    """On CUDA, nothing was measured."""
    reasons: list[str] = []
    pattern = get_pattern(name)
    pattern.listener = lambda told: reasons.append(told[3])
    options = OptimizationOptions(patterns=[pattern], processor="CUDA")
    builder = GraphBuilder(
        model_from_text(MODELS[name][0]), infer_shapes_options=True, optimization_options=options
    )
    builder.optimize()
    assert "it is for the processor CPU" in reasons


#: pattern -> case -> (model, reason)
REFUSED = {
    "SwitchReshapeGelu": {
        "a bias": (
            reshaped(HIDDEN + "q = Reshape(h, to) Y = com.microsoft.FastGelu(q, B)"),
            "the activation adds a bias",
        ),
        "no product": (
            reshaped("m = MatMul(X, W) n = Neg(m) q = Reshape(n, to) Y = com.microsoft.FastGelu(q)"),
            "what is moved is not a MatMul nor a Gemm",
        ),
        "no Reshape": (
            reshaped("q = MatMul(X, W) Y = com.microsoft.FastGelu(q)"), "no Reshape before",
        ),
        "the product is read elsewhere": (
            reshaped(HIDDEN + "q = Reshape(h, to) f = com.microsoft.FastGelu(q) k = Reshape(h, to) "
                     "Y = Add(f, k)"),
            "an inner result is used elsewhere",
        ),
        "the product is an output": (
            reshaped(HIDDEN + "q = Reshape(h, to) Y = com.microsoft.FastGelu(q)",
                     outputs=", float[c, 4] h"),
            "used elsewhere",
        ),
        "what is reshaped is read elsewhere": (
            reshaped(HIDDEN + "q = Reshape(h, to) Y = com.microsoft.FastGelu(q)",
                     outputs=", float[a, 20, 4] q"),
            "used elsewhere",
        ),
    },
    "FeedForwardGemm": {
        "double": (
            model(FIRST + "f = Relu(s) " + LAST, "a, b, 3", kind="double"), "the type is not float",
        ),
        "opset 14": (
            model(FIRST + "f = Relu(s) q = MatMul(f, V) Y = Add(q, D)", "a, b, 2",
                  inits=f"{WIDE}, float[2] D = {{1, 2}}"),
            "Shape gives every dimension before opset 15", {"opset": 14},
        ),
        "a bias of FastGelu": (
            model("m = MatMul(X, W) s = Add(m, B) f = com.microsoft.FastGelu(s, B) " + LAST, "a, b, 3"),
            "the activation adds another bias",
        ),
        "a scalar": (
            model("m = MatMul(X, W) s = Add(m, one) f = Relu(s) " + LAST, "a, b, 3"),
            "the bias is not a vector",
        ),
        "no product": (
            model("i = Identity(X) s = Add(i, X) f = Relu(s) q = MatMul(f, W) Y = MatMul(q, V)", "a, b, 3"),
            "no product is added to a bias",
        ),
        "matrices": (
            model(FIRST + "f = Relu(s) " + LAST, "a, 3", "a, 3"), "it is a product of matrices",
        ),
        "weights that are not constant": (
            model("m = MatMul(X, X) s = Add(m, C) f = Relu(s) Y = MatMul(f, W)", "a, 3, 4", "a, 3, 3"),
            "the weight is not a constant",
        ),
        "batches of weights": (
            model("m = MatMul(X, U) s = Add(m, C) f = Relu(s) Y = MatMul(f, W)", "1, b, 4", "1, b, 3",
                  "float[1, 3, 3] U = {1, 2, 3, 4, 5, 6, 7, 8, 9}"),
            "the weight is not a matrix, or it is empty",
        ),
        "rows are multiplied on the left": (
            model("m = MatMul(X, U) s = Add(m, C) f = Relu(s) Y = MatMul(D, f)", "a, 5, 3", "a, 3, 3",
                  "float[3, 3] U = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[5, 3] D = "
                  "{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}"),
            "the second product does not read rows",
        ),
        "the hidden layer is an output": (
            model(FIRST + "f = Relu(s) " + LAST, "a, b, 3", outputs=", float[a, b, 4] s"),
            "used elsewhere",
        ),
    },
    "GemmResidual": {
        "the product is an output": (
            residual("g = Gemm(X, W, B) Y = Add(g, R)", outputs=", float[a, 4] g"),
            "a product is used elsewhere",
        ),
        "no bias": (residual("g = Gemm(X, W) Y = Add(g, R)"), "no bias is added once"),
        "beta": (residual("g = Gemm<beta = 2.0>(X, W, B) Y = Add(g, R)"), "no bias is added once"),
        "what is added is a vector": (
            residual("g = Gemm(X, W, B) Y = Add(g, R)", "float[a, 3] X, float[4] R"),
            "what is added has another shape",
        ),
        "more rows": (
            residual("g = Gemm(X, W, B) Y = Add(g, R)", "float[1, 3] X, float[a, 4] R"),
            "what is added has another shape",
        ),
        "one number": (
            residual("g = Gemm(X, W, one) Y = Add(g, R)"), "b is not a vector",
        ),
        "three terms": (
            residual("g = Gemm(X, W, B) Y = Sum(g, R, R)"), "there are not two terms",
        ),
        "itself": (residual("g = Gemm(X, W, B) Y = Add(g, g)"), "there are not two terms"),
        "double": (
            residual("g = Gemm(X, W, B) Y = Add(g, R)", kind="double"), "the type is not float",
        ),
        "no product": (residual("g = MatMul(X, W) Y = Add(g, R)"), "a product is used elsewhere"),
    },
    "RowsGemm": {
        "two unknown dimensions": (
            model("m = MatMul(X, W) Y = Add(m, B)", "a, b, 4"), "there may be few rows",
        ),
        "a sum that is not normalized": (
            normalized("m = MatMul(X, W) s = Add(m, B) u = Add(s, R) k = Reshape(u, wide) Y = Gemm(k, V, C)"),
            "there may be few rows",
        ),
        "a normalization that stays a sequence": (
            normalized("m = MatMul(X, W) s = Add(m, B) u = Add(s, R) n = LayerNormalization(u, S, B) "
                       "Y = MatMul(n, V)", out="float[a, b, 3] Y"),
            "there may be few rows",
        ),
        "few rows": (
            model("m = MatMul(X, W) Y = Add(m, B)", "a, 15, 4", "a, 15, 3"), "there may be few rows",
        ),
        "long rows": (
            "agraph (float[a, 20, 257] X) => (float[a, 20, 1] Y) <float[1] B = {2}, float[257, 1] W = {"
            + ", ".join(["1"] * 257) + "}> { m = MatMul(X, W) Y = Add(m, B) }",
            "the rows are long",
        ),
        "a long result": (
            "agraph (float[a, 20, 1] X, float[257] B) => (float[a, 20, 257] Y) <float[1, 257] W = {"
            + ", ".join(["1"] * 257) + "}> { m = MatMul(X, W) Y = Add(m, B) }",
            "the rows of the result are long",
        ),
        "two products": (
            model("m = MatMul(X, W) n = MatMul(X, W) Y = Add(m, n)", "a, 20, 4", "a, 20, 3"),
            "no product is added to a bias",
        ),
        "the product is an output": (
            model("m = MatMul(X, W) Y = Add(m, B)", "a, 20, 4", "a, 20, 3", outputs=", float[a, 20, 4] m"),
            "used elsewhere",
        ),
    },
}  # fmt: skip

test_refuses = refusal_tests(REFUSED)
