"""Convolutions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh, shape_of

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts
from xoptim.testing import model_from_text

SIZES = [{"n": 1, "h": 7, "w": 9}, {"n": 2, "h": 12, "w": 8}]


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_conv_runs(auto_pad: str, stride: int, dilation: int) -> None:
    """Spatial dimensions in terms of the input's."""
    attributes: dict[str, Any] = {"strides": [stride, 2], "auto_pad": auto_pad}
    if not auto_pad.startswith("SAME"):
        # onnxruntime refuses dilations with SAME
        attributes["dilations"] = [dilation, 1]
    if auto_pad == "NOTSET":
        attributes["pads"] = [1, 0, 2, 1]
    inputs = [In(("n", 4, "h", "w")), In((6, 2, 3, 2)), In((6,))]
    attributes["group"] = 2
    facts = check_runs("Conv", inputs, SIZES, attributes=attributes)
    assert facts[0].shape[:2] == ("n", 6)
    assert not any(is_fresh(d) for d in facts[0].shape)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ("n", 8, "h-2", "w-2")),
        ({"pads": [1, 1, 1, 1]}, ("n", 8, "h", "w")),
        ({"auto_pad": "SAME_UPPER"}, ("n", 8, "h", "w")),
        ({"dilations": [2, 2], "pads": [2, 2, 2, 2]}, ("n", 8, "h", "w")),
    ],
)
def test_conv(attributes: dict, expected: tuple) -> None:
    """Simple formulas."""
    x, w = ResultFacts(1, ("n", 3, "h", "w")), ResultFacts(1, (8, 3, 3, 3))
    assert shape_of("Conv", [x, w], attributes=attributes) == expected


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_unknown(op_type: str) -> None:
    """Missing shapes, wrong attributes."""
    x, w = ResultFacts(1, ("n", 3, "h", "w")), ResultFacts(1, (3, 3, 3, 3))
    assert infer(op_type, [ResultFacts(1), ResultFacts(1, None, 4)])[0] == ResultFacts(1, None, 4)
    assert infer(op_type, [ResultFacts(1, None, 3), w])[0] == ResultFacts()
    assert infer(op_type, [ResultFacts(1), ResultFacts(1, (3, 3))])[0] == ResultFacts(1, None, 2)
    assert infer(op_type, [ResultFacts(1), ResultFacts(1)])[0] == ResultFacts(1)
    found = infer(op_type, [x, ResultFacts(1)])[0].shape
    assert found[0] == "n" and all(is_fresh(d) for d in found[1:])
    assert infer(op_type, [x, ResultFacts(1, (3, 3, 3))])[0] == ResultFacts()
    assert infer(op_type, [x, w], attributes={"strides": [1]})[0] == ResultFacts()
    assert infer(op_type, [x, w], attributes={"strides": [0, 1]})[0] == ResultFacts()
    assert infer("Conv", [ResultFacts(1, ("n", 4, 5, 5)), w])[0] == ResultFacts()


@pytest.mark.parametrize(("op_type", "channels"), [("Conv", 4), ("ConvTranspose", 6)])
@pytest.mark.parametrize("x", [ResultFacts(1), ResultFacts(1, None, 4)])
def test_the_weights_give_the_channels(op_type: str, channels: int, x: ResultFacts) -> None:
    """Nothing is known of what is convolved, its rank at most."""
    w = ResultFacts(1, (4, 3, 3, 3))
    found = infer(op_type, [x, w], attributes={"group": 2})[0].shape
    assert len(found) == 4 and found[1] == channels
    assert all(is_fresh(d) for d in (found[0], *found[2:])) and len(set(found)) == 4


def test_conv_1d_3d() -> None:
    """Any number of spatial axes."""
    check_runs("Conv", [In(("n", 2, "h")), In((4, 2, 3))], SIZES, [("n", 4, "h-2")])
    inputs = [In(("n", 1, "h", "w", 5)), In((4, 1, 2, 3, 5))]
    check_runs("Conv", inputs, SIZES, [("n", 4, "h-1", "w-2", 1)])


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3]},
        {"strides": [2, 2], "pads": [1, 0, 1, 1]},
        {"strides": [2, 2], "output_padding": [1, 0]},
        {"dilations": [2, 1]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"strides": [3, 3], "auto_pad": "VALID"},
    ],
)
def test_conv_transpose(attributes: dict) -> None:
    """Transposed convolutions."""
    inputs = [In(("n", 4, "h", "w")), In((4, 3, 3, 2))]
    given = {"group": 2, **attributes}
    facts = check_runs("ConvTranspose", inputs, SIZES, attributes=given)
    assert facts[0].shape[:2] == ("n", 6)
    assert not any(is_fresh(d) for d in facts[0].shape)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_same_with_holes(auto_pad: str) -> None:
    """A kernel shorter than the stride: onnx says n*stride, onnxruntime (n-1)*stride+kernel."""
    for kernel, stride, dilation, extra in itertools.product(
        (1, 2, 3), (1, 2, 3, 4), (1, 2), (0, 1)
    ):
        if extra >= stride:
            continue
        attributes = {
            "strides": [stride],
            "dilations": [dilation],
            "output_padding": [extra],
            "auto_pad": auto_pad,
        }
        inputs = [In((1, 1, "n")), In((1, 1, kernel))]
        sizes = [{"n": 3}, {"n": 5}]
        facts = check_runs("ConvTranspose", inputs, sizes, attributes=attributes)
        check_runs("ConvTranspose", inputs, sizes, attributes=attributes, reference=True)
        has_holes = dilation * (kernel - 1) + 1 + extra < stride
        assert is_fresh(facts[0].shape[2]) == has_holes


