"""LRN with a convolution across the channels."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

HEAD = "g (float[n, 8, 4, 4] x) => (float[n, 8, 4, 4] y)"
LRN = "LRN <size = 5, alpha = 0.5, beta = 0.75, bias = 2.0> (x)"


def written(size: int, alpha: float, bias: float, end: str, kept: str = HEAD) -> str:
    """The model that is expected.

    :param end: the nodes after the sums, s
    :param kept: the inputs and outputs
    """
    half, values = size // 2, ", ".join([str(alpha / size)] * size)
    sizes = f"kernel_shape = [{size}, 1, 1], pads = [{half}, 0, 0, {half}, 0, 0]"
    constants = f"float[1, 1, {size}, 1, 1] k = {{{values}}}, float[1] b = {{{bias}}}"
    return (
        f"{kept} <int64[1] one = {{1}}, {constants}> {{ q = Mul(x, x) u = Unsqueeze(q, one)"
        f"v = Conv <{sizes}> (u, k, b) s = Squeeze(v, one) {end} }}"
    )


FIXED = HEAD.replace("n,", "2,")
THREE_QUARTERS = "r = Sqrt(s) t = Sqrt(r) m = Mul(r, t) y = Div(x, m)"
MODELS = {
    "OrtLRN": {
        "three quarters": (f"{HEAD} {{ y = {LRN} }}", written(5, 0.5, 2, THREE_QUARTERS)),
        "a window longer than the channels": (
            f"{FIXED} {{ y = LRN <size = 19, alpha = 3.0, bias = 0.5> (x) }}",
            written(19, 3, 0.5, THREE_QUARTERS, FIXED),
        ),
        "a square root": (
            f"{HEAD} {{ y = {LRN} }}".replace("0.75", "0.5"),
            written(5, 0.5, 2, "r = Sqrt(s) y = Div(x, r)"),
        ),
        "no root, a window of one": (
            f"{HEAD} {{ y = {LRN} }}".replace("0.75", "1.0").replace("= 5,", "= 1,"),
            written(1, 0.5, 2, "y = Div(x, s)"),
        ),
        "default values": (
            f"{HEAD} {{ y = LRN <size = 3> (x) }}",
            written(3, 1e-4, 1, THREE_QUARTERS),
        ),
    }
}
PLAIN = f"{HEAD} {{ y = {LRN} }}"
REFUSED = {
    "OrtLRN": {
        "on CUDA": (PLAIN, "it is for the processor CPU", {"processor": "CPU,CUDA"}),
        "double": (PLAIN.replace("float[", "double["), "x is not float"),
        "unknown rank": (
            "g (float[] v, int64[d] n) => (float[] y) { x = Reshape(v, n) y = " + LRN + " }",
            "the shape is not known",
        ),
        "three dimensions": (PLAIN.replace(", 4]", "]"), "x does not have four dimensions"),
        "few elements": (
            PLAIN.replace("n,", "1,"),
            "it is slower on so few elements",
        ),
        "unknown channels": (PLAIN.replace("n, 8", "n, c"), "the sizes are not known integers"),
        "unknown rows": (PLAIN.replace("8, 4, 4", "8, h, 4"), "the sizes are not known integers"),
        "no column": (PLAIN.replace("4, 4]", "4, 0]"), "the sizes are not known integers"),
        "another power": (PLAIN.replace("0.75", "0.6"), "the power is not made of square roots"),
        "a negative factor": (PLAIN.replace("0.5", "-0.5"), "alpha or bias is negative"),
        "a negative bias": (PLAIN.replace("2.0", "-2.0"), "alpha or bias is negative"),
        "an even window": (PLAIN.replace("= 5", "= 4"), "the window has an even length"),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6, rtol=1e-6)
test_refuses = refusal_tests(REFUSED)
