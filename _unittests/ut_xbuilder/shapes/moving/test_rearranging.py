"""Transpose, Reshape, Squeeze, Unsqueeze, Flatten, Expand, Tile, DepthToSpace."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xbuilder.shapes.shape_cases import (
    In,
    check_runs,
    content,
    infer,
    ints,
    is_fresh,
    scalar,
    shape_of,
    value_of,
)

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.moving.rearranging import exact_quotient

I64 = 7
SIZES = [{"a": 2, "b": 3, "c": 5}, {"a": 4, "b": 1, "c": 3}]


@pytest.mark.parametrize(
    ("perm", "expected"),
    [(None, ("c", "b", "a")), ([0, 2, 1], ("a", "c", "b")), ([2, 0, 1], ("c", "a", "b"))],
)
def test_transpose(perm: Any, expected: tuple) -> None:
    """Dimensions follow the permutation."""
    attributes = {} if perm is None else {"perm": perm}
    check_runs("Transpose", [In(("a", "b", "c"))], SIZES, [expected], attributes=attributes)


def test_transpose_unknown() -> None:
    """The rank comes from the permutation if it has to."""
    perm = {"attributes": {"perm": [1, 0]}}
    assert infer("Transpose", [ResultFacts(1)], **perm)[0] == ResultFacts(1, None, 2)
    assert infer("Transpose", [ResultFacts(1, None, 2)])[0] == ResultFacts(1, None, 2)
    assert infer("Transpose", [ResultFacts(1, ("a",))], **perm)[0] == ResultFacts()
    assert value_of("Transpose", [content("a", 2)]) == ("a", 2)


@pytest.mark.parametrize(
    ("up", "down", "expected"),
    [
        (["a", "b", 6], ["a", 2], "3*b"),
        (["a", "b"], ["a", "b"], 1),
        (["a*b"], ["a"], "b"),
        (["a", "b"], ["a*b"], 1),
        (["a"], [2], "a//2"),
        ([0, 6], [3, 2], 0),
        ([6], [0], None),
        (["a*b+a*c"], ["a"], "b+c"),
    ],
)
def test_exact_quotient(up: list, down: list, expected: Any) -> None:
    """Common factors are cancelled."""
    assert exact_quotient(up, down) == expected


@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        (("a", 1, 3, 1), [1], ("a", 3, 1)),
        (("a", 1, 3, 1), [1, 3], ("a", 3)),
        (("a", 1, 3, 1), [-1], ("a", 1, 3)),
        ((2, 1, 3, 1), None, (2, 3)),
        (("a", 1), None, None),
        (("a", 1), [0], (1,)),
        ((2, 1), [0], None),
        (("a", 1), [5], None),
        ((5, 7, 1), [-1], (5, 7)),
    ],
)
def test_squeeze(opset: int, shape: tuple, axes: Any, expected: Any) -> None:
    """A symbol may be 1: without axes nothing is sure."""
    x = ResultFacts(1, shape)
    if axes is None:
        assert shape_of("Squeeze", [x], opset=opset) == expected
    elif opset < 13:
        assert shape_of("Squeeze", [x], attributes={"axes": axes}, opset=opset) == expected
    else:
        assert shape_of("Squeeze", [x, ints(*axes)], opset=opset) == expected


def test_squeeze_unknown() -> None:
    """The rank is known when the number of axes is."""
    x, rank = ResultFacts(1, ("a", 1)), ResultFacts(1, None, 3)
    assert infer("Squeeze", [rank, ints(0)])[0] == ResultFacts(1, None, 2)
    assert infer("Squeeze", [x, ResultFacts(I64, (1,))])[0] == ResultFacts(1, None, 1)
    assert infer("Squeeze", [rank])[0] == ResultFacts(1)
    assert infer("Squeeze", [ResultFacts(1), ints(0)])[0] == ResultFacts(1)


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        (("a", "b"), [0], (1, "a", "b")),
        (("a", "b"), [-1], ("a", "b", 1)),
        (("a", "b"), [1, 3], ("a", 1, "b", 1)),
        (("a", "b"), [0, -1], (1, "a", "b", 1)),
        ((), [0], (1,)),
    ],
)
def test_unsqueeze(shape: tuple, axes: list, expected: tuple) -> None:
    """Axes count in the output."""
    check_runs("Unsqueeze", [In(shape), ints(*axes)], SIZES, [expected])
    x = ResultFacts(1, shape)
    assert shape_of("Unsqueeze", [x], attributes={"axes": axes}, opset=11) == expected


def test_unsqueeze_unknown() -> None:
    """Ranks add up, invalid axes are unknown."""
    x = ResultFacts(1, ("a",))
    assert infer("Unsqueeze", [x, ResultFacts(I64, (2,))])[0] == ResultFacts(1, None, 3)
    assert infer("Unsqueeze", [ResultFacts(1), ints(0)])[0] == ResultFacts(1)
    assert infer("Unsqueeze", [x, ints(4)])[0] == ResultFacts()
    assert infer("Unsqueeze", [x, ints(0, 0)])[0] == ResultFacts()


def test_squeeze_unsqueeze_content() -> None:
    """Content moves between ranks 0 and 1."""
    assert value_of("Unsqueeze", [scalar("a"), ints(0)]) == ("a",)
    assert value_of("Unsqueeze", [content("a", "b"), ints(0)]) is None
    assert value_of("Squeeze", [content("a"), ints(0)]) == "a"
    assert value_of("Squeeze", [content("a")]) == "a"
    assert value_of("Squeeze", [content("a", "b")]) == ("a", "b")


@pytest.mark.parametrize(
    ("axis", "expected"),
    [(0, (1, "a*b*c")), (1, ("a", "b*c")), (-1, ("a*b", "c")), (3, ("a*b*c", 1))],
)
def test_flatten(axis: int, expected: tuple) -> None:
    """Two dimensions."""
    inputs = [In(("a", "b", "c"))]
    check_runs("Flatten", inputs, SIZES, [expected], attributes={"axis": axis})
    assert infer("Flatten", [ResultFacts(1)])[0] == ResultFacts(1, None, 2)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("a", 1), [1, 4], ("a", 4)),
        (("a", 1), [3, 1, 1], (3, "a", 1)),
        (("a", "b"), [1], ("a", "b")),
        ((), [2, 2], (2, 2)),
        (("a", 1), [1, 0], ("a", 0)),
    ],
)
def test_expand(shape: tuple, target: list, expected: tuple) -> None:
    """Numpy's broadcasting."""
    check_runs("Expand", [In(shape), ints(*target)], SIZES, [expected])


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("a", 1), ("a", "b"), ("a", "b")),
        (("a", 1), (1, "b"), ("a", "b")),
        ((1, 1), ("a", "b"), ("a", "b")),
        ((), ("a", "b"), ("a", "b")),
        (("a", "b"), ("a", "b"), ("a", "b")),
        ((3, "b"), ("c", 1), (3, "b")),
        (("a",), ("c",), ("broadcast(a,c)",)),
        ((3, 2), (4, 2), None),
        ((3, 2), (-1, 2), None),
    ],
)
def test_expand_content(shape: tuple, target: tuple, expected: Any) -> None:
    """The target is a followed content."""
    assert shape_of("Expand", [ResultFacts(1, shape), content(*target)]) == expected