def test_windows_that_do_not_fit() -> None:
    """Neither a negative nor a null dimension is stated, the model is not valid."""
    x, w = ResultFacts(1, (1, 1, 2)), ResultFacts(1, (1, 1, 4))
    for stride in (1, 2, 3):
        found = infer("Conv", [x, w], attributes={"strides": [stride]})[0]
        assert found.shape[:2] == (1, 1) and is_fresh(found.shape[2])
    found = infer("ConvTranspose", [x, w], attributes={"pads": [3, 3]})[0]
    assert found.shape[:2] == (1, 1) and is_fresh(found.shape[2])


@pytest.mark.parametrize("op_type", ["ConvInteger", "QLinearConv"])
def test_integer_conv(op_type: str) -> None:
    """Types of integer convolutions."""
    x, w = ResultFacts(2, ("n", 3, "h", "w")), ResultFacts(3, (8, 3, 3, 3))
    scale, zero = ResultFacts(1, ()), ResultFacts(3, ())
    inputs = [x, w] if op_type == "ConvInteger" else [x, scale, zero, w, scale, zero, scale, zero]
    facts = infer(op_type, inputs)[0]
    assert facts.shape == ("n", 8, "h-2", "w-2")
    assert facts.type == (6 if op_type == "ConvInteger" else 3)


def test_conv_transpose_output_shape() -> None:
    """The output shape may be given."""
    attributes = {"output_shape": [10, 11], "strides": [2, 2]}
    inputs = [In(("n", 4, 5, 5)), In((4, 3, 3, 2))]
    check_runs("ConvTranspose", inputs, SIZES, [("n", 3, 10, 11)], attributes=attributes)


def test_static_dimensions() -> None:
    """Integers in, integers out."""
    for size, kernel, stride in itertools.product((7, 8), (1, 3), (1, 2, 3)):
        attributes = {"strides": [stride]}
        inputs = [In((1, 1, size)), In((1, 1, kernel))]
        facts = check_runs("Conv", inputs, [{}], attributes=attributes)
        assert all(isinstance(d, int) for d in facts[0].shape)


def test_causal_conv() -> None:
    """The state keeps k-1 positions."""
    x, w = ResultFacts(1, ("n", 4, "s")), ResultFacts(1, (4, 1, 3))
    facts = infer("CausalConvWithState", [x, w], 2, opset=27)
    assert [f.shape for f in facts] == [("n", 4, "s"), ("n", 4, 2)]


def test_deform_conv() -> None:
    """Shape of Conv, onnx's reference evaluator."""
    inputs = [
        In(("n", 1, "h", "w")),
        In((1, 1, 2, 2)),
        In(("n", 8, "h-1", "w-1")),
    ]
    expected = ("n", 1, "h-1", "w-1")
    check_runs("DeformConv", inputs, SIZES[:1], [expected], reference=True)


@pytest.mark.parametrize(("node", "channels"), [("Conv", 4), ("ConvTranspose", 2)])
def test_the_weights_tell_the_channels(node: str, channels: int) -> None:
    ones = ", ".join(["1"] * 8)
    text = f"""agraph (float[n,c,h] x) => (float[n,m,k] y) <float[2,4,1] w = {{{ones}}}>
        {{ y = {node}(x, w) }}"""
    builder = GraphBuilder(model_from_text(text))
    assert builder.constraints.canonical("c") == channels


@pytest.mark.parametrize(
    ("node", "weights", "known"),
    [
        ("Conv", "m,c,1", ("m", 4)),
        ("ConvTranspose", "c,m,1", ("m", 4)),
        ("ConvTranspose <group = 2>", "c,m,1", ("2*m", 4)),
    ],
)
def test_the_bias_tells_the_channels(node: str, weights: str, known: tuple[str, int]) -> None:
    text = f"""agraph (float[n,c,h] x, float[{weights}] w) => (float[n,k,h] y)
        <float[4] b = {{1, 1, 1, 1}}> {{ y = {node}(x, w, b) }}"""
    builder = GraphBuilder(model_from_text(text))
    assert builder.get_shape("y")[1] == 4
    assert builder.constraints.prove_equal(*known) is True


def test_the_channels_of_unknown_weights() -> None:
    facts = [ResultFacts(1, ("n", 2, "h")), ResultFacts(1), ResultFacts(1, (4,))]
    assert infer("Conv", facts)[0].shape[1] == 4
    wrong = [ResultFacts(1, ("n", 2, "h")), ResultFacts(1, (5, 2, 1)), ResultFacts(1, (4,))]
    assert infer("Conv", wrong)[0].shape == ("n", 5, "h")
    matrix = [ResultFacts(1, ("n", 2, "h")), ResultFacts(1, ("m", 2, 1)), ResultFacts(1, (1, 4))]
    assert infer("Conv", matrix)[0].shape == ("n", "m", "h")
