from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbuilder.dims import (
    Constraints,
    DimensionError,
    broadcast_dim,
    broadcast_shapes,
    evaluate,
    same_shape,
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, 1, 1),
        (1, 5, 5),
        (0, 1, 0),
        ("a", 1, "a"),
        ("a", "a", "a"),
        ("a", 5, 5),
        ("a", 0, 0),
        ("b", "a", "broadcast(a,b)"),
        ("broadcast(a,b)", "c", "broadcast(a,b,c)"),
        ("broadcast(a,b)", "b", "broadcast(a,b)"),
        ("broadcast(a,b)", 3, 3),
        ("a", "b+2", "b+2"),
        ("a", "2*b", "2*b"),
        ("a", "min(3,a)", "a"),
        ("a", "min(1,a)", "a"),
        ("a", "min(3,b,a)", "broadcast(a,min(3,a,b))"),  # b may be 0 when a is 1
        ("a", "min(0,a)", 0),
        ("a", "min(3,b)", "broadcast(a,min(3,b))"),
        ("broadcast(a,b)", "min(3,a)", "broadcast(a,b)"),
        ("min(3,a)", "min(5,a)", "broadcast(min(3,a),min(5,a))"),
        ("a+b", "min(3,a+b)", "a+b"),
        ("a", "1-max(0,1-a)", "a"),  # min(1,a)
        ("a", "2048-max(0,2048-a)", "a"),
        ("a+b", "7-max(0,7-a-b)", "a+b"),
        ("a", "5-max(0,5-b)", "broadcast(5-max(0,5-b),a)"),
        ("b", "a-max(0,a-b)", "broadcast(a-max(0,a-b),b)"),  # a may be 0 when b is 1
        ("b", "5-2*max(0,5-b)", "broadcast(5-2*max(0,5-b),b)"),
        ("b", "5+max(0,b-5)", "max(0,b-5)+5"),
    ],
)
def test_dim(a, b, expected):
    assert broadcast_dim(a, b) == expected
    assert broadcast_dim(b, a) == expected
    assert broadcast_dim(a, b, Constraints()) == expected


@pytest.mark.parametrize("bound", [1, 2, 3])
@pytest.mark.parametrize("a", [0, 1, 2, 3, 5])
def test_a_bounded_dimension_is_neutral(a, bound):
    """Whenever the broadcast is possible, it gives the dimension that is not bounded."""
    small = min(a, bound)
    if small == a or 1 in (small, a):
        assert broadcast_dim(a, small) == a


@pytest.mark.parametrize(("a", "b"), [(2, 3), (0, 2), ("2*a", 3), ("a+2", "a+3")])
@pytest.mark.parametrize("constraints", [None, Constraints()])
def test_incompatible(a, b, constraints):
    with pytest.raises(DimensionError):
        broadcast_dim(a, b, constraints)
    with pytest.raises(DimensionError, match="shapes"):
        broadcast_shapes((a, 1), (b, 1), constraints=constraints)


def test_shapes():
    assert broadcast_shapes() == ()
    assert broadcast_shapes(("a", 2)) == ("a", 2)
    assert broadcast_shapes((), ("a",)) == ("a",)
    assert broadcast_shapes(("a", 1, 3), ("b", 3)) == ("a", "b", 3)
    assert broadcast_shapes(("a", 1), (1, "b"), ("c", 1, 1)) == ("c", "a", "b")


def test_shapes_keep_constraints():
    known = Constraints()
    assert broadcast_shapes(("a", "b"), ("c", 4), constraints=known, origin="n") == (
        "broadcast(a,c)",
        4,
    )
    assert list(known.items()) == [("equal_or_one", "a", "c", "n"), ("equal_or_one", "b", 4, "n")]


@given(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=3, max_size=3))
def test_same_as_numpy(sizes):
    values = dict(zip("abc", sizes, strict=True))
    dim = broadcast_dim(broadcast_dim("a", "b"), "c")
    try:
        (expected,) = np.broadcast_shapes(*((s,) for s in sizes))
    except ValueError:
        with pytest.raises(DimensionError):
            evaluate(dim, values)
    else:
        assert evaluate(dim, values) == expected


@pytest.mark.parametrize(
    ("s1", "s2", "expected"),
    [
        ((), (), True),
        (("a", 2), ("a", 2), True),
        (("2*a",), ("a+a",), True),
        (("a", 2), ("b", 3), False),
        (("a",), ("b",), None),
        (("a",), ("a", 1), False),
        (None, ("a",), None),
        (("a",), None, None),
    ],
)
def test_same_shape(s1, s2, expected):
    assert same_shape(s1, s2) is expected


def test_same_shape_with_constraints():
    known = Constraints()
    known.add_equal("a", "b")
    assert same_shape(("a", 1), ("b", 1), known) is True