@pytest.mark.parametrize(
    ("shape", "rank", "target", "expected"),
    [
        (("a", 3), None, ResultFacts(I64, (2,)), "? 3"),
        (("a", 3), None, ResultFacts(I64, (3,)), "? ? 3"),
        (("a", 3), None, ResultFacts(I64, (1,)), "a 3"),
        (("a", 3), None, ResultFacts(I64), None),
        (None, 2, content("a", 3, 4), "? 3 4"),
        (None, None, content("a", 3, 4), None),
    ],
)
def test_expand_unknown(shape: Any, rank: Any, target: ResultFacts, expected: Any) -> None:
    """A dimension above one is the one of the output, whatever the other side is."""
    found = shape_of("Expand", [ResultFacts(1, shape, rank), target])
    if expected is None:
        assert found is None
    else:
        assert " ".join("?" if is_fresh(d) else str(d) for d in found) == expected


def test_expand_keeps_content() -> None:
    """A repeated content."""
    assert value_of("Expand", [scalar("a"), ints(3)]) == ("a", "a", "a")
    assert value_of("Expand", [content("a"), ints(2)]) == ("a", "a")
    assert value_of("Expand", [content("a", "b"), ints(1)]) == ("a", "b")
    assert value_of("Expand", [scalar("a"), content("n")]) is None
    assert value_of("Expand", [scalar("a"), ints(1000)]) is None


def test_tile() -> None:
    """Dimensions are multiplied."""
    check_runs("Tile", [In(("a", 3)), ints(2, 4)], SIZES, [("2*a", 12)])
    x = ResultFacts(1, ("a", 3))
    assert shape_of("Tile", [x, content("n", 1)]) == ("a*n", 3)
    assert all(is_fresh(d) for d in shape_of("Tile", [x, ResultFacts(I64, (2,))]))
    assert len(shape_of("Tile", [ResultFacts(1), ints(1, 2)])) == 2
    assert infer("Tile", [x, ints(1)])[0] == ResultFacts()
    assert value_of("Tile", [content("a", 1), ints(2)]) == ("a", 1, "a", 1)


@pytest.mark.parametrize("op_type", ["DepthToSpace", "SpaceToDepth"])
def test_depth_to_space(op_type: str) -> None:
    """Blocks move between channels and image."""
    shape = ("a", 8, "2*b", 4)
    expected = {
        "DepthToSpace": ("a", 2, "4*b", 8),
        "SpaceToDepth": ("a", 32, "b", 2),
    }[op_type]
    check_runs(op_type, [In(shape)], SIZES, [expected], attributes={"blocksize": 2})
    assert infer(op_type, [ResultFacts(1)])[0].rank == 4
