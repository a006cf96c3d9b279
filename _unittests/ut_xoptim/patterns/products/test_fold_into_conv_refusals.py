"""Products and sums by constants around a convolution: what is refused."""

from __future__ import annotations

from ut_xoptim.patterns.products.conv_models import ANY, BN, NORM, H, W

from xoptim.testing import refusal_tests

BN_K = f"{H} <{W}, {NORM}> {{ c1 = Conv(x, w) "

NEAR_MISSES = {
    "ConvAffine": {
        "not constant": (
            f"g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y) <{W}>"
            "{ c1 = Conv(x, w) y = Mul(c1, k) }",
            "the other operand is not constant",
        ),
        "an input with a default value": (
            "g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the other operand is not constant",
        ),
        "no convolution": (f"{H} <float k = {{2}}> {{ y = Mul(x, k) }}", "no Conv or .* before"),
        "twice": (f"{H} <{W}> {{ c1 = Conv(x, w) y = Add(c1, c1) }}", "used elsewhere"),
        "used elsewhere": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) z = Abs(c1) }}",
            "the result of the convolution is used elsewhere",
        ),
        "an output": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] c1)"
            f" <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the result of the convolution is used elsewhere",
        ),
        "another axis": (
            f"g (float[a, 2, 2, 2] x) => (float[a, 2, 2, 2] y) <{W}, float[2] k = {{1, 2}}>"
            "{ c1 = Conv(x, w) y = Mul(c1, k) }",
            "does not have one value for each channel",
        ),
        "more dimensions": (
            f"g (float[a, 2, b, c] x) => (float[1, a, 2, b, c] y)"
            f" <{W}, float[1, 1, 1, 1, 1] k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "does not have one value for each channel",
        ),
        "one channel which becomes two": (
            "g (float[a, 1, b] x) => (float[a, 2, b] y)"
            " <float[1, 1, 1] w = {2}, float[2, 1] k = {1, 2}> { c1 = Conv(x, w) y = Mul(c1, k) }",
            "does not have one value for each channel",
        ),
        "divided by zero": (
            f"{H} <{W}, float[2, 1, 1] k = {{2, 0}}> {{ c1 = Conv(x, w) y = Div(c1, k) }}",
            "divided by zero",
        ),
        "a constant divided": (
            f"{H} <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Div(k, c1) }}",
            "a constant is divided",
        ),
        "a bias that is not constant": (
            f"g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y) <{W}, float k = {{2}}>"
            "{ c1 = Conv(x, w, b) y = Mul(c1, k) }",
            "the bias is not constant",
        ),
        "a weight that is not constant": (
            "g (float[a, 2, b, c] x, float[2, 2, 1, 1] w) => (float[a, 2, b, c] y)"
            " <float k = {2}> { c1 = Conv(x, w) y = Mul(c1, k) }",
            "the weight is not constant",
        ),
        "a weight of any shape": (
            "g (float[a, 2, b, c] x, float[M, 2, 1, 1] w) => (float[a, M, b, c] y)"
            " <float k = {2}> { c1 = Conv(x, w) y = Add(c1, k) }",
            "the shape of the weight is not static",
        ),
        "overflow": (
            f"{H} <{W}, float k = {{3e38}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the new weight is not finite",
        ),
        "underflow": (
            f"{H} <{W}, float k = {{1e-39}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the new weight is too small",
        ),
        "a bias that overflows": (
            f"{H} <{W}, float[2] b = {{3e38, 0}}, float k = {{3e38}}>"
            "{ c1 = Conv(x, w, b) y = Add(c1, k) }",
            "the new bias is not finite",
        ),
        "training": (
            f"g (float[a, 2, b, c] x) => (float[a, 2, b, c] y) <{W}, {NORM}> {{ c1 = Conv(x, w)"
            "  y, p, q = BatchNormalization<training_mode=1>(c1, s, o, m, v) }",
            "is training",
        ),
        "parameters that are not constant": (
            f"g (float[a, 2, b, c] x, float[2] z) => (float[a, 2, b, c] y) <{W}, {NORM}>"
            f"{{ c1 = Conv(x, w) y = {BN}(c1, z, o, m, v) }}",
            "a parameter of BatchNormalization is not constant",
        ),
        "a negative variance": (
            f"{BN_K} n = Neg(v) y = {BN}(c1, s, o, m, n) }}",
            "a variance is not positive",
        ),
    },
    "AffineConv": {
        "the half of a Gelu": (
            f"{H} <{W}, float one = {{1}}, float half = {{0.5}}> {{ e = Erf(x) s = Add(e, one)"
            " m = Mul(x, s) c1 = Mul(m, half) y = Conv(c1, w) }",
            "it is a part of a Gelu",
        ),
        "nothing before": (f"{H} <{W}> {{ y = Conv(x, w) }}", "no .* before"),
        "used elsewhere": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float k = {{2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) z = Abs(c1) }}",
            "what the convolution reads is used elsewhere",
        ),
        "a sum and padding": (
            f"{ANY} <{W}, float k = {{2}}>{{ c1 = Add(x, k) y = Conv<pads=[1, 0, 0, 0]>(c1, w) }}",
            "the padding is not what is added",
        ),
        "a sum and automatic padding": (
            f"{ANY} <{W}, float k = {{2}}>"
            '{ c1 = Add(x, k) y = Conv<auto_pad="SAME_UPPER">(c1, w) }',
            "the padding is not what is added",
        ),
        "a sum and ConvTranspose": (
            f"{ANY} <{W}, float k = {{2}}> {{ c1 = Add(x, k) y = ConvTranspose(c1, w) }}",
            "the padding is not what is added",
        ),
        "a constant that broadcasts": (
            "g (float[a, 1, b, c] x) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the number of channels of the operand is not known",
        ),
        "unknown channels": (
            "g (float[a, n, b, c] x) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the number of channels of the operand is not known",
        ),
        "a constant that adds dimensions": (
            "g (float[2, b, c] x) => (float[1, 2, b, c] y)"
            f" <{W}, float[1, 1, 1, 1] k = {{2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the rank of the operand",
        ),
        "an unknown rank": (
            f"g (float[] x) => (float[a, 2, b, c] y) <{W}, float[1] k = {{2}}>"
            "{ c1 = Mul(x, k) y = Conv(c1, w) }",
            "the rank of the operand",
        ),
        "a bias that is not constant": (
            f"g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y) <{W}, float k = {{2}}>"
            "{ c1 = Add(x, k) y = Conv(c1, w, b) }",
            "the bias is not constant",
        ),
        "not constant": (
            f"g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y) <{W}>"
            "{ c1 = Mul(x, k) y = Conv(c1, w) }",
            "the other operand is not constant",
        ),
    },
}


test_refuses = refusal_tests(NEAR_MISSES)
