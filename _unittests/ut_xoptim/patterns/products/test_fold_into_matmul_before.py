"""Products and sums by constants before MatMul and Gemm."""

from __future__ import annotations

from ut_xoptim.patterns.products.product_texts import BN, LM, NO_BIAS, NORM, NORM0, B, H, K, L, S, W

from xoptim.testing import refusal_tests, rewrite_tests

#: x is divided before
DIVIDED = "g (float[a, 2] x, float[a, 1] d) => (float[a, 2] y)"
DIVIDED_FIRST = "g (float[b, 2, a] x, float[b, 1, a] d) => (float[b, 2, a] y)"
MODELS = {
    "ScalarReshapeMatMul": {
        "a Reshape": (
            """g (float[a, 2, 3] x) => (float[a, 2] y)
            <float[6, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float s = {0.5},
            int64[2] t = {-1, 6}> {
                m = Mul(s, x)
                r = Reshape(m, t)
                y = MatMul(r, w)
            }""",
            """g (float[a, 2, 3] x) => (float[a, 2] y)
            <float[6, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float s = {0.5},
            int64[2] t = {-1, 6}> {
                r = Reshape(x, t)
                m = Mul(r, s)
                y = MatMul(m, w)
            }""",
        ),
        "a Flatten, a division": (
            """g (float[a, 1, 2] x) => (float[a, 2] y)
            <float[2, 2] w = {1, 2, 3, 4}, float s = {0.5}> {
                m = Div(x, s)
                r = Flatten(m)
                y = Gemm(r, w)
            }""",
            """g (float[a, 1, 2] x) => (float[a, 2] y)
            <float[2, 2] w = {1, 2, 3, 4}, float s = {0.5}> {
                r = Flatten(x)
                m = Div(r, s)
                y = Gemm(m, w)
            }""",
        ),
    },
    "MatMulBiases": {
        "a row": (
            f"{S} <{W}, {B}, {K}> {{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            f"{S} <{W}, float[2] b = {{15, 19}}> {{ c1 = MatMul(x, w) y = Add(c1, b) }}",
        ),
        "a number, operands the other way round": (
            f"{S} <{W}, float b = {{2}}, float k = {{3}}>"
            "{ c1 = Add(k, x) c2 = MatMul(c1, w) y = Add(b, c2) }",
            f"{S} <{W}, float[2] b = {{14, 20}}> {{ c1 = MatMul(x, w) y = Add(c1, b) }}",
        ),
        "the weight comes first": (
            f"{L} <{W}, float[2, 1] b = {{1, -1}}, float[2, 1] k = {{2, 4}}>"
            "{ c1 = Add(x, k) c2 = MatMul(w, c1) y = Add(c2, b) }",
            f"{L} <{W}, float[2, 1] b = {{11, 21}}> {{ c1 = MatMul(w, x) y = Add(c1, b) }}",
        ),
        "a factor that is not constant": (
            "g (float[a, b, 2] x, float[a, 1, 2] z) => (float[a, b, 2] y)"
            f" <{W}, {B}, {K}> {{ c = Mul(x, z) c1 = Add(c, k) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "g (float[a, b, 2] x, float[a, 1, 2] z) => (float[a, b, 2] y)"
            f" <{W}, float[2] b = {{15, 19}}> {{ c = Mul(x, z) c1 = MatMul(c, w) y = Add(c1, b) }}",
        ),
    },
    "AffineMatMul": {
        "the opposite": (
            """g (float[a, 2] x) => (float[a, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
                n = Neg(x)
                y = MatMul(n, w)
            }""",
            """g (float[a, 2] x) => (float[a, 2] y) <float[2, 2] w = {-1, -2, -3, -4}> {
                y = MatMul(x, w)
            }""",
        ),
        "one number": (
            f"{S} <{W}, float k = {{2}}> {{ c1 = Div(x, k) y = MatMul(c1, w) }}",
            f"{S} <float[2, 2] w = {{0.5, 1, 1.5, 2}}> {{ y = MatMul(x, w) }}",
        ),
        "one for each column": (
            f"{S} <{W}, {K}> {{ c1 = Mul(x, k) y = MatMul(c1, w) }}",
            f"{S} <float[2, 2] w = {{2, 4, 12, 16}}> {{ y = MatMul(x, w) }}",
        ),
        "Gemm and a sum": (
            f"{H} <{W}, {B}, {K}>{{ c1 = Add(x, k) y = Gemm<alpha=2.0, beta=3.0>(c1, w, b) }}",
            f"{H} <{W}, float[2] b = {{31, 37}}> {{ y = Gemm<alpha=2.0>(x, w, b) }}",
        ),
        "transB": (
            f"{H} <{W}, {K}, {B}> {{ c1 = Sub(x, b) c2 = Mul(c1, k) y = Gemm<transB=1>(c2, w) }}",
            f"{H} <float[2, 2] w = {{2, 8, 6, 16}}, float[2] b = {{6, 10}}>"
            "{ y = Gemm<transB=1>(x, w, b) }",
        ),
        "transA": (
            f"g (float[2, a] x) => (float[a, 2] y) <{W}, float[2, 1] k = {{2, 4}}>"
            "{ c1 = Mul(x, k) y = Gemm<transA=1>(c1, w) }",
            "g (float[2, a] x) => (float[a, 2] y) <float[2, 2] w = {2, 4, 12, 16}>"
            "{ y = Gemm<transA=1>(x, w) }",
        ),
        "the weight comes first": (
            f"{L} <{W}, float[2, 1] k = {{2, 4}}> {{ c1 = Mul(x, k) y = MatMul(w, c1) }}",
            f"{L} <float[2, 2] w = {{2, 8, 6, 16}}> {{ y = MatMul(w, x) }}",
        ),
        "the weight comes first, a sum": (
            f"{LM} <{W}, float[2, 1] k = {{2, 4}}> {{ c1 = Add(x, k) y = MatMul(w, c1) }}",
            f"{LM} <{W}, float[2, 1] b = {{10, 22}}> {{ y = Gemm(w, x, b) }}",
        ),
        "the weight comes first, BatchNormalization": (
            f"{L} <{W}, {NORM0}> {{ c1 = {BN}(x, s, o, m, v) y = MatMul(w, c1) }}",
            f"{L} <float[2, 2] w = {{2, -2, 6, -4}}> {{ y = MatMul(w, x) }}",
        ),
        "the weight comes first, transB": (
            f"g (float[a, 2] x) => (float[2, a] y) <{W}, {K}>"
            "{ c1 = Sub(x, k) y = Gemm<transB=1>(w, c1) }",
            f"g (float[a, 2] x) => (float[2, a] y) <{W}, float[2, 1] b = {{-10, -22}}>"
            "{ y = Gemm<transB=1>(w, x, b) }",
        ),
        "a product before": (
            f"{H} <{W}, {K}> {{ p = MatMul(x, w) q = Mul(p, k) y = MatMul(q, w) }}",
            f"{H} <{W}, float[2, 2] u = {{2, 4, 12, 16}}> {{ p = MatMul(x, w) y = MatMul(p, u) }}",
        ),
        "one number after a division": (
            f"{DIVIDED} <{W}, float k = {{2}}>{{ n = Div(x, d) c1 = Mul(n, k) y = MatMul(c1, w) }}",
            f"{DIVIDED} <float[2, 2] w = {{2, 4, 6, 8}}> {{ n = Div(x, d) y = MatMul(n, w) }}",
        ),
        "BatchNormalization after a division": (
            f"{DIVIDED} <{W}, {NORM}> {{ n = Div(x, d) c1 = {BN}(n, s, o, m, v)"
            " y = MatMul(c1, w) }",
            f"{DIVIDED} <float[2, 2] w = {{2, 4, -3, -4}}, float[2] b = {{6.5, 8}}>"
            "{ n = Div(x, d) y = Gemm(n, w, b) }",
        ),
        "the weight comes first, after a division": (
            f"{DIVIDED_FIRST} <{W}, float[2, 1] k = {{2, 4}}>"
            "{ n = Div(x, d) c1 = Mul(n, k) y = MatMul(w, c1) }",
            f"{DIVIDED_FIRST} <float[2, 2] w = {{2, 8, 6, 16}}>"
            "{ n = Div(x, d) y = MatMul(w, n) }",
        ),
        "a bias that is not constant": (
            "g (float[a, 2] x, float[2] b) => (float[a, 2] y)"
            f" <{W}, {K}> {{ c1 = Mul(x, k) y = Gemm<beta=2.0>(c1, w, b) }}",
            "g (float[a, 2] x, float[2] b) => (float[a, 2] y)"
            " <float[2, 2] w = {2, 4, 12, 16}> { y = Gemm<beta=2.0>(x, w, b) }",
        ),
        "MatMul and a sum": (
            f"{H} <{W}, {K}> {{ c1 = Sub(k, x) y = MatMul(c1, w) }}",
            f"{H} <float[2, 2] w = {{-1, -2, -3, -4}}, float[2] b = {{14, 20}}>"
            "{ y = Gemm(x, w, b) }",
        ),
        "BatchNormalization": (
            f"{H} <{W}, {NORM}> {{ c1 = {BN}(x, s, o, m, v) y = MatMul(c1, w) }}",
            f"{H} <float[2, 2] w = {{2, 4, -3, -4}}, float[2] b = {{6.5, 8}}>"
            "{ y = Gemm(x, w, b) }",
        ),
    },
}

