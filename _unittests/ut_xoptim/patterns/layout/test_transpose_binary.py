"""Transpose before an operator of two inputs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.numpy_helper import from_array

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests
from xoptim.testing.models import model_from_text

P = "perm = [0, 2, 1]"
TWO = "g (float[a, b, c] x, float[a, b, c] z) => (float[a, c, b] y)"
THREE = "g (float[a, b, c] x, float[a, b, c] z, float[a, b, c] w) => (float[a, c, b] y)"
BACK = "g (float[a, b, c] x, float[a, c, b] z) => (float[a, b, c] y)"
W = "float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 0, -1}"
K = "float[3, 1] k = {2, 3, 4}"
X = "g (float[a, b, 2] x) => (float[a, 3, b] y)"
SWAPPED = "perm = [0, 2, 1, 3]"
HEADS = (
    "g (float[a, b, 1] x) => (float[a, 2, b, 2] y) <float[1, 4] w = {1, 2, 3, 4},"
    " float[4] k = {1, 0, -1, 2}, int64[4] f = {0, 0, 2, 2}, float[1, 1] c = {2}>"
)
CHANNELS = "g (float[a, 2, c] x) => (float[a, 2, c] y) <float[2] k = {2, 3}>"
GRID = "g (float[a, 2, 3] x) => (float[a, 2, 3] y) <float[3, 2] k = {1, 2, 3, 4, 5, 6}>"
ROW = "g (float[a, 1, c] x) => (float[a, 2, c] y) <float[2] k = {2, 3}>"
MEET = "g (float[a, 2, c] x, float[a, 2, c] z) => (float[a, c, 2] y) <float[2] k = {2, 3}>"
#: pattern -> case -> (before, after)
MODELS = {
    "TransposeBinary": {
        "the same permutation": (
            f"{TWO} {{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) y = Sub(t, u) }}",
            f"{TWO} {{ s = Sub(x, z) y = Transpose<{P}>(s) }}",
        ),
        "one is used elsewhere": (
            f"{TWO[:-1]}, float[a, c, b] v)"
            f"{{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) v = Neg(t) y = Div(t, u) }}",
            f"{TWO[:-1]}, float[a, c, b] v)"
            f"{{ t = Transpose<{P}>(x) v = Neg(t) s = Div(x, z) y = Transpose<{P}>(s) }}",
        ),
        "one result twice": (
            f"{TWO} {{ t = Transpose<{P}>(x) y = Mul(t, t) }}",
            f"{TWO} {{ s = Mul(x, x) y = Transpose<{P}>(s) }}",
        ),
        "broadcast, no permutation": (
            "g (float[a, c] x, float[1, c] z) => (bool[c, a] y)"
            "{ t = Transpose(x) u = Transpose(z) y = Less(t, u) }",
            "g (float[a, c] x, float[1, c] z) => (bool[c, a] y)"
            "{ s = Less(x, z) y = Transpose<perm = [1, 0]>(s) }",
        ),
        "three operands": (
            f"{THREE} {{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) v = Transpose<{P}>(w)"
            "y = Sum(t, u, v) }",
            f"{THREE} {{ s = Sum(x, z, w) y = Transpose<{P}>(s) }}",
        ),
        "the largest of three, one is broadcast": (
            "g (float[a, b] x, float[1, b] z, float[a, b] w) => (float[b, a] y)"
            "{ t = Transpose(x) u = Transpose(z) v = Transpose(w) y = Max(t, u, v) }",
            "g (float[a, b] x, float[1, b] z, float[a, b] w) => (float[b, a] y)"
            "{ s = Max(x, z, w) y = Transpose<perm = [1, 0]>(s) }",
        ),
        "transposed back": (
            f"{BACK} {{ t = Transpose<{P}>(x) s = Sub(t, z) y = Transpose<{P}>(s) }}",
            f"{BACK} {{ t = Transpose<{P}>(z) y = Sub(x, t) }}",
        ),
        "transposed back, on the right": (
            f"{BACK} {{ t = Transpose<{P}>(x) s = Sub(z, t) y = Transpose<{P}>(s) }}",
            f"{BACK} {{ t = Transpose<{P}>(z) y = Sub(t, x) }}",
        ),
        "transposed back, a constant of another rank": (
            f"{CHANNELS} {{ t = Transpose<{P}>(x) s = Mul(t, k) y = Transpose<{P}>(s) }}",
            f"{CHANNELS.replace('float[2]', 'float[2, 1]')} {{ y = Mul(x, k) }}",
        ),
        "transposed back, one number for each element": (
            f"{GRID} {{ t = Transpose<{P}>(x) s = Sub(k, t) y = Transpose<{P}>(s) }}",
            f"{GRID.replace('[3, 2] k = {1, 2, 3, 4, 5, 6}', '[2, 3] k = {1, 3, 5, 2, 4, 6}')}"
            " { y = Sub(k, x) }",
        ),
        "transposed back, a constant that is larger": (
            f"{ROW} {{ t = Transpose<{P}>(x) s = Sub(t, k) y = Transpose<{P}>(s) }}",
            f"{ROW.replace('float[2]', 'float[2, 1]')} {{ y = Sub(x, k) }}",
        ),
    },
    "TransposeAffine": {
        "a product": (
            f"{X} <{W}, {K}> {{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            f"{X} <{W}, float[3] k = {{2, 3, 4}}>"
            f"{{ m = MatMul(x, w) s = Mul(m, k) y = Transpose<{P}>(s) }}",
        ),
        "a product and its bias, on the right": (
            f"{X} <{W}, {K}>"
            f"{{ m = MatMul(x, w) s = Add(m, b) t = Transpose<{P}>(s) y = Sub(k, t) }}",
            f"{X} <{W}, float[3] k = {{2, 3, 4}}>"
            f"{{ m = MatMul(x, w) s = Add(m, b) t = Sub(k, s) y = Transpose<{P}>(t) }}",
        ),
        "heads": (
            f"{HEADS} {{ m = MatMul(x, w) s = Add(m, k) r = Reshape(s, f)"
            f" t = Transpose<{SWAPPED}>(r) y = Div(t, c) }}",
            f"{HEADS.replace('float[1, 1] c', 'float c')} {{ m = MatMul(x, w) s = Add(m, k)"
            f" d = Div(s, c) r = Reshape(d, f) y = Transpose<{SWAPPED}>(r) }}",
        ),
        "heads, null dimensions": (
            f"{HEADS} {{ m = MatMul(x, w) r = Reshape(m, f)"
            f" t = Transpose<{SWAPPED}>(r) y = Mul(c, t) }}",
            None,
            {"sizes": [{"a": 0, "b": 3}, {"a": 2, "b": 0}, {"a": 1, "b": 1}]},
        ),
        "a convolution": (
            "g (float[a, 2, b] x) => (float[a, b, 1] y) <float[1, 2, 1] w = {1, 2},"
            f" float k = {{2}}> {{ c = Conv(x, w) t = Transpose<{P}>(c) y = Div(t, k) }}",
            "g (float[a, 2, b] x) => (float[a, b, 1] y) <float[1, 2, 1] w = {1, 2},"
            f" float k = {{2}}> {{ c = Conv(x, w) d = Div(c, k) y = Transpose<{P}>(d) }}",
        ),
        "a result that meets the same Transpose": (
            f"{MEET} {{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) m = Div(k, t) y = Sub(m, u) }}",
            f"{MEET.replace('float[2]', 'float[2, 1]')} {{ m = Div(k, x) t = Transpose<{P}>(m)"
            f" u = Transpose<{P}>(z) y = Sub(t, u) }}",
        ),
        "what is moved is used elsewhere": (
            f"{MEET} {{ t = Transpose<{P}>(x) u = Transpose<{P}>(x) m = Mul(t, k) y = Sub(u, m) }}",
            None,
        ),
    },
}
REFUSED = {
    "TransposeBinary": {
        "nothing before": (
            "g (float[a] x, float[a] z) => (float[a] y) { y = Add(x, z) }",
            "no Transpose before",
        ),
        "both are used elsewhere": (
            f"{TWO[:-1]}, float[a, c, b] t, float[a, c, b] u)"
            f"{{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) y = Add(t, u) }}",
            "every Transpose is used elsewhere",
        ),
        "both are broadcast": (
            "g (float[a, 1] x, float[1, b] z) => (float[b, a] y)"
            "{ t = Transpose(x) u = Transpose(z) y = Add(t, u) }",
            "the result is larger than every operand",
        ),
        "every one of three is broadcast": (
            "g (float[a, 1] x, float[1, b] z, float[a, 1] w) => (float[b, a] y)"
            "{ t = Transpose(x) u = Transpose(z) v = Transpose(w) y = Mean(t, u, v) }",
            "the result is larger than every operand",
        ),
        "one of three is not transposed": (
            f"{THREE} {{ t = Transpose<{P}>(x) u = Transpose<{P}>(z) v = Transpose<perm = [2, 0, 1]>(w)"
            "y = Sum(t, u, v) }",
            "not the same Transpose before each operand",
        ),
        "other permutations": (
            "g (float[a, b, c] x, float[c, a, b] z) => (float[a, c, b] y) {"
            f"t = Transpose<{P}>(x) u = Transpose<perm = [1, 0, 2]>(z) y = Add(t, u) }}",
            "no Transpose after it only",
        ),
        "one Transpose": (
            "g (float[a, b, c] x, float[a, c, b] z) => (float[a, c, b] y)"
            f"{{ t = Transpose<{P}>(x) y = Add(t, z) }}",
            "no Transpose after it only",
        ),
        "they do not cancel": (
            "g (float[a, b, c] x, float[a, c, b] z) => (float[c, a, b] y) {"
            f"t = Transpose<{P}>(x) s = Add(t, z) y = Transpose<perm = [1, 0, 2]>(s) }}",
            "the Transpose do not cancel",
        ),
        "a result of a higher rank": (
            "g (float[a, b] x, float[c, b, a] z) => (float[c, a, b] y) {"
            "t = Transpose<perm = [1, 0]>(x) s = Add(t, z) y = Transpose<perm = [0, 2, 1]>(s) }",
            "the Transpose do not cancel",
        ),
        "the first one is used elsewhere": (
            f"{BACK[:-1]}, float[a, c, b] t)"
            f"{{ t = Transpose<{P}>(x) s = Add(t, z) y = Transpose<{P}>(s) }}",
            "the Transpose do not cancel",
        ),
        "another rank": (
            "g (float[a, b, c] x, float[c, b] z) => (float[a, b, c] y)"
            f"{{ t = Transpose<{P}>(x) s = Add(t, z) y = Transpose<{P}>(s) }}",
            "the other operand has another rank",
        ),
    },
    "TransposeAffine": {
        "heads that are read elsewhere": (
            f"{HEADS.replace(') => (', ') => (float[a, b, 2, 2] r, ')} {{ m = MatMul(x, w)"
            f" r = Reshape(m, f) t = Transpose<{SWAPPED}>(r) y = Mul(t, c) }}",
            "an inner result is used elsewhere",
        ),
        "heads of what is read elsewhere": (
            f"{HEADS.replace(') => (', ') => (float[a, b, 4] m, ')} {{ m = MatMul(x, w)"
            f" r = Reshape(m, f) t = Transpose<{SWAPPED}>(r) y = Mul(t, c) }}",
            "nothing takes the constant",
        ),
        "heads of nothing that takes it": (
            f"{HEADS} {{ m = MatMul(x, w) n = Relu(m) r = Reshape(n, f)"
            f" t = Transpose<{SWAPPED}>(r) y = Mul(t, c) }}",
            "nothing takes the constant",
        ),
        "a number for each element of the heads": (
            f"{HEADS.replace('float[1, 1] c = {2}', 'float[2] c = {2, 3}')} {{ m = MatMul(x, w)"
            f" r = Reshape(m, f) t = Transpose<{SWAPPED}>(r) y = Mul(t, c) }}",
            "nothing takes the constant",
        ),
        "the product is used elsewhere, before its bias": (
            f"{X[:-1]}, float[a, b, 3] m) <{W}, {K}>"
            f"{{ m = MatMul(x, w) s = Add(m, b) t = Transpose<{P}>(s) y = Mul(t, k) }}",
            "nothing takes the constant",
        ),
        "it meets another Transpose": (
            f"{MEET.replace('float[a, 2, c] z', 'float[2, a, c] z')} {{ t = Transpose<{P}>(x)"
            " u = Transpose<perm = [1, 2, 0]>(z) m = Mul(t, k) y = Sub(m, u) }",
            "nothing takes the constant",
        ),
        "it meets a Transpose that is used elsewhere": (
            f"{MEET.replace(') => (', ') => (float[a, c, 2] u, ')} {{ t = Transpose<{P}>(x)"
            f" u = Transpose<{P}>(z) m = Mul(t, k) y = Sub(m, u) }}",
            "nothing takes the constant",
        ),
        "nothing before": (f"{X} <{W}> {{ y = Mul(x, x) }}", "no Transpose before"),
        "not constant": (
            f"g (float[a, b, 2] x, float[3, 1] k) => (float[a, 3, b] y) <{W}>"
            f"{{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "not a small constant",
        ),
        "used elsewhere": (
            f"{X[:-1]}, float[a, 3, b] t) <{W}, {K}>"
            f"{{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "an inner result is used elsewhere",
        ),
        "the product is used elsewhere": (
            f"{X[:-1]}, float[a, b, 3] m) <{W}, {K}>"
            f"{{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "an inner result is used elsewhere",
        ),
        "nothing takes the constant": (
            f"{X} <{W}, {K}>{{ m = MatMul(x, w) r = Relu(m) t = Transpose<{P}>(r) y = Mul(t, k) }}",
            "nothing takes the constant",
        ),
        "the sum of two results": (
            f"{X} <{W}, {K}>"
            f"{{ m = MatMul(x, w) s = Add(m, m) t = Transpose<{P}>(s) y = Mul(t, k) }}",
            "nothing takes the constant",
        ),
        "weights that are not constant": (
            f"g (float[a, b, 2] x, float[2, 3] v) => (float[a, 3, b] y) <{K}>"
            f"{{ m = MatMul(x, v) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "nothing takes the constant",
        ),
        "one value for each row": (
            "g (float[a, 4, 2] x) => (float[a, 3, 4] y)"
            f" <{W}, float[4] k = {{1, 2, 3, 4}}>"
            f"{{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "one value for each channel",
        ),
        "a shape that changes": (
            "g (float[a, 1, 2] x) => (float[a, 3, c] y)"
            f" <{W}, float[3, 2] k = {{1, 2, 3, 4, 5, 6}}>"
            f"{{ m = MatMul(x, w) t = Transpose<{P}>(m) y = Mul(t, k) }}",
            "the shape may change",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_a_large_constant_is_not_written_twice() -> None:
    """A constant of more than a megabyte that another node reads."""
    text = (
        "g (float[a, b, c] x, float[2] i) => (float[a, b, c] y, float[300000, 2] v)"
        f" {{ t = Transpose<{P}>(x) s = Mul(t, k) y = Transpose<{P}>(s) v = Add(i, k) }}"
    )
    model = model_from_text(text)
    model.graph.initializer.append(from_array(np.ones((300000, 2), np.float32), "k"))
    check_no_match(model, "TransposeBinary", "the model would grow")


def test_broadcasting_of_opset_6() -> None:
    for pattern, rows in MODELS.items():
        check_no_match(next(iter(rows.values()))[0], pattern, "needs opset 7", opset=6)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(("Add", "Sub", "Mul", "Div", "Less", "Pow")),
    st.permutations((0, 1, 2)),
    st.sampled_from((((2, 3, 1), (2, 3, 4)), ((0, 1, 4), (1, 1, 1)), ((2, 1, 2), (2, 5, 1)))),
    st.booleans(),
)
def test_any_permutation(
    op_type: str, perm: list[int], shapes: tuple[tuple[int, ...], ...], back: bool
) -> None:
    """Dimensions 0 and 1, infinities, NaN, dimensions that broadcast."""
    kind = "bool" if op_type == "Less" else "float"
    inverse = [perm.index(i) for i in range(3)]
    text = (
        "g (float[a, b, c] x, float[d, e, f] z) => ({}[i, j, k] y) {{ t = Transpose<perm = {}>(x) "
    )
    text = text.format(kind, list(perm))
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1.5, -2], np.float32)
    x, z = (np.resize(values, s) for s in shapes)
    if back:
        text += f"s = {op_type}(t, z) y = Transpose<perm = {inverse}>(s) }}"
        z = z.transpose(perm)
    else:
        text += f"u = Transpose<perm = {list(perm)}>(z) y = {op_type}(t, u) }}"
    check_pattern(text, None, "TransposeBinary", feeds=[{"x": x, "z": z}])
