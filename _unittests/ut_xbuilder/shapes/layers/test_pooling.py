"""Pooling."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.dims import evaluate
from xbuilder.facts.facts import ResultFacts

SIZES = [{"n": 1, "h": h, "w": w} for h, w in itertools.product((5, 6, 7, 8), (4, 9))]
POOLS = ["MaxPool", "AveragePool", "LpPool"]


@pytest.mark.parametrize("op_type", POOLS)
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("kernel", [[2, 2], [3, 2], [1, 3]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [3, 1], [2, 4]])
def test_pool_runs(op_type: str, ceil_mode: int, kernel: list, strides: list) -> None:
    """Formulas hold at every size."""
    for pads in ([0, 0, 0, 0], [0, 1, 0, 1]):
        if any(pad >= k for pad, k in zip(pads, kernel * 2, strict=True)):
            continue
        attributes = {
            "kernel_shape": kernel,
            "strides": strides,
            "pads": pads,
            "ceil_mode": ceil_mode,
        }
        inputs = [In(("n", 3, "h", "w"))]
        facts = check_runs(op_type, inputs, SIZES, attributes=attributes)
        assert not any(is_fresh(d) for d in facts[0].shape)


@pytest.mark.parametrize("op_type", POOLS)
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_pool_auto_pad(op_type: str, auto_pad: str) -> None:
    """Automatic padding."""
    attributes = {"kernel_shape": [3, 3], "strides": [2, 3], "auto_pad": auto_pad}
    facts = check_runs(op_type, [In(("n", 3, "h", "w"))], SIZES, attributes=attributes)
    assert not any(is_fresh(d) for d in facts[0].shape)


def test_ceil_mode_without_padding_is_ambiguous() -> None:
    """onnx and onnxruntime disagree: nothing is said when both answers differ."""
    attributes = {"kernel_shape": [2], "strides": [2], "auto_pad": "VALID", "ceil_mode": 1}
    facts = infer("MaxPool", [ResultFacts(1, (1, 1, 5))], attributes=attributes)[0]
    assert is_fresh(facts.shape[2])
    facts = infer("MaxPool", [ResultFacts(1, (1, 1, 6))], attributes=attributes)[0]
    assert facts.shape == (1, 1, 3)


@pytest.mark.parametrize("op_type", POOLS)
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_window_larger_than_the_image(op_type: str, ceil_mode: int) -> None:
    """onnxruntime rounds towards 0 or fails, onnx rounds down: nothing is said."""
    for size, stride in itertools.product((1, 2, 3), (1, 2, 3)):
        attributes = {"kernel_shape": [4], "strides": [stride], "ceil_mode": ceil_mode}
        facts = infer(op_type, [ResultFacts(1, (1, 1, size))], attributes=attributes)[0]
        assert facts.shape[:2] == (1, 1) and is_fresh(facts.shape[2])
    attributes = {"kernel_shape": [4], "strides": [3], "ceil_mode": ceil_mode}
    check_runs(op_type, [In((1, 1, 2))], [{}], attributes=attributes)
    padded = {**attributes, "pads": [1, 1]}
    assert infer(op_type, [ResultFacts(1, (1, 1, 2))], attributes=padded)[0].shape == (1, 1, 1)


@pytest.mark.parametrize(
    ("attributes", "dim", "expected"),
    [
        ({"kernel_shape": [2], "strides": [2]}, "w", "max(1,w//2)"),
        ({"kernel_shape": [2], "strides": [2], "auto_pad": "VALID"}, "w", "max(1,w//2)"),
        ({"kernel_shape": [2], "strides": [2]}, "2*w", "w"),
        ({"kernel_shape": [2], "strides": [2]}, "w+1", "max((w+1)//2,1)"),
        ({"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, "w", "(w+1)//2"),
        ({"kernel_shape": [3], "strides": [2]}, "w+3", "w//2+1"),
        ({"kernel_shape": [3], "strides": [2]}, "w+2", "max((w+1)//2,1)"),
        ({"kernel_shape": [3], "strides": [2]}, "w", "max((w+1)//2-1,min(1,w//2))"),
        ({"kernel_shape": [2], "strides": [1]}, "w", "w-1"),
        ({"kernel_shape": [7], "strides": [7]}, "w", "max(1,w//7)"),
        ({"kernel_shape": [5], "strides": [2], "pads": [1, 1]}, "w", None),
        ({"kernel_shape": [5], "strides": [3]}, "w", None),
        ({"kernel_shape": [5], "strides": [3], "ceil_mode": 1}, "w", None),
        ({"kernel_shape": [3], "strides": [3], "dilations": [2]}, "w", None),
    ],
)
@pytest.mark.parametrize("op_type", POOLS)
def test_window_that_may_be_larger_than_the_image(
    op_type: str, attributes: dict, dim: str, expected: str | None
) -> None:
    """onnxruntime rounds towards 0: the stated dimension holds at every size it accepts."""
    found = infer(op_type, [ResultFacts(1, ("n", 1, dim))], attributes=attributes, opset=22)[0]
    assert expected is None or found.shape[2] == expected
    sizes = []
    for w in range(1, 12):
        size = evaluate(dim, {"w": w})
        head = sum(attributes.get("pads", [0])) + size
        extent = (attributes["kernel_shape"][0] - 1) * attributes.get("dilations", [1])[0] + 1
        if head - extent > -2 * attributes["strides"][0]:  # the result would be negative
            sizes.append({"n": 1, "w": w})
    assert len(sizes) > 6
    check_runs(op_type, [In(("n", 1, dim))], sizes, attributes=attributes, opset=22)


@pytest.mark.parametrize("op_type", POOLS)
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_pool_auto_pad_with_dilations(op_type: str, auto_pad: str) -> None:
    """onnxruntime does not count dilations in the padding: nothing is said."""
    for kernel, dilation, stride in itertools.product((1, 2, 3), (1, 2, 3), (1, 2, 3)):
        if kernel < stride and op_type == "MaxPool":
            continue  # refused
        attributes = {
            "kernel_shape": [kernel],
            "strides": [stride],
            "dilations": [dilation],
            "auto_pad": auto_pad,
        }
        sizes = [{"n": 1, "h": h} for h in (6, 7, 8)]
        inputs = [In(("n", 2, "h"))]
        facts = check_runs(op_type, inputs, sizes, attributes=attributes, opset=22)
        assert is_fresh(facts[0].shape[2]) == (kernel > 1 and dilation > 1)


def test_max_pool_indices() -> None:
    """The second output has the same shape."""
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    expected = ("n", 3, "max(1,h//2)", "max(1,w//2)")
    inputs = [In(("n", 3, "h", "w"))]
    facts = check_runs("MaxPool", inputs, SIZES, [expected] * 2, attributes=attributes, n_outputs=2)
    assert [f.type for f in facts] == [1, 7]


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global_pool(op_type: str) -> None:
    """Ones."""
    check_runs(op_type, [In(("n", 3, "h", "w"))], SIZES[:2], [("n", 3, 1, 1)])
    assert infer(op_type, [ResultFacts(1, None, 4)])[0] == ResultFacts(1, None, 4)


@pytest.mark.parametrize("op_type", POOLS)
def test_unknown(op_type: str) -> None:
    """Missing or wrong."""
    given: dict[str, Any] = {"attributes": {"kernel_shape": [2, 2]}}
    assert infer(op_type, [ResultFacts(1)], **given)[0] == ResultFacts(1, None, 4)
    assert infer(op_type, [ResultFacts(1, ("a", "b", "c"))], **given)[0] == ResultFacts()
    assert infer(op_type, [ResultFacts(1, ("a", "b"))])[0] == ResultFacts()
    found = infer(op_type, [ResultFacts(1, ("a", 3, "b"))])[0].shape
    assert found[:2] == ("a", 3) and is_fresh(found[2])


def test_max_unpool() -> None:
    """The inverse of MaxPool, or a given shape."""
    x, i = ResultFacts(1, ("n", 1, "h", 2)), ResultFacts(7, ("n", 1, "h", 2))
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    assert infer("MaxUnpool", [x, i], attributes=attributes)[0].shape == ("n", 1, "2*h", 4)
    shape = np.array([1, 1, 5, 5], dtype=np.int64)
    found = infer("MaxUnpool", [x, i, shape], attributes=attributes)[0]
    assert found == ResultFacts(1, (1, 1, 5, 5))
    found = infer("MaxUnpool", [x, i, ResultFacts(7, (4,))], attributes=attributes)[0]
    assert found.known_rank() == 4


def test_regions() -> None:
    """One result by region."""
    x, rois = ResultFacts(1, ("n", 3, "h", "w")), ResultFacts(1, ("r", 4))
    attributes = {"output_height": 5, "output_width": 6}
    batch = ResultFacts(7, ("r",))
    assert infer("RoiAlign", [x, rois, batch], attributes=attributes)[0].shape == ("r", 3, 5, 6)
    pooled = {"pooled_shape": [2, 3]}
    assert infer("MaxRoiPool", [x, rois], attributes=pooled)[0].shape == ("r", 3, 2, 3)
    assert infer("RoiAlign", [x, ResultFacts(1), batch])[0] == ResultFacts(1, None, 4)