NEAR_MISSES = {
    "ScalarReshapeMatMul": [
        (
            """g (float[a, 1, 2] x, float[2, 2] w) => (float[a, 2] y) <float s = {0.5}> {
                m = Mul(x, s)
                r = Flatten(m)
                y = MatMul(r, w)
            }""",
            "no weight is constant",
        ),
        (
            """g (float[a, 1, 2] x) => (float[a, 2] y, float[a, 1, 2] m)
            <float[2, 2] w = {1, 2, 3, 4}, float s = {0.5}> {
                m = Mul(x, s)
                r = Flatten(m)
                y = MatMul(r, w)
            }""",
            "used elsewhere",
        ),
        (
            """g (float[a, 1, 2] x) => (float[a, 2] y)
            <float[2, 2] w = {1, 2, 3, 4}, float[2] s = {0.5, 2}> {
                m = Mul(x, s)
                r = Flatten(m)
                y = MatMul(r, w)
            }""",
            "not scaled by one constant number",
        ),
        (
            """g (float[a, 1, 2] x) => (float[a, 2] y, float[a, 2] r)
            <float[2, 2] w = {1, 2, 3, 4}, float s = {0.5}> {
                m = Mul(x, s)
                r = Flatten(m)
                y = MatMul(r, w)
            }""",
            "its only use is not a product",
        ),
    ],
    "MatMulBiases": [
        (
            f"{S} <{W}, {B}> {{ c1 = Neg(x) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "no .*Add.* before",
        ),
        (
            f"{S.replace('] y', '] y, float[a, b, 2] c1')} <{W}, {B}, {K}>"
            "{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, b) }",
            "an inner result is used elsewhere",
        ),
        # the sums are not the same for each matrix
        (
            "g (float[2, 3, 2] x) => (float[2, 3, 2] y) <float[2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8},"
            f" {B}, {K}> {{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "the weight is not one matrix",
        ),
        (
            f"{S} <{W}, {B}, {K}> {{ c0 = MatMul(x, w) c1 = Add(c0, k) c2 = MatMul(c1, w)"
            " y = Add(c2, b) }",
            "it is the bias of the product before",
        ),
        (
            f"{S} <{W}, {B}, {K}> {{ c0 = Mul(x, k) c1 = Add(c0, k) c2 = MatMul(c1, w)"
            " y = Add(c2, b) }",
            "it may be a part of a normalization",
        ),
        (
            "g (float[a, b, 2] x, float[a, b, 1] d) => (float[a, b, 2] y)"
            f" <{W}, {B}, {K}> {{ c0 = Div(x, d) c1 = Add(c0, k) c2 = MatMul(c1, w)"
            " y = Add(c2, b) }",
            "it may be a part of a normalization",
        ),
        (
            "g (float[a, b, 2] x, float[2] z) => (float[a, b, 2] y)"
            f" <{W}, {B}> {{ c1 = Add(x, z) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "the other operand is not constant",
        ),
        (
            "g (float[a, b, 2] x, float[2] z) => (float[a, b, 2] y)"
            f" <{W}, {K}> {{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, z) }}",
            "the other operand is not constant",
        ),
        (
            "g (float[a, b, 2] x, float[2, 2] w) => (float[a, b, 2] y)"
            f" <{B}, {K}> {{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "the weight cannot be read",
        ),
        (
            "g (float[a, b, 1] x) => (float[a, b, 2] y)"
            f" <{W}, {B}, {K}> {{ c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, b) }}",
            "the number of channels of the operand is not known",
        ),
        (
            "g (int32[a, b, 2] x) => (int32[a, b, 2] y) <int32[2, 2] w = {1, 2, 3, 4},"
            " int32[2] k = {1, 2}> { c1 = Add(x, k) c2 = MatMul(c1, w) y = Add(c2, k) }",
            "the type is not a float",
        ),
    ],
    "AffineMatMul": {
        "the bias of a product before": (
            "g (float[a, 2] x) => (float[a, 2] y) <float[2, 2] u = {1, 2, 3, 4}, float[2] b = {1, 2},"
            " float[2, 2] w = {1, 2, 3, 4}> { p = MatMul(x, u) q = Add(p, b) y = MatMul(q, w) }",
            "it is a sum, the bias of the product before",
        ),
        "nothing before": (f"{H} <{W}> {{ y = MatMul(x, w) }}", "no .* before"),
        "the half of a Gelu": (
            f"{H} <{W}, float one = {{1}}, float half = {{0.5}}> {{ e = Erf(x) s = Add(e, one)"
            " m = Mul(x, s) c1 = Mul(m, half) y = MatMul(c1, w) }",
            "it is a part of a Gelu",
        ),
        "the half of a Gelu with Tanh": (
            f"{H} <{W}, float one = {{1}}, float two = {{2}}> {{ e = Tanh(x) s = Add(one, e)"
            " m = Mul(s, x) c1 = Div(m, two) y = MatMul(c1, w) }",
            "it is a part of a Gelu",
        ),
        "used elsewhere": (
            f"g (float[a, 2] x) => (float[a, 2] y, float[a, 2] c1) <{W}, {K}>"
            "{ c1 = Mul(x, k) y = MatMul(c1, w) }",
            "what the product reads is used elsewhere",
        ),
        "transA": (
            f"g (float[2, 2] x) => (float[2, 2] y) <{W}, {K}>"
            "{ c1 = Mul(x, k) y = Gemm<transA=1>(c1, w) }",
            "does not have one value for each channel",
        ),
        "a vector after the weight": (
            f"g (float[2] x) => (float[2] y) <{W}, {K}> {{ c1 = Mul(x, k) y = MatMul(w, c1) }}",
            "the second operand is a vector",
        ),
        "a rank that is not known after the weight": (
            f"g (float[] x) => (float[] y) <{W}, float k = {{2}}>"
            "{ c1 = Mul(x, k) y = MatMul(w, c1) }",
            "the rank of the second operand is not known",
        ),
        "a sum, no matrices": (f"{S} <{W}, {K}> {{ c1 = Add(x, k) y = MatMul(c1, w) }}", NO_BIAS),
        "a constant that broadcasts": (
            f"g (float[a, 1] x) => (float[a, 2] y) <{W}, {K}>"
            "{ c1 = Mul(x, k) y = MatMul(c1, w) }",
            "the number of channels of the operand is not known",
        ),
        "an unknown rank": (
            f"g (float[] x) => (float[] y) <{W}, float[1] k = {{2}}>"
            "{ c1 = Mul(x, k) y = MatMul(c1, w) }",
            "the rank of the operand",
        ),
        "the scale of a normalization": (
            f"g (float[a, 2] x, float[a, 1] d) => (float[a, 2] y) <{W}, {K}>"
            "{ n = Div(x, d) c1 = Mul(n, k) y = MatMul(c1, w) }",
            "a part of a normalization",
        ),
        "the bias of a normalization": (
            f"g (float[a, 2] x, float[2] d) => (float[a, 2] y) <{W}, {K}>"
            "{ n = Mul(x, d) c1 = Add(n, k) y = Gemm(c1, w) }",
            "a part of a normalization",
        ),
        "two constants": (
            f"g (float[a, 2] x, float[2, 2] z) => (float[a, 2] y) <{K}>"
            "{ c1 = Mul(x, k) y = MatMul(c1, z) }",
            "the weight is not constant",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(NEAR_MISSES)
