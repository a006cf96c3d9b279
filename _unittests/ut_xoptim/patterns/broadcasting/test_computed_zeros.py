"""Zeros a model computes."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

_LSTM = """g (float[s, b, 1] x) => (float[s, 1, b, 1] y, float[1, b, 1] h)
    <float[1, 4, 1] w = {1, -1, 2, 0.5}, float[1, 4, 1] r = {0.5, 1, -1, 1}, float zero = {0},
     int64[1] one = {1}, float[1, 8] bias = {1, 0, 0, 1, 0, 0, 0, 0}> {"""
_ZEROS = "d = Shape<start = 1, end = 2>(x) e = Concat<axis = 0>(one, d, one) z = Expand(zero, e)"
_GRU = """g (float[s, b, 1] x, float[1, b, 1] i) => (float[1, b, 1] h)
    <float[1, 3, 1] w = {1, -1, 2}, float[1, 3, 1] r = {0.5, 1, -1}> {"""
_PEEPHOLE = _LSTM.replace("float zero", "float[1, 3] p = {1, 2, 3}, float zero")
#: both sequences have one element
_LENGTHS = _LSTM.replace("[s, b, 1] x", "[s, 2, 1] x").replace(
    "float zero", "int32[2] n = {1, 1}, float zero"
)

MODELS = {
    "ZeroState": {
        "both states": (
            f"{_LENGTHS} {_ZEROS} y, h = LSTM<hidden_size = 1>(x, w, r, bias, n, z, z) }}",
            f"{_LENGTHS} y, h = LSTM<hidden_size = 1>(x, w, r, bias, n) }}",
        ),
        "no bias, no length": (
            f"{_LSTM} {_ZEROS} y, h = LSTM<hidden_size = 1>(x, w, r, , , z, z) }}",
            f"{_LSTM} y, h = LSTM<hidden_size = 1>(x, w, r) }}",
        ),
        "one of the states, peepholes": (
            f"{_PEEPHOLE} {_ZEROS} c = Cos(z) y, h = LSTM<hidden_size = 1>(x, w, r, , , c, z, p) }}",
            f"{_PEEPHOLE} {_ZEROS} c = Cos(z) y, h = LSTM<hidden_size = 1>(x, w, r, , , c, , p) }}",
        ),
        "GRU": (
            f"{_GRU} s = Shape(i) z = ConstantOfShape(s)"
            " t, h = GRU<hidden_size = 1>(x, w, r, , , z) }",
            f"{_GRU} t, h = GRU<hidden_size = 1>(x, w, r) }}",
        ),
    },
}
REFUSED = {
    "ZeroState": {
        "no state": (
            f"{_LSTM} y, h = LSTM<hidden_size = 1>(x, w, r) }}",
            "no initial state is known to be made of zeros",
        ),
        "another state": (
            f"{_GRU} t, h = GRU<hidden_size = 1>(x, w, r, , , i) }}",
            "no initial state is known to be made of zeros",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, atol=1e-6)


test_refuses = refusal_tests(REFUSED)
