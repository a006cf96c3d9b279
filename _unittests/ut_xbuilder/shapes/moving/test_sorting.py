"""TopK, Unique, NonZero, NonMaxSuppression."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts

SIZES = [{"a": 2, "b": 3}, {"a": 4, "b": 5}]
X = ResultFacts(1, ("a", "b"))


@pytest.mark.parametrize(("axis", "expected"), [(-1, ("a", 2)), (0, (2, "b"))])
def test_topk(axis: int, expected: tuple) -> None:
    """`k` is an attribute, then an input."""
    old = {"attributes": {"axis": axis, "k": 2}, "opset": 1}
    assert [f.shape for f in infer("TopK", [X], 2, **old)] == [expected] * 2
    inputs = [In(("a", "b")), np.array([2], np.int64)]
    attributes = {"axis": axis}
    facts = check_runs("TopK", inputs, SIZES, [expected] * 2, attributes=attributes, n_outputs=2)
    assert [f.type for f in facts] == [1, 7]


def test_topk_unknown() -> None:
    """A followed or unknown `k`."""
    k = ResultFacts(7, (1,), None, ("k",))
    assert infer("TopK", [X, k], 1)[0] == ResultFacts(1, ("a", "k"))
    first, last = infer("TopK", [X, ResultFacts(7, (1,))], 1)[0].shape
    assert first == "a" and is_fresh(last)
    assert infer("TopK", [ResultFacts(1, None, 2), k], 2)[1] == ResultFacts(7, None, 2)
    assert infer("TopK", [X, k], 1, attributes={"axis": 2})[0] == ResultFacts()


def test_unique() -> None:
    """The number of values is one fresh symbol shared by the outputs."""
    values, first, inverse, counts = infer("Unique", [X], 4)
    assert is_fresh(values.shape[0])
    assert values.shape == first.shape == counts.shape
    assert inverse.shape == ("a*b",)
    values, first, inverse, _ = infer("Unique", [X], 4, attributes={"axis": 1})
    assert values.shape[0] == "a" and values.shape[1] == first.shape[0]
    assert inverse.shape == ("b",)
    check_runs("Unique", [In(("a", "b"))], SIZES, n_outputs=4, attributes={"axis": 0})


def test_non_zero() -> None:
    """The rank and a fresh symbol."""
    facts = check_runs("NonZero", [In(("a", "b"))], SIZES[:1])[0]
    assert facts.shape[0] == 2 and is_fresh(facts.shape[1])
    assert infer("NonZero", [ResultFacts(1)])[0] == ResultFacts(7, None, 2)
    # a scalar has one row in onnxruntime
    check_runs("NonZero", [In(())], [{}])
    assert infer("NonZero", [ResultFacts(1, ())])[0] == ResultFacts(7, None, 2)


def test_non_max_suppression() -> None:
    """Selected boxes."""
    facts = infer("NonMaxSuppression", [ResultFacts(1), ResultFacts(1)])[0]
    assert facts.type == 7 and facts.shape[1] == 3 and is_fresh(facts.shape[0])
