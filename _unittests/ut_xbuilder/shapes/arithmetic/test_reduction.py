"""Reduce*, ArgMax, ArgMin."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, ints, is_fresh, shape_of

from xbuilder.facts.facts import ResultFacts
from xbuilder.operators.op_traits import REDUCTIONS

SIZES = [{"a": 2, "b": 3}, {"a": 4, "b": 1}]
X = ResultFacts(1, ("a", "b", 4))


AXES = [
    ([0], 1, (1, "b", 4)),
    ([0], 0, ("b", 4)),
    ([-1, 0], 1, (1, "b", 1)),
    ([-1, 0], 0, ("b",)),
    ([0, 1, 2], 0, ()),
]


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keepdims", "expected"), AXES)
def test_reduction(op_type: str, axes: list, keepdims: int, expected: tuple) -> None:
    """Axes are an attribute, then an input."""
    attributes = {"keepdims": keepdims}
    old = {"opset": 11, "attributes": {**attributes, "axes": axes}}
    assert shape_of(op_type, [X], **old) == expected
    new = {"opset": 18, "attributes": attributes}
    assert shape_of(op_type, [X, ints(*axes)], **new) == expected


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[0], [-1, 1], None])
def test_reduction_runs(op_type: str, keepdims: int, axes: Any) -> None:
    """Real runs."""
    inputs: list = [In(("a", "b", 4)), *([] if axes is None else [ints(*axes)])]
    facts = check_runs(op_type, inputs, SIZES, attributes={"keepdims": keepdims}, opset=18)
    assert facts[0].shape is not None


@pytest.mark.parametrize(
    ("axes", "noop", "expected"),
    [
        (None, 0, (1, 1, 1)),
        (None, 1, ("a", "b", 4)),
        (ints(), 0, (1, 1, 1)),
        (ints(), 1, ("a", "b", 4)),
        (ResultFacts(7, (0,)), 1, ("a", "b", 4)),
        (ResultFacts(7, (0,)), 0, (1, 1, 1)),
    ],
)
def test_empty_axes(axes: Any, noop: int, expected: tuple) -> None:
    """No axis means all of them, or none."""
    inputs = [X] if axes is None else [X, axes]
    attributes = {"noop_with_empty_axes": noop}
    assert shape_of("ReduceSum", inputs, attributes=attributes) == expected


@pytest.mark.parametrize(
    ("facts", "axes", "keepdims", "expected"),
    [
        (ResultFacts(1, None, 3), ints(0), 1, (None, 3)),
        (ResultFacts(1, None, 3), ints(0), 0, (None, 2)),
        (ResultFacts(1), ints(0), 0, (None, None)),
        (ResultFacts(1), None, 0, ((), None)),
        (X, ResultFacts(7, (1,)), 0, (None, 2)),
        (X, ResultFacts(7, ("n",)), 0, (None, None)),
        (ResultFacts(1, None, 3), ResultFacts(7, (1,)), 1, (None, 3)),
    ],
)
def test_unknown(facts: ResultFacts, axes: Any, keepdims: int, expected: Any) -> None:
    """Partial knowledge."""
    inputs = [facts] if axes is None else [facts, axes]
    found = infer("ReduceSum", inputs, attributes={"keepdims": keepdims})[0]
    assert (found.type, found.shape, found.rank) == (1, *expected)


def test_unknown_axes_keep_ones() -> None:
    """A dimension of 1 stays 1 whatever the axes are."""
    shape = shape_of("ReduceSum", [ResultFacts(1, ("a", 1)), ResultFacts(7, (1,))])
    assert is_fresh(shape[0]) and shape[1] == 1


def test_invalid() -> None:
    """Wrong axes are unknown."""
    assert infer("ReduceSum", [X, ints(5)])[0] == ResultFacts()
    assert infer("ReduceSum", [X, ints(0, 0)])[0] == ResultFacts()
    assert infer("ArgMax", [X], attributes={"axis": 3})[0] == ResultFacts()


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(
    ("axis", "keepdims", "expected"),
    [(0, 1, (1, "b", 4)), (-1, 0, ("a", "b")), (1, 1, ("a", 1, 4))],
)
def test_arg(op_type: str, axis: int, keepdims: int, expected: tuple) -> None:
    """Indices are int64."""
    attributes = {"axis": axis, "keepdims": keepdims}
    facts = check_runs(op_type, [In(("a", "b", 4))], SIZES, [expected], attributes=attributes)
    assert facts[0].type == 7
    rank = infer(op_type, [ResultFacts(1, None, 3)], attributes=attributes)[0]
    assert rank == ResultFacts(7, None, 3 if keepdims else 2)
