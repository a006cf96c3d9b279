"""Convolutions and poolings of one dimension, written with two."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.numpy_helper import from_array

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests
from xoptim.testing.models import model_from_text

ONE = "g (float[a, 2, b] x) => (float[a, c, d] y)"
FEW = ONE.replace("[a, 2, b]", "[3, 2, 7]")
AXIS = "int64[1] h = {2}"
LAST = "int64[1] h = {-1}"
W = "float[3, 2, 1, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] k = {1, 2, 3}"
TURNED = "float[2, 3, 1, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"
AROUND = "u = Unsqueeze(x, h) p = {} y = Squeeze(p, h)"


def _around(window: str, constants: str = AXIS, header: str = ONE) -> str:
    """A window between an Unsqueeze and a Squeeze."""
    return f"{header} <{constants}> {{ {AROUND.format(window)} }}"


def _alone(window: str, constants: str = AXIS, header: str = ONE) -> str:
    """The same window without them; the weight is folded later."""
    weight = "v = Squeeze(w, h)" if "v" in window.split("(")[1] else ""
    return f"{header} <{constants}> {{ {weight} y = {window} }}"


def _moved(function: str, constants: str = W) -> str:
    """A function of a convolution without its dimension 1."""
    return f"{ONE} <{AXIS}, {constants}> {{ u = Unsqueeze(x, h) p = Conv(u, w, k) q = Squeeze(p, h) {function} }}"


def _kept(function: str, constants: str = W) -> str:
    """The same, where the dimension 1 goes later; the new constant is folded later."""
    shapes = "int64[4] s = {1, 3, 1, 1}, int64[4] o = {1, 1, 1, 1}"
    return f"{ONE} <{AXIS}, {shapes}, {constants}> {{ u = Unsqueeze(x, h) p = Conv(u, w, k) {function} y = Squeeze(a, h) }}"


MODELS = {
    "SqueezeBehind": {
        "a bias": (
            _moved("y = Add(q, e)", f"{W}, float[3, 1] e = {{1, 2, 3}}"),
            _kept("r = Reshape(e, s) a = Add(p, r)", f"{W}, float[3, 1] e = {{1, 2, 3}}"),
        ),
        "the constant comes first, a number": (
            _moved("y = Sub(e, q)", f"{W}, float[1] e = {{2}}"),
            _kept("r = Reshape(e, o) a = Sub(r, p)", f"{W}, float[1] e = {{2}}"),
        ),
        "an activation": (
            _moved("y = LeakyRelu<alpha = 0.1>(q)"),
            _kept("a = LeakyRelu<alpha = 0.1>(p)"),
        ),
    },
    "SqueezeWindow": {
        "a convolution": (
            _around(
                "Conv<kernel_shape = [1, 2], strides = [1, 2], dilations = [1, 2],"
                " pads = [0, 1, 0, 3]>(u, w, k)",
                f"{AXIS}, {W}",
            ),
            _alone(
                "Conv<kernel_shape = [2], strides = [2], dilations = [2], pads = [1, 3]>(x, v, k)",
                f"{AXIS}, {W}",
            ),
        ),
        "a convolution, the last axis": (
            _around("Conv(u, w)", f"{LAST}, {W.replace('[3, 2, 1, 2]', '[3, 2, 2, 1]')}"),
            _alone(
                "Conv(x, v)", f"int64[1] h = {{3}}, {W.replace('[3, 2, 1, 2]', '[3, 2, 2, 1]')}"
            ),
        ),
        "the other stride does not matter": (
            _around("Conv<strides = [3, 1]>(u, w)", f"{AXIS}, {W}"),
            _alone("Conv<strides = [1]>(x, v)", f"{AXIS}, {W}"),
        ),
        "as many results as there are steps": (
            _around('Conv<auto_pad = "SAME_UPPER", strides = [3, 2]>(u, w)', f"{AXIS}, {W}"),
            _alone('Conv<auto_pad = "SAME_UPPER", strides = [2]>(x, v)', f"{AXIS}, {W}"),
        ),
        "a transposed convolution": (
            _around(
                "ConvTranspose<strides = [2, 3]>(u, w)",
                f"{AXIS}, {TURNED}",
            ),
            _alone("ConvTranspose<strides = [3]>(x, v)", f"{AXIS}, {TURNED}"),
        ),
        "a maximum": (
            _around(
                "MaxPool<kernel_shape = [1, 2], strides = [1, 2], ceil_mode = 1>(u)", AXIS, FEW
            ),
            _alone("MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", AXIS, FEW),
        ),
        "an average": (
            _around("AveragePool<kernel_shape = [3, 1], pads = [1, 0, 1, 0]>(u)", LAST, FEW),
            _alone("AveragePool<kernel_shape = [3], pads = [1, 1]>(x)", AXIS, FEW),
        ),
        "a norm": (
            _around("LpPool<kernel_shape = [1, 2], p = 2>(u)"),
            _alone("LpPool<kernel_shape = [2], p = 2>(x)"),
        ),
        "two axes": (
            _around("MaxPool<kernel_shape = [1, 2, 1]>(u)", "int64[2] h = {2, 4}", FEW),
            _alone("MaxPool<kernel_shape = [2]>(x)", AXIS, FEW),
        ),
        "a reshape": (
            f"g (float[a, 6] x) => (float[a, 3, d] y) <{AXIS}, {W}, int64[4] s = {{0, 2, 1, 3}}>"
            "{ u = Reshape(x, s) p = Conv(u, w) y = Squeeze(p, h) }",
            f"g (float[a, 6] x) => (float[a, 3, d] y) <{AXIS}, {W}, int64[4] s = {{0, 2, 1, 3}}>"
            "{ u = Reshape(x, s) t = Squeeze(u, h) v = Squeeze(w, h) y = Conv(t, v) }",
        ),
        "opset 11": (
            f"{FEW} {{ u = Unsqueeze<axes = [2]>(x) p = MaxPool<kernel_shape = [1, 2]>(u)"
            " y = Squeeze<axes = [2]>(p) }",
            f"{FEW} {{ y = MaxPool<kernel_shape = [2]>(x) }}",
            {"opset": 11},
        ),
        "images of two dimensions": (
            "g (float[a, 2, b, c] x) => (float[a, 2, d, e] y) <int64[1] h = {3}>"
            " { u = Unsqueeze(x, h) p = MaxPool<kernel_shape = [2, 1, 2]>(u) y = Squeeze(p, h) }",
            "g (float[a, 2, b, c] x) => (float[a, 2, d, e] y)"
            " { y = MaxPool<kernel_shape = [2, 2]>(x) }",
        ),
    },
}
REFUSED = {
    "SqueezeBehind": {
        "no convolution": (
            f"{ONE} <{AXIS}> {{ u = Unsqueeze(x, h) p = Neg(u) q = Squeeze(p, h) y = Relu(q) }}",
            "",
        ),
        "the other operand is an input": (
            _moved("y = Add(q, e)").replace("x)", "x, float[3, 1] e)", 1),
            "the other operand is not constant",
        ),
        "the other operand adds a dimension": (
            _moved("y = Add(q, e)", f"{W}, float[2, 1, 1, 1] e = {{1, 2}}").replace(
                "[a, c, d] y", "[e0, a, c, d] y"
            ),
            "the other operand adds dimensions",
        ),
        "it is read elsewhere": (
            _moved("y = Relu(q)").replace("y)", "y, float[a, c, d] q)", 1),
            "used elsewhere",
        ),
    },
    "SqueezeWindow": {
        "nothing adds the dimension": (
            "g (float[a, 2, 1, b] x) => (float[a, 2, d] y)"
            f" <{AXIS}> {{ p = MaxPool<kernel_shape = [1, 2]>(x) y = Squeeze(p, h) }}",
            "no Unsqueeze",
        ),
        "it is used elsewhere": (
            f"{ONE[:-1]}, float[a, 2, 1, b] u) <{AXIS}>"
            f" {{ {AROUND.format('MaxPool<kernel_shape = [1, 2]>(u)')} }}",
            "what the window reads is used elsewhere",
        ),
        "the axis of the channels": (
            "g (float[a, b, c] x) => (float[d, e, f] y) <int64[1] h = {1}>"
            f" {{ {AROUND.format('MaxPool<kernel_shape = [1, 2]>(u)')} }}",
            "not only those",
        ),
        "no dimension is left": (
            "g (float[a, b] x) => (float[d, e] y) <int64[2] h = {2, 3}>"
            f" {{ {AROUND.format('MaxPool<kernel_shape = [1, 1]>(u)')} }}",
            "no dimension is left",
        ),
        "a larger window": (
            _around("MaxPool<kernel_shape = [2, 2], pads = [1, 0, 0, 0]>(u)"),
            "the window is larger",
        ),
        "a larger weight": (
            _around(
                "Conv<pads = [0, 1, 1, 1]>(u, w)",
                f"{AXIS}, {W.replace('[3, 2, 1, 2]', '[3, 2, 2, 1]')}",
            ),
            "the window is larger",
        ),
        "a weight that is not constant": (
            _around("Conv(u, w)", AXIS, f"{ONE.replace('b] x', 'b] x, float[3, 2, 1, 2] w')}"),
            "the weight is not constant",
        ),
        "padding": (
            _around("Conv<pads = [2, 1, 0, 1], strides = [3, 1]>(u, w)", f"{AXIS}, {W}"),
            "a dimension is padded",
        ),
        "another dimension": (
            "g (float[a, 6] x) => (float[a, 2, d] y) <int64[1] h = {3}, int64[4] s = {0, 2, 1, 3}>"
            "{ u = Reshape(x, s) p = MaxPool<kernel_shape = [1, 3]>(u) y = Squeeze(p, h) }",
            "a dimension of what is read is not 1",
        ),
        "indices": (
            f"{ONE[:-1]}, int64[a, 2, 1, d] i) <{AXIS}> {{ u = Unsqueeze(x, h)"
            " p, i = MaxPool<kernel_shape = [1, 2]>(u) y = Squeeze(p, h) }",
            "the indices are used",
        ),
        "the size of the result is chosen": (
            _around(
                "ConvTranspose<strides = [1, 3], output_padding = [0, 1]>(u, w)",
                f"{AXIS}, {TURNED}",
            ),
            "the size of the result is chosen",
        ),
        "a pooling of any number of rows": (
            _around("MaxPool<kernel_shape = [1, 2]>(u)", AXIS, FEW.replace("[3", "[a")),
            "the kernel for images is faster",
        ),
        "a pooling of long rows": (
            _around("AveragePool<kernel_shape = [1, 2]>(u)", AXIS, FEW.replace("7]", "171]")),
            "the kernel for images is faster",
        ),
        "axes that are not known": (
            f"{ONE.replace('b] x', 'b] x, int64[n] h')} <int64[1] i = {{2}}>"
            "{ u = Unsqueeze(x, i) p = MaxPool<kernel_shape = [1, 2]>(u) y = Squeeze(p, h) }",
            "the axes are not known",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_a_convolution_that_is_faster_for_images() -> None:
    proto = model_from_text(_around("Conv(u, v)", header=ONE.replace("2, b", "16, b")), 18)
    weight = np.ones((16, 16, 1, 5), np.float32)
    proto.graph.initializer.append(from_array(weight, "v"))
    check_no_match(proto, "SqueezeWindow", "the kernel for images is faster")
    check_pattern(proto, None, "SqueezeWindow", processor="CUDA", runtime=False)


@pytest.mark.parametrize(
    ("window", "weight"),
    [
        ("Conv<group = 32>(u, v)", (32, 1, 1, 3)),
        ("Conv<group = 2>(u, v)", (32, 16, 1, 3)),
        ("ConvTranspose<strides = [1, 2]>(u, v)", (32, 16, 1, 3)),
    ],
)
def test_others_that_are_faster_for_images(window: str, weight: tuple[int, ...]) -> None:
    proto = model_from_text(_around(window, header=ONE.replace("2, b", "32, b")), 18)
    proto.graph.initializer.append(from_array(np.ones(weight, np.float32), "v"))
    check_no_match(proto, "SqueezeWindow", "the kernel for images is faster")
