"""Tensors filled with one number."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "FilledElementwise": {
        "a sum": (
            """agraph (int64[2] s) => (float[a,b] y) <float c = {8}> {
                z = ConstantOfShape <value = float[1] {2}> (s)
                y = Add(c, z)
            }""",
            """agraph (int64[2] s) => (float[a,b] y) {
                y = ConstantOfShape <value = float[1] {10}> (s)
            }""",
        ),
        "no value, as many dimensions": (
            """agraph (float[a,b] x) => (float[a,b] y) <float[1,1] c = {3}> {
                s = Shape(x)
                z = ConstantOfShape(s)
                y = Sub(c, z)
            }""",
            """agraph (float[a,b] x) => (float[a,b] y) {
                s = Shape(x)
                y = ConstantOfShape <value = float[1] {3}> (s)
            }""",
        ),
        "another type": (
            """agraph (int64[2] s) => (bool[a,b] y) {
                z = ConstantOfShape <value = int64[1] {2}> (s)
                y = Cast <to = 9> (z)
            }""",
            """agraph (int64[2] s) => (bool[a,b] y) {
                y = ConstantOfShape <value = bool[1] {1}> (s)
            }""",
        ),
        "used elsewhere": (
            """agraph (int64[2] s) => (float[a,b] y, float[a,b] z) {
                z = ConstantOfShape <value = float[1] {2}> (s)
                y = Neg(z)
            }""",
            """agraph (int64[2] s) => (float[a,b] y, float[a,b] z) {
                z = ConstantOfShape <value = float[1] {2}> (s)
                y = ConstantOfShape <value = float[1] {-2}> (s)
            }""",
        ),
    },
    "FilledOperand": {
        "the least of two": (
            """agraph (float[a,b] x) => (float[a,b] y) {
                s = Shape(x)
                z = ConstantOfShape <value = float[1] {2}> (s)
                y = Min(x, z)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) <float c = {2}> { y = Min(x, c) }",
            {"sizes": [{"a": 2, "b": 3}, {"a": 0, "b": 3}, {"a": 1, "b": 1}]},
        ),
        "the first operand, fewer dimensions, no value": (
            """agraph (float[a,b] x) => (float[a,b] y) {
                s = Shape<start = 1>(x)
                z = ConstantOfShape(s)
                y = Sub(z, x)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) <float c = {0}> { y = Sub(c, x) }",
        ),
        "integers, used elsewhere": (
            """agraph (int64[a] x) => (bool[a] y, int64[a] z) {
                s = Shape(x)
                z = ConstantOfShape <value = int64[1] {3}> (s)
                y = Less(x, z)
            }""",
            """agraph (int64[a] x) => (bool[a] y, int64[a] z) <int64 c = {3}> {
                s = Shape(x)
                z = ConstantOfShape <value = int64[1] {3}> (s)
                y = Less(x, c)
            }""",
        ),
        "both branches of a choice": (
            """agraph (float[a,b] x, bool[a,b] c) => (float[a,b] y) {
                s = Shape(x)
                z = ConstantOfShape <value = float[1] {2}> (s)
                t = Shape<start = 1>(c)
                o = ConstantOfShape(t)
                y = Where(c, z, o)
            }""",
            """agraph (float[a,b] x, bool[a,b] c) => (float[a,b] y) <float t = {2}, float o = {0}> {
                y = Where(c, t, o)
            }""",
            {"sizes": [{"a": 2, "b": 3}, {"a": 0, "b": 3}, {"a": 1, "b": 1}]},
        ),
        "a branch, the condition has fewer dimensions": (
            """agraph (float[a,b] x, bool[b] c) => (float[a,b] y) {
                s = Shape<start = 1>(x)
                z = ConstantOfShape(s)
                y = Where(c, x, z)
            }""",
            "agraph (float[a,b] x, bool[b] c) => (float[a,b] y) <float o = {0}> { y = Where(c, x, o) }",
        ),
    },
}
#: pattern -> [(model, reason)]
REFUSED = {
    "FilledOperand": [
        (
            "agraph (float[a] x, float[a] z) => (float[a] y) { y = Max(x, z) }",
            "no ConstantOfShape before",
        ),
        (
            """agraph (float[a] x, int64[1] s) => (float[b] y) {
                z = ConstantOfShape(s)
                y = Max(x, z)
            }""",
            "the shape may change",
        ),
        (
            """agraph (float[1,a] x) => (float[a,a] y) {
                t = Transpose(x)
                s = Shape(t)
                z = ConstantOfShape(s)
                y = Mul(x, z)
            }""",
            "the shape may change",
        ),
        (
            """agraph (float[a] x) => (float[a] y) {
                s = Shape(x)
                z = ConstantOfShape(s)
                y = Max(x, z, x)
            }""",
            "there are not two operands",
        ),
        (
            """agraph (float[a] x) => (float[a] y) {
                s = Shape(x)
                z = ConstantOfShape(s)
                y = Mul(z, z)
            }""",
            "the shape may change",
        ),
        (
            """agraph (bool[1] c, float[a] x) => (float[a] y) {
                s = Shape(x)
                z = ConstantOfShape(s)
                y = Where(c, z, z)
            }""",
            "the shape may change",
        ),
    ],
    "FilledElementwise": [
        ("agraph (float[a] x) => (float[a] y) { y = Neg(x) }", "no ConstantOfShape before"),
        (
            """agraph (int64[1] s, float c) => (float[a] y) {
                z = ConstantOfShape(s)
                y = Add(z, c)
            }""",
            "the other operand is not constant",
        ),
        (
            """agraph (int64[1] s) => (float[2] y) <float[2] c = {1, 2}> {
                z = ConstantOfShape(s)
                y = Add(z, c)
            }""",
            "the other operand is not one number, or adds dimensions",
        ),
        (
            """agraph (int64[1] s) => (float[1,a] y) <float[1,1] c = {1}> {
                z = ConstantOfShape(s)
                y = Mul(z, c)
            }""",
            "the other operand is not one number, or adds dimensions",
        ),
        (
            """agraph (int64[b] s) => (float[] y) <float[1] c = {1}> {
                z = ConstantOfShape(s)
                y = Mul(z, c)
            }""",
            "the other operand is not one number, or adds dimensions",
        ),
        (
            """agraph (int64[1] s) => (int64[a] y) <int64 c = {0}> {
                z = ConstantOfShape <value = int64[1] {2}> (s)
                y = Div(z, c)
            }""",
            "the number cannot be computed",
        ),
        (
            """agraph (int64[1] s) => (string[a] y) {
                z = ConstantOfShape(s)
                y = Cast <to = 8> (z)
            }""",
            "ConstantOfShape does not make this type",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


_ZEROS = "g (float[a, 2] x) => (float[a, 2] y) { s = Shape(x) z = ConstantOfShape(s)"
#: sums with zeros
SUMS = {
    "ConstantOfShape": f"{_ZEROS} r = Add(x, z) y = Neg(r) }}",
    "zeros on the left, Expand": """g (float[a, 2] x) => (float[a, 2] y) <float zero = {0}>
        { s = Shape<start = 1>(x) z = Expand(zero, s) r = Add(z, x) y = Neg(r) }""",
    "subtracted": f"{_ZEROS} r = Sub(x, z) y = Neg(r) }}",
}


@pytest.mark.parametrize("name", SUMS)
def test_zeros_are_not_added(name: str) -> None:
    after = "g (float[a, 2] x) => (float[a, 2] y) { y = Neg(x) }"
    check_pattern(SUMS[name], after, "AddZeros,Identity,ShapeBasedExpandBroadcast")


def test_zeros_are_negated() -> None:
    """0 - x is -x, a sum with ones is another one."""
    ones = _ZEROS.replace("OfShape(s)", "OfShape<value = float[1] {1}>(s)")
    for text, number in ((f"{_ZEROS} y = Sub(z, x) }}", 0), (f"{ones} y = Add(z, x) }}", 1)):
        after = f"g (float[a, 2] x) => (float[a, 2] y) <float c = {{{number}}}> {{ y = Sub(c, x) }}"
        after = after.replace("Sub", "Add") if number else after
        check_pattern(text, after, "AddZeros,Identity")
