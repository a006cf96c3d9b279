"""Convolutions: null bias, padding."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import check_no_match, check_pattern, model_from_text, refusal_tests

H = "g (float[a, 1, b, c] x) => (float[a, 2, d, e] y)"
W = "float[2, 1, 2, 2] w = {1, 2, 3, 4, -1, -2, -3, -4}"
P = "int64[8] p = {0, 0, 1, 0, 0, 0, 2, 1}"

#: one dimension less, and the axis of the one that is added
H1 = "g (float[a, 1, c] x) => (float[a, 2, d, e] y)"
P1 = "int64[6] p = {0, 0, 1, 0, 0, 2}"
A = "int64[1] a = {2}"
#: 1-dimensional kernel of a convolution in two dimensions
W1 = "float[2, 1, 1, 2] w = {1, 2, 3, 4}"

MODELS = {
    "ConvBiasNull": {
        "zeros": (
            f"{H} <{W}, float[2] z = {{0, 0}}> {{ y = Conv<strides=[2, 1]>(x, w, z) }}",
            f"{H} <{W}> {{ y = Conv<strides=[2, 1]>(x, w) }}",
        ),
        "negative zeros": (
            f"{H} <{W}, float[2] z = {{-0.0, 0.0}}> {{ y = Conv(x, w, z) }}",
            f"{H} <{W}> {{ y = Conv(x, w) }}",
        ),
    },
    "PadConv": {
        "all dimensions": (
            f"{H} <{W}, {P}> {{ p1 = Pad(x, p) y = Conv(p1, w) }}",
            f"{H} <{W}> {{ y = Conv<pads=[1, 0, 2, 1]>(x, w) }}",
        ),
        "a dimension is added by an Unsqueeze": (
            f"{H1} <{W1}, {P1}, {A}> {{ p1 = Pad(x, p) u = Unsqueeze(p1, a) y = Conv(u, w) }}",
            f"{H1} <{W1}, {A}> {{ u = Unsqueeze(x, a) y = Conv<pads=[0, 1, 0, 2]>(u, w) }}",
        ),
        "a dimension is added by a Reshape": (
            f"{H1} <{W1}, {P1}, int64[4] s = {{0, 1, 1, -1}}>"
            "{ p1 = Pad(x, p) u = Reshape(p1, s) y = Conv(u, w) }",
            f"{H1} <{W1}, {A}>{{ u = Unsqueeze(x, a) y = Conv<pads=[0, 1, 0, 2]>(u, w) }}",
        ),
        "added to the padding of Conv": (
            f"{H} <{W}, {P}, float z = {{0}}, float[2] b = {{1, 2}}>"
            '{ p1 = Pad<mode="constant">(x, p, z)'
            '  y = Conv<auto_pad="NOTSET", pads=[1, 1, 1, 1], dilations=[2, 2]>(p1, w, b) }',
            f"{H} <{W}, float[2] b = {{1, 2}}>"
            "{ y = Conv<pads=[2, 1, 3, 2], dilations=[2, 2]>(x, w, b) }",
        ),
        "axes": (
            f"{H} <{W}, int64[2] p = {{1, 2}}, int64[1] axes = {{-1}}>"
            "{ p1 = Pad(x, p, , axes) y = Conv(p1, w) }",
            f"{H} <{W}> {{ y = Conv<pads=[0, 1, 0, 2]>(x, w) }}",
        ),
        "two convolutions": (
            f"g (float[a, 1, b, c] x) => (float[a, 2, d, e] y, float[a, 2, f, h] z) <{W}, {P}>"
            "{ p1 = Pad(x, p) y = Conv(p1, w) z = Conv<strides=[2, 2], pads=[1, 0, 0, 0]>(p1, w) }",
            f"g (float[a, 1, b, c] x) => (float[a, 2, d, e] y, float[a, 2, f, h] z) <{W}>"
            "{ y = Conv<pads=[1, 0, 2, 1]>(x, w)"
            "z = Conv<strides=[2, 2], pads=[2, 0, 2, 1]>(x, w) }",
        ),
        "one dimension": (
            "g (float[a, 1, b] x) => (float[a, 1, c] y) <float[1, 1, 2] w = {1, 2},"
            "  int64[6] p = {0, 0, 1, 0, 0, 1}> { p1 = Pad(x, p) y = Conv(p1, w) }",
            "g (float[a, 1, b] x) => (float[a, 1, c] y) <float[1, 1, 2] w = {1, 2}>"
            "{ y = Conv<pads=[1, 1]>(x, w) }",
        ),
    },
}

NEAR_MISSES = {
    "ConvBiasNull": {
        "no bias": (f"{H} <{W}> {{ y = Conv(x, w) }}", "there is no bias"),
        "a missing bias": (f"{H} <{W}> {{ y = Conv(x, w, ) }}", "there is no bias"),
        "not null": (f"{H} <{W}, float[2] z = {{0, 1}}> {{ y = Conv(x, w, z) }}", "made of zeros"),
        "an input": (
            f"g (float[1, 1, 4, 4] x, float[2] z) => (float[1, 2, 3, 3] y) <{W}>"
            "{ y = Conv(x, w, z) }",
            "made of zeros",
        ),
        "an input with a default value": (
            f"g (float[1, 1, 4, 4] x, float[2] z) => (float[1, 2, 3, 3] y) <{W}, float[2] z"
            f" = {{0, 0}}>"
            "{ y = Conv(x, w, z) }",
            "made of zeros",
        ),
    },
    "PadConv": {
        "nothing before": (f"{H} <{W}> {{ y = Conv(x, w) }}", "no Unsqueeze nor Reshape before"),
        "no Pad": (
            f"{H1} <{W}, {A}> {{ u = Unsqueeze(x, a) y = Conv(u, w) }}",
            "no Pad before",
        ),
        "more than dimensions 1": (
            f"{H1} <{W}, {P1}, int64[4] s = {{0, 1, 2, -1}}>"
            "{ p1 = Pad(x, p) u = Reshape(p1, s) y = Conv(u, w) }",
            "more than dimensions 1 are added",
        ),
        "channels of what is not unsqueezed": (
            f"{H1} <{W}, int64[6] p = {{0, 1, 0, 0, 0, 0}}, {A}>"
            "{ p1 = Pad(x, p) u = Unsqueeze(p1, a) y = Conv(u, w) }",
            "not on spatial dimensions only",
        ),
        "padded used elsewhere": (
            f"g (float[a, 1, c] x) => (float[a, 2, d, e] y, float[a, 1, f] p1) <{W}, {P1}, {A}>"
            "{ p1 = Pad(x, p) u = Unsqueeze(p1, a) y = Conv(u, w) }",
            "the padded tensor is used elsewhere",
        ),
        "padded read by another operator": (
            f"g (float[a, 1, b, c] x) => (float[a, 2, d, e] y, float[a, 1, f, h] z) <{W}, {P}>"
            "{ p1 = Pad(x, p) y = Conv(p1, w) z = Relu(p1) }",
            "the padded tensor is used elsewhere",
        ),
        "reflect": (
            f'{H} <{W}, {P}> {{ p1 = Pad<mode="reflect">(x, p) y = Conv(p1, w) }}',
            "the values added are not zeros",
        ),
        "ones": (
            f"{H} <{W}, {P}, float o = {{1}}> {{ p1 = Pad(x, p, o) y = Conv(p1, w) }}",
            "the values added are not zeros",
        ),
        "same": (
            f'{H} <{W}, {P}> {{ p1 = Pad(x, p) y = Conv<auto_pad="SAME_UPPER">(p1, w) }}',
            "the padding depends on the shape",
        ),
        "negative": (
            f"{H} <{W}, int64[8] p = {{0, 0, -1, 0, 0, 0, 0, 0}}> {{ p1 = Pad(x, p) y ="
            f" Conv(p1, w) }}",
            "the padding is negative",
        ),
        "channels": (
            "g (float[a, 1, b, c] x) => (float[a, 1, d, e] y) <float[1, 2, 1, 1] w = {1, 2},"
            "  int64[8] p = {0, 1, 0, 0, 0, 0, 0, 0}> { p1 = Pad(x, p) y = Conv(p1, w) }",
            "not on spatial dimensions only",
        ),
        "axes of an unknown rank": (
            f"g (float[] x) => (float[a, 2, d, e] y) <{W}, int64[4] p = {{0, 1, 2, 1}},"
            "  int64[2] k = {2, 3}> { p1 = Pad(x, p, , k) y = Conv(p1, w) }",
            "the axes of the padding are not known",
        ),
        "not constant": (
            f"g (float[a, 1, b, c] x, int64[8] p) => (float[a, 2, d, e] y) <{W}>"
            "{ p1 = Pad(x, p) y = Conv(p1, w) }",
            "the padding is not constant",
        ),
        "an output": (
            f"g (float[a, 1, b, c] x) => (float[a, 2, d, e] y, float[a, 1, f, h] p1) <{W}, {P}>"
            "{ p1 = Pad(x, p) y = Conv(p1, w) }",
            "used elsewhere",
        ),
        "two consumers": (
            f"g (float[a, 1, b, c] x) => (float[a, 2, d, e] y, float[a, 1, f, h] z) <{W}, {P}>"
            "{ p1 = Pad(x, p) y = Conv(p1, w) z = Abs(p1) }",
            "used elsewhere",
        ),
    },
}


@pytest.mark.parametrize("pattern,name", [(p, n) for p, rows in MODELS.items() for n in rows])
def test_conv(pattern: str, name: str):
    before, after = MODELS[pattern][name]
    model = model_from_text(before)
    rank = len(model.graph.input[0].type.tensor_type.shape.dim)
    rng = np.random.default_rng(0)
    feeds = [
        {"x": rng.standard_normal(shape[:rank]).astype(np.float32)}
        for shape in [(2, 1, 5, 6), (1, 1, 7, 4)]
    ]
    # the accumulation of a convolution with implicit padding may follow another order
    check_pattern(before, after, pattern, feeds=feeds, atol=1e-5, rtol=1e-5)


test_refuses = refusal_tests(NEAR_MISSES)


def test_pad_with_attributes():
    text = f"{H} <{W}> {{ p1 = Pad<pads=[0, 0, 1, 0, 0, 0, 2, 1]>(x) y = Conv(p1, w) }}"
    after = MODELS["PadConv"]["all dimensions"][1]
    feeds = [{"x": np.ones((1, 1, 4, 4), dtype=np.float32)}]
    # the reference evaluator has no Pad of opset 2
    check_pattern(text, after, "PadConv", opset=8, feeds=feeds, reference=False)
    other = text.replace("Pad<", "Pad<value=1.0, ")
    check_no_match(other, "PadConv", "the values added are not zeros", opset=8)


def test_axes_of_an_unsqueeze_as_an_attribute():
    text = f"{H1} <{W1}, {P1}> {{ p1 = Pad(x, p) u = Unsqueeze<axes=[2]>(p1) y = Conv(u, w) }}"
    after = f"{H1} <{W1}> {{ u = Unsqueeze<axes=[2]>(x) y = Conv<pads=[0, 1, 0, 2]>(u, w) }}"
    check_pattern(text, after, "PadConv", opset=11)


@pytest.mark.parametrize("owner", ["Pad", "Conv"])
def test_attributes_of_a_function_are_unknown(owner: str):
    nodes = [
        oh.make_node("Constant", [], ["p"], value_ints=[0, 0, 0, 0, 0, 0, 1, 1]),
        oh.make_node("Pad", ["x", "p"], ["p1"]),
        oh.make_node("Conv", ["p1", "w"], ["y"]),
    ]
    name, kind = ("mode", "STRING") if owner == "Pad" else ("pads", "INTS")
    node = next(n for n in nodes if n.op_type == owner)
    node.attribute.add(
        name=name, ref_attr_name=name, type=onnx.AttributeProto.AttributeType.Value(kind)
    )
    opsets = [oh.make_opsetid("", 18)]
    function = oh.make_function("local", "f", ["x", "w"], ["y"], nodes, opsets, [name])
    optimizer = GraphBuilderPatternOptimization(GraphBuilder(function), ["PadConv"])
    (pattern,) = optimizer.patterns
    reasons = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert ["belongs to the function" in r for r in reasons] == [True]
