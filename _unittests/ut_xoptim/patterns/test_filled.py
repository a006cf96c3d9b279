"""Tensors filled with one number."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

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
}
#: pattern -> [(model, reason)]
REFUSED = {
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
