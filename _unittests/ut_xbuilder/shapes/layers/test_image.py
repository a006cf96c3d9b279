"""Grids, crops, columns."""

from __future__ import annotations

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, ints, is_fresh, shape_of

from xbuilder.facts.facts import ResultFacts

SIZES = [{"n": 1, "h": 4, "w": 5, "i": 2, "j": 3}, {"n": 2, "h": 3, "w": 3, "i": 5, "j": 1}]


def test_grid_sample() -> None:
    """Channels of the image, positions of the grid."""
    inputs = [In(("n", 3, "h", "w")), In(("n", "i", "j", 2))]
    check_runs("GridSample", inputs, SIZES, [("n", 3, "i", "j")])
    wrong = [ResultFacts(1, ("n", 3, "h")), ResultFacts(1, ("n", "i", "j", 2))]
    assert infer("GridSample", wrong)[0] == ResultFacts()
    assert infer("GridSample", [ResultFacts(1), wrong[1]])[0] == ResultFacts(1, None, 4)


@pytest.mark.parametrize(
    ("size", "expected"), [((2, 3, 5, 6), (2, 5, 6, 2)), ((2, 3, 4, 5, 6), (2, 4, 5, 6, 3))]
)
def test_affine_grid(size: tuple, expected: tuple) -> None:
    """The size is a content."""
    theta = ResultFacts(1, ("n", 2, 3))
    assert shape_of("AffineGrid", [theta, ints(*size)]) == expected
    found = shape_of("AffineGrid", [theta, ResultFacts(7, (len(size),))])
    assert len(found) == len(expected) and found[-1] == expected[-1]
    assert infer("AffineGrid", [theta, ResultFacts(7)])[0] == ResultFacts(1)


def test_center_crop_pad() -> None:
    """Sizes are given, for all the axes or some."""
    x = ResultFacts(1, ("n", "h", "w"))
    given = {"attributes": {"axes": [2, 0]}}
    assert shape_of("CenterCropPad", [x, ints(5, 6)], **given) == (6, "h", 5)
    assert shape_of("CenterCropPad", [x, ints(5, 6, 7)]) == (5, 6, 7)
    assert infer("CenterCropPad", [x, ints(5)])[0] == ResultFacts()
    found = shape_of("CenterCropPad", [x, ResultFacts(7, (2,))], **given)
    assert found[1] == "h" and is_fresh(found[0])


def test_col2im() -> None:
    """Columns of blocks."""
    inputs = [In(("n", 10, 4)), ints(5, 5), ints(1, 5)]
    sizes = [{"n": 1}, {"n": 2}]
    inputs[0] = In(("n", 10, 5))
    check_runs("Col2Im", inputs, sizes, [("n", 2, 5, 5)])
    found = shape_of("Col2Im", [ResultFacts(1), ints(5, 5), ints(1, 5)])
    assert len(found) == 4 and found[2:] == (5, 5)
    assert infer("Col2Im", [ResultFacts(1, ("n", 10)), ints(5, 5), ints(1, 5)])[0] == ResultFacts()


def test_image_decoder() -> None:
    """Three fresh dimensions of bytes."""
    found = infer("ImageDecoder", [ResultFacts(2, ("n",))])[0]
    assert found.type == 2 and len(found.shape) == 3
