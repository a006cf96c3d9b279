"""Windows along a line, written on a picture of one row."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

W = np.random.default_rng(0).standard_normal(96).astype(np.float32).round(2).tolist()
FILTERS = ", ".join(map(str, W))
TWO = "int64[1] two = {2}"


def pool(body: str, length: str = "m", constants: str = TWO, x: str = "n, 64, 40") -> str:
    """One pool."""
    return (
        f'<ir_version: 8, opset_import: ["" : 19]> g (float[{x}] x) => (float[n, 64, {length}] y)'
        f" <{constants}> {{ {body} }}"
    )


def conv(body: str, shape: str = "32, 1, 3", constants: str = "", x: str = "n, 32, 40") -> str:
    """One convolution."""
    return (
        f'<ir_version: 8, opset_import: ["" : 18]> g (float[{x}] x) => (float[n, 32, m] y)'
        f" <float[{shape}] w = {{{FILTERS}}}{constants}> {{ {body} }}"
    )


def moved(node: str) -> str:
    """An operator between Unsqueeze and Squeeze."""
    return f"u = Unsqueeze(x, two) v = {node} y = Squeeze(v, two)"


#: what the documentation draws: name -> (before, after)
MODELS = {
    "LineWindow": {
        "an average": (
            pool("y = AveragePool<kernel_shape = [5]>(x)", "36"),
            pool(moved("AveragePool<kernel_shape = [1, 5]>(u)"), "36"),
        ),
        "a filter for each channel": (
            conv("y = Conv<group = 32, pads = [1, 1]>(x, w)"),
            conv(
                moved("Conv<group = 32, pads = [0, 1, 0, 1]>(u, w)"),
                "32, 1, 1, 3",
                f", {TWO}",
            ),
        ),
    },
}
BIAS = f", float[32] b = {{{', '.join('1' * 32)}}}"
#: pattern -> case -> (before, after)
CASES = {
    "LineWindow": {
        "a maximum, with steps, padded": (
            pool("y = MaxPool<kernel_shape = [3], strides = [2], pads = [1, 0]>(x)", "20"),
            pool(
                moved("MaxPool<kernel_shape = [1, 3], strides = [1, 2], pads = [0, 1, 0, 0]>(u)"),
                "20",
            ),
        ),
        "an average with dilations, that counts what is padded": (
            pool(
                "y = AveragePool<kernel_shape = [3], dilations = [2], pads = [2, 2],"
                " count_include_pad = 1>(x)"
            ),
            pool(
                moved(
                    "AveragePool<kernel_shape = [1, 3], dilations = [1, 2], pads = [0, 2, 0, 2],"
                    " count_include_pad = 1>(u)"
                )
            ),
        ),
        "an average rounded up": (
            pool("y = AveragePool<kernel_shape = [3], strides = [3], ceil_mode = 1>(x)"),
            pool(
                moved("AveragePool<kernel_shape = [1, 3], strides = [1, 3], ceil_mode = 1>(u)"),
            ),
        ),
        "as many elements": (
            pool('y = AveragePool<kernel_shape = [4], auto_pad = "SAME_UPPER">(x)'),
            pool(moved('AveragePool<kernel_shape = [1, 4], auto_pad = "SAME_UPPER">(u)')),
        ),
        "no bias, axes that are attributes": (
            conv('y = Conv<group = 32>(x, w, "")').replace('"" : 18', '"" : 11'),
            conv(
                "u = Unsqueeze<axes = [2]>(x) v = Conv<group = 32>(u, w) y = Squeeze<axes = [2]>(v)",
                "32, 1, 1, 3",
            ).replace('"" : 18', '"" : 11'),
        ),
        "a convolution with a bias, steps and dilations": (
            conv(
                "y = Conv<group = 32, kernel_shape = [3], dilations = [2], strides = [2],"
                " pads = [4, 0]>(x, w, b)",
                constants=BIAS,
            ),
            conv(
                moved(
                    "Conv<group = 32, kernel_shape = [1, 3], dilations = [1, 2],"
                    " strides = [1, 2], pads = [0, 4, 0, 0]>(u, w, b)"
                ),
                "32, 1, 1, 3",
                f"{BIAS}, {TWO}",
            ),
        ),
    },
}
#: pattern -> case -> (model, reason)
REFUSED = {
    "LineWindow": {
        "a picture": (
            pool("y = AveragePool<kernel_shape = [5, 5]>(x)", "36, 36", x="n, 64, 40, 40"),
            "it is not a line",
        ),
        "few elements": (
            pool("y = MaxPool<kernel_shape = [5]>(x)", "36", x="1, 64, 40"),
            "there are few elements",
        ),
        "doubles": (
            pool("y = MaxPool<kernel_shape = [5]>(x)", "36").replace("float", "double"),
            "the elements are not float",
        ),
        "indices": (
            pool("y, i = MaxPool<kernel_shape = [5]>(x)", "36").replace(
                " y) <", " y, int64[n, 64, 36] i) <"
            ),
            "another result is read",
        ),
        "channels are added": (
            conv("y = Conv(x, w)", "32, 3, 1", x="n, 3, 40"),
            "there is not one filter for each of 16 channels",
        ),
        "two filters for each channel": (
            conv("y = Conv<group = 16>(x, w)", x="n, 16, 40"),
            "there is not one filter for each of 16 channels",
        ),
        "the filters are an input": (
            '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 32, 40] x, float[32, 1, 3] w)'
            " => (float[n, 32, 38] y) { y = Conv<group = 32>(x, w) }",
            "the filters are not constant",
        ),
    },
}
test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)
test_refused = refusal_tests(REFUSED)


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinities(op_type, value):
    """They stay in the windows that hold them."""
    x = np.random.default_rng(0).standard_normal((2, 64, 40)).astype(np.float32)
    x[0, 3, 7] = value
    text = pool(f"y = {op_type}<kernel_shape = [3], strides = [3], pads = [1, 1]>(x)", "14")
    # the reference evaluator pads a maximum with NaN
    check_pattern(text, None, "LineWindow", feeds=[{"x": x}], atol=1e-5, reference=False)
