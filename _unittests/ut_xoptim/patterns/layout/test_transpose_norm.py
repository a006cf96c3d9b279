"""BatchNormalization after a Transpose: a product and a sum where the channels were."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

#: scale 2, -1 after dividing by the deviations 2 and 4, mean 1 and 2, no epsilon
NORM = "float[2] s = {4, -4}, float[2] o = {1, 0.5}, float[2] m = {1, 2}, float[2] v = {4, 16}"
H = "g (float[a, b, 2] x) => (float[a, b, 2] y)"
BN = "t = Transpose<perm = [0, 2, 1]>(x) n = BatchNormalization<epsilon = 0.0>(t, s, o, m, v)"
BACK = "y = Transpose<perm = [0, 2, 1]>(n)"
W = "float[3, 2] w = {1, 2, 3, 4, 5, 6}"
#: y = x * (2, -1) + (-1, 2.5)
AFFINE = "float[2] f = {2, -1}, float[2] c = {-1, 2.5}"


def wide(text: str) -> str:
    """The same with 128 channels."""
    numbers = {"{4, -4}", "{1, 0.5}", "{1, 2}", "{4, 16}", "{2, -1}", "{-1, 2.5}"}
    for two in numbers:
        text = text.replace(two, "{" + ", ".join([two[1:-1]] * 64) + "}")
    return text.replace("[2]", "[128]").replace("b, 2]", "b, 128]")


MODELS = {
    "TransposeNormalization": {
        "the permutations cancel": (
            wide(f"{H} <{NORM}> {{ {BN} {BACK} }}"),
            wide(f"{H} <{AFFINE}> {{ u = Mul(x, f) y = Add(u, c) }}"),
        ),
        "the permutations cancel, a product takes it": (
            f"g (float[a, b, 3] z) => (float[a, b, 2] y) <{W}, {NORM}>"
            f"{{ x = MatMul(z, w) {BN} {BACK} }}",
            f"g (float[a, b, 3] z) => (float[a, b, 2] y) <{W}, {AFFINE}>"
            "{ x = MatMul(z, w) u = Mul(x, f) y = Add(u, c) }",
        ),
        "another place": (
            f"g (float[a, 2, b, 3] x) => (float[a, 2, b, 3] y) <{NORM}>"
            "{ t = Transpose<perm = [2, 1, 0, 3]>(x)"
            " n = BatchNormalization<epsilon = 0.0>(t, s, o, m, v)"
            " y = Transpose<perm = [2, 1, 0, 3]>(n) }",
            "g (float[a, 2, b, 3] x) => (float[a, 2, b, 3] y)"
            "<float[2, 1, 1] f = {2, -1}, float[2, 1, 1] c = {-1, 2.5}>"
            "{ u = Mul(x, f) y = Add(u, c) }",
        ),
        "a product takes it": (
            f"g (float[a, b, 3] z) => (float[a, 2, b] y) <{W}, {NORM}>"
            f"{{ x = MatMul(z, w) {BN.replace(' n = ', ' y = ')} }}",
            f"g (float[a, b, 3] z) => (float[a, 2, b] y) <{W}, {AFFINE}>"
            "{ x = MatMul(z, w) u = Mul(x, f) n = Add(u, c) y = Transpose<perm = [0, 2, 1]>(n) }",
        ),
    },
    "TransposeNormalization(even_slower=True)": {
        "few channels": (
            f"{H} <{NORM}> {{ {BN} {BACK} }}",
            f"{H} <{AFFINE}> {{ u = Mul(x, f) y = Add(u, c) }}",
        ),
    },
    "TransposeNormalization,MatMulAffine": {
        "the weight changes": (
            f"g (float[a, b, 3] z) => (float[a, 2, b] y) <{W}, {NORM}>"
            f"{{ x = MatMul(z, w) {BN.replace(' n = ', ' y = ')} }}",
            "g (float[a, b, 3] z) => (float[a, 2, b] y)"
            "<float[3, 2] w = {2, -2, 6, -4, 10, -6}, float[2] c = {-1, 2.5}>"
            "{ x = MatMul(z, w) n = Add(x, c) y = Transpose<perm = [0, 2, 1]>(n) }",
        ),
    },
}

REFUSED = {
    "TransposeNormalization": {
        "few channels": (
            f"{H} <{NORM}> {{ {BN} {BACK} }}",
            "there are fewer than 128 channels, even_slower=True applies it",
        ),
        "no Transpose": (
            f"g (float[a, 2, b] t) => (float[a, 2, b] n) <{NORM}>{{ {BN[BN.index('n = ') :]} }}",
            "no Transpose before",
        ),
        "used elsewhere": (
            f"g (float[a, b, 2] x) => (float[a, b, 2] y, float[a, 2, b] t) <{NORM}>"
            f"{{ {BN} {BACK} }}",
            "what is transposed is used elsewhere",
        ),
        "they do not cancel": (
            f"g (float[2, b, a] x) => (float[b, a, 2] y) <{NORM}>"
            "{ t = Transpose<perm = [2, 0, 1]>(x)"
            " n = BatchNormalization<epsilon = 0.0>(t, s, o, m, v)"
            " y = Transpose<perm = [2, 0, 1]>(n) }",
            "nothing takes the normalization",
        ),
        "the normalization is an output": (
            f"g (float[a, b, 2] x) => (float[a, b, 2] y, float[a, 2, b] n) <{NORM}>"
            f"{{ {BN} {BACK} }}",
            "nothing takes the normalization",
        ),
        "a product used elsewhere": (
            f"g (float[a, b, 3] z) => (float[a, 2, b] n, float[a, b, 2] x) <{W}, {NORM}>"
            f"{{ x = MatMul(z, w) {BN} }}",
            "an inner result is used elsewhere",
        ),
        "other channels": (
            f"g (float[2, a, 3] z) => (float[b, 2, a] n) <{W}, {NORM}>"
            "{ x = MatMul(z, w) t = Transpose<perm = [2, 0, 1]>(x)"
            " n = BatchNormalization<epsilon = 0.0>(t, s, o, m, v) }",
            "the channels are not those of what takes the normalization",
        ),
        "parameters that are inputs": (
            "g (float[a, b, 2] x, float[2] m) => (float[a, b, 2] y)"
            f"<{NORM.replace('float[2] m = {1, 2}, ', '')}> {{ {BN} {BACK} }}",
            "a parameter of BatchNormalization is not constant",
        ),
        "no permutation, no rank": (
            f"g (float[] x) => (float[] n) <{NORM}>"
            "{ t = Transpose(x) n = BatchNormalization<epsilon = 0.0>(t, s, o, m, v) }",
            "the permutation is not known",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(REFUSED)
