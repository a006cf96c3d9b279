"""Convolutions of rows, written as those of images."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from onnx import ModelProto
from onnx.numpy_helper import from_array

from xoptim.testing import check_no_match, check_pattern, rewrite_tests
from xoptim.testing.checks import optimize_with, reasons_of
from xoptim.testing.models import model_from_text

NAME = "BlockConv"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
ROWS = "g (float[a, 16, b] x{}) => (float[a, 16, c] y{})"
WIDE = "pads = [2, 2]"


def model(body: str, inputs: str = "", outputs: str = "", **shapes: tuple[int, ...]) -> ModelProto:
    """Nodes that read rows of 16 channels, with random weights of the given shapes."""
    proto = model_from_text(f"{ROWS.format(inputs, outputs)} {{ {body} }}", 18)
    rng = np.random.default_rng(0)
    sizes = {"w": (16, 16, 5), **shapes}
    for name, shape in sizes.items():
        if name in body:
            value = rng.standard_normal(shape).astype(np.float32) / 8
            proto.graph.initializer.append(from_array(value, name))
    return proto


ONES = f"<float[16, 16, 5] w = {{{', '.join(['0.125'] * 1280)}}}, int64[1] h = {{2}}>"
#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    NAME: {
        "a chain": (
            f"{ROWS.format('', '')} {ONES} {{ c = Conv<{WIDE}>(x, w) l = LeakyRelu(c) y = Conv<{WIDE}>(l, w) }}",
            f"{ROWS.format('', '')} {ONES} {{ u = Unsqueeze(x, h) v = Unsqueeze(w, h)"
            " c = Conv<pads = [0, 2, 0, 2]>(u, v) l = LeakyRelu(c) z = Unsqueeze(w, h)"
            " d = Conv<pads = [0, 2, 0, 2]>(l, z)"
            " y = Squeeze(d, h) }",
            {"sizes": [{"a": 2, "b": 11}, {"a": 1, "b": 9}], **CLOSE},
        ),
    },
}
#: case -> nodes before, operators after, other weights
CASES = {
    "alone": ("y = Conv(x, w)", ["Unsqueeze", "Unsqueeze", "Conv", "Squeeze"], {}),
    "channels on their own": (
        "y = Conv<group = 16>(x, w)",
        ["Unsqueeze", "Unsqueeze", "Conv", "Squeeze"],
        {"w": (16, 1, 4)},
    ),
    "groups": (
        "c = Conv(x, w) d = Conv<group = 2, pads = [1, 2]>(c, v) y = Conv(d, u)",
        [*["Unsqueeze"] * 4, *["Conv"] * 3, "Squeeze"],
        {"w": (32, 16, 1), "v": (32, 16, 3), "u": (16, 32, 1)},
    ),
    "attributes and a bias": (
        "y = Conv<dilations = [2], strides = [3], pads = [1, 4], kernel_shape = [5]>(x, w, k)",
        ["Unsqueeze", "Unsqueeze", "Conv", "Squeeze"],
        {"k": (16,)},
    ),
    "automatic padding": (
        'y = Conv<auto_pad = "SAME_LOWER", strides = [2]>(x, w)',
        ["Unsqueeze", "Unsqueeze", "Conv", "Squeeze"],
        {},
    ),
    "a chain": (
        f"c = Conv<{WIDE}>(x, w) l = LeakyRelu(c) y = Conv<{WIDE}>(l, v)",
        ["Unsqueeze", "Unsqueeze", "Conv", "LeakyRelu", "Unsqueeze", "Conv", "Squeeze"],
        {"v": (16, 16, 5)},
    ),
    "others around": (
        f"c = Conv(x, v) l = Relu(c) d = Conv<{WIDE}>(l, w) y = Conv<group = 16>(d, u)",
        [*["Unsqueeze"] * 2, "Conv", "Relu", *["Unsqueeze", "Conv"] * 2, "Squeeze"],
        {"v": (16, 16, 1), "u": (16, 1, 3)},
    ),
    "a residual": (
        f"c = Conv<{WIDE}>(x, w) l = LeakyRelu(c) d = Conv<{WIDE}>(l, w) s = Add(d, c)"
        f" t = Div(s, n) y = Conv<{WIDE}>(t, w)",
        [
            *["Unsqueeze"] * 2,
            *["Conv", "LeakyRelu", "Unsqueeze", "Conv", "Add", "Div", "Unsqueeze", "Conv"],
            "Squeeze",
        ],
        {"n": ()},
    ),
    "what is before and after stays": (
        f"l = Relu(x) c = Conv<{WIDE}>(l, w) y = Tanh(c)",
        ["Relu", "Unsqueeze", "Unsqueeze", "Conv", "Squeeze", "Tanh"],
        {},
    ),
    "rows that are not convolved": (
        f"c = Conv<{WIDE}>(x, w) s = Add(c, x) y = Conv<{WIDE}>(s, w)",
        [*["Unsqueeze"] * 2, "Conv", "Add", "Unsqueeze", "Conv", "Squeeze"],
        {},
    ),
    "a clip": (
        f"c = Conv<{WIDE}>(x, w) l = Clip(c, n) y = Conv<{WIDE}>(l, w)",
        [*["Unsqueeze"] * 2, "Conv", "Clip", "Unsqueeze", "Conv", "Squeeze"],
        {"n": ()},
    ),
    "a function of onnxruntime": (
        f"c = Conv<{WIDE}>(x, w) l = com.microsoft.Gelu(c) s = Add(l, c) y = Conv<{WIDE}>(s, w)",
        [*["Unsqueeze"] * 2, "Conv", "Gelu", "Add", "Unsqueeze", "Conv", "Squeeze"],
        {},
    ),
    "a sum of constant rows": (
        f"c = Conv<{WIDE}>(x, w) l = Add(c, k) y = Conv<{WIDE}>(l, w)",
        [*["Unsqueeze"] * 2, "Conv", "Unsqueeze", "Add", "Unsqueeze", "Conv", "Squeeze"],
        {"k": (1, 16, 1)},
    ),
    "a sum of a constant vector": (
        f"c = Conv<{WIDE}>(x, w) l = Add(c, k) y = Conv<{WIDE}>(l, w)",
        [
            *["Unsqueeze"] * 2,
            *["Conv", "Squeeze", "Add"],
            *["Unsqueeze"] * 2,
            *["Conv", "Squeeze"],
        ],
        {"k": (16, 1)},
    ),
    "a convolution that nothing joins to it": (
        f"c = Conv<{WIDE}>(x, w) r = Neg(x) d = Conv(r, v) y = Add(c, d)",
        [*["Unsqueeze"] * 2, "Conv", "Squeeze", "Neg", "Conv", "Add"],
        {"v": (16, 16, 1)},
    ),
    "fused with an activation": (
        'y = com.microsoft.FusedConv<activation = "Relu">(x, w)',
        ["Unsqueeze", "Unsqueeze", "FusedConv", "Squeeze"],
        {},
    ),
}


test_example = rewrite_tests(MODELS)


@pytest.mark.parametrize("case", CASES)
def test_rewrites(case: str) -> None:
    body, expected, weights = CASES[case]
    sizes = [{"a": 2, "b": 11}, {"a": 1, "b": 5}, {"a": 0, "b": 8}]
    result = check_pattern(model(body, **weights), None, NAME, sizes=sizes, **CLOSE)
    assert Counter(n.op_type for n in result.graph.node) == Counter(expected)


def test_results_that_are_read_elsewhere() -> None:
    """An output and a subgraph read results of the middle."""
    body = (
        f"c = Conv<{WIDE}>(x, w) l = Relu(c) d = Conv<{WIDE}>(l, w)"
        " y = If(q) <then_branch = h () => (float[a, 16, b] z) { z = Neg(l) },"
        " else_branch = i () => (float[a, 16, b] t) { t = Abs(d) }>"
    )
    proto = model(body, ", bool q", ", float[a, 16, b] c")
    result = check_pattern(proto, None, NAME, **CLOSE)
    assert sum(n.op_type == "Squeeze" for n in result.graph.node) == 3


REFUSED = {
    "few elements": ("y = Conv(x, w)", {"w": (16, 16, 4)}, "the kernel for rows is as fast"),
    "many channels": (
        "c = Conv(x, v) y = Conv(c, w)",
        {"w": (16, 144, 5), "v": (144, 16, 5)},
        "the kernel for rows is as fast",
    ),
    "other channels": ("y = Conv(x, w)", {"w": (12, 16, 5)}, "the kernel for rows is as fast"),
    "groups": ("y = Conv<group = 2>(x, w)", {"w": (16, 8, 5)}, "the kernel for rows is as fast"),
    "images": (
        "u = Unsqueeze(x, s) y = Conv(u, w)",
        {"w": (16, 16, 1, 5)},
        "the weight is not a constant of this graph, or not for rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    body, weights, reason = REFUSED[case]
    proto = model(body, ", int64[1] s" if " s)" in body else "", **weights)
    check_no_match(proto, NAME, reason)


def test_refuses_others() -> None:
    check_no_match(model("y = Conv(x, w)"), NAME, "it is for the processor CPU", processor="CUDA")
    proto = model("y = Conv(x, z)", ", float[16, 16, 5] z")
    check_no_match(proto, NAME, "the weight is not a constant of this graph")
    text = "g (double[a, 16, b] x, double[16, 16, 5] w) => (double[a, 16, c] y) { y = Conv(x, w) }"
    check_no_match(text, NAME, "the type is not float")


def test_refuses_the_weight_of_an_outer_graph() -> None:
    """It would be reshaped at each run of the branch, which onnxruntime does not hold in blocks."""
    body = (
        f"y = If(q) <then_branch = h () => (float[a, 16, b] z) {{ z = Conv<{WIDE}>(x, w) }},"
        " else_branch = i () => (float[a, 16, b] t) { t = Abs(x) }>"
    )
    made, *_ = optimize_with(model(body, ", bool q"), NAME)
    branch = next(a.g for a in made.graph.node[0].attribute if a.name == "then_branch")
    assert [node.op_type for node in branch.node] == ["Conv"]


def test_the_first_convolution_writes_all() -> None:
    proto = model(f"c = Conv<{WIDE}>(x, w) l = Relu(c) y = Conv(l, w)")
    first, second = reasons_of(proto, NAME)
    assert first[1].startswith("MatchResult")
    assert "it is written with the convolutions before it" in second[1]


def test_function_attributes() -> None:
    """An attribute that belongs to the function may be any."""
    proto = model("y = Conv<strides: ints = @s>(x, w)")
    check_no_match(proto, NAME, "not for rows")
