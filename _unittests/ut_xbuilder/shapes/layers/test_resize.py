"""Resize and Upsample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, ints, is_fresh, shape_of

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.layers.resize import scaled_dim

SIZES = [{"n": 1, "h": 4, "w": 6}, {"n": 2, "h": 7, "w": 3}]
X = ResultFacts(1, ("n", 3, "h", "w"))


def floats(*values: float) -> np.ndarray:
    """A vector of floats."""
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ((1, 1, 2, 3), ("n", 3, "2*h", "3*w")),
        ((1, 1, 0.5, 0.25), ("n", 3, "h//2", "w//4")),
    ],
)
@pytest.mark.parametrize("opset", [11, 13, 19])
def test_scales(scales: tuple, expected: tuple, opset: int) -> None:
    """Integers and powers of two are exact."""
    inputs = [In(("n", 3, "h", "w")), floats() if opset == 11 else None, floats(*scales)]
    sizes = [{"n": 1, "h": 4, "w": 6}, {"n": 2, "h": 8, "w": 4}]
    check_runs("Resize", inputs, sizes, [expected], opset=opset, attributes={"mode": "nearest"})
    assert shape_of("Resize", [X, floats(*scales)], opset=10) == expected


@pytest.mark.parametrize("scale", [1.5, 0.3, 0.7, 2.6, 1 / 3])
def test_other_scales(scale: float) -> None:
    """Static dimensions are computed when rounding is sure, symbols are fresh."""
    inputs: list[Any] = [ResultFacts(1, (1, 1, "h")), None, floats(1, 1, scale)]
    assert is_fresh(shape_of("Resize", inputs)[2])
    for size in (4, 7, 9):
        check_runs("Resize", [In((1, 1, size)), None, floats(1, 1, scale)], [{}])


@pytest.mark.parametrize(
    ("dim", "scale", "expected"),
    [
        ("a", 2.0, "2*a"),
        ("a", 0.5, "a//2"),
        ("a", 0.2, None),
        (10, 0.5, 5),
        (10, np.float32(0.7), None),
        (3, np.float32(1 / 3), 1),
        ("a", 0.0, None),
        ("a", np.inf, None),
    ],
)
def test_scaled_dim(dim: Any, scale: float, expected: Any) -> None:
    """Known only when rounding cannot change it."""
    assert scaled_dim(dim, float(scale)) == expected


def test_sizes() -> None:
    """Sizes are a content."""
    inputs = [In(("n", 3, "h", "w")), None, None, ints(1, 3, 5, 8)]
    expected = [(1, 3, 5, 8)]
    check_runs("Resize", inputs, [{"n": 1, "h": 4, "w": 6}], expected)
    sizes = ResultFacts(7, (4,), None, ("n", 3, "2*h", "k"))
    assert shape_of("Resize", [X, None, None, sizes]) == ("n", 3, "2*h", "k")
    empty = np.array([], dtype=np.float32)
    assert shape_of("Resize", [X, empty, empty, sizes]) == ("n", 3, "2*h", "k")
    found = shape_of("Resize", [X, None, None, ResultFacts(7, (4,))])
    assert all(is_fresh(d) for d in found)


def test_axes() -> None:
    """Axes of opset 18."""
    given = {"attributes": {"axes": [3, 2]}, "opset": 18}
    inputs = [In(("n", 3, "h", "w")), None, floats(2, 3)]
    check_runs("Resize", inputs, SIZES, [("n", 3, "3*h", "2*w")], **given)
    assert shape_of("Resize", [X, None, None, ints(5, 6)], **given) == ("n", 3, 6, 5)
    found = shape_of("Resize", [X, None, ResultFacts(1, (2,))], **given)
    assert found[:2] == ("n", 3) and is_fresh(found[2]) and is_fresh(found[3])
    assert infer("Resize", [X, None, floats(2)], **given)[0] == ResultFacts()


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [(7, 8), (3, 9), (10, 5)])
def test_aspect_ratio(policy: str, sizes: tuple) -> None:
    """Static dimensions only."""
    given = {"attributes": {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}, "opset": 19}
    inputs = [In((1, 1, 4, 6)), None, None, ints(*sizes)]
    facts = check_runs("Resize", inputs, [{}], **given)
    assert not any(is_fresh(d) for d in facts[0].shape)
    assert is_fresh(shape_of("Resize", [X, None, None, ints(*sizes)], **given)[3])


def test_crop() -> None:
    """The region of interest changes the size."""
    given = {"attributes": {"coordinate_transformation_mode": "tf_crop_and_resize"}}
    roi = floats(0, 0, 0, 0, 1, 1, 1, 1)
    found = shape_of("Resize", [X, roi, floats(1, 1, 2, 2)], **given)
    assert all(is_fresh(d) for d in found)


@pytest.mark.parametrize("opset", [1, 7, 9])
def test_upsample(opset: int) -> None:
    """Two generations of attributes, then an input."""
    attributes: dict[str, Any] = {}
    inputs: list[Any] = [X]
    if opset == 1:
        attributes = {"height_scale": 2.0, "width_scale": 3.0}
    elif opset == 7:
        attributes = {"scales": [1.0, 1.0, 2.0, 3.0]}
    else:
        inputs.append(floats(1, 1, 2, 3))
    expected = ("n", 3, "2*h", "3*w")
    assert shape_of("Upsample", inputs, attributes=attributes, opset=opset) == expected
    unknown = shape_of("Upsample", [X, ResultFacts(1, (4,))], opset=9)
    assert all(is_fresh(d) for d in unknown)
