"""Masks of attention."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.masks import hides_later_keys, sees_a_key
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.testing import optimizer_of

CAUSAL = "a = LessOrEqual(columns, rows) "
#: name -> nodes whose result y is true for one key of each query
SEEN = {
    "causal": "y = LessOrEqual(columns, rows)",
    "causal, the other way": "y = GreaterOrEqual(rows, columns)",
    "a vector of keys": "y = LessOrEqual(r, rows)",
    "after a cache": "later = Add(rows, past) y = LessOrEqual(columns, later)",
    "strictly before the next one": "later = Add(rows, one) y = Less(columns, later)",
    "for each sequence": CAUSAL + "y = Expand(a, copies)",
    "twice": CAUSAL + "y = And(a, a)",
    "window": CAUSAL + "low = Sub(rows, five) b = Greater(columns, low) y = And(a, b)",
    "window, the other way": CAUSAL + "low = Sub(rows, five) b = Less(low, columns) y = And(b, a)",
    "a constant": "y = Identity(lower)",
    "window of one": CAUSAL + "b = GreaterOrEqual(columns, rows) y = And(a, b)",
}
UNSEEN = {
    "an input": "y = Identity(c)",
    "a constant that hides a row": "y = Not(lower)",
    "a term is an input": CAUSAL + "y = And(a, c)",
    "strictly before": "y = Less(columns, rows)",
    "after": "y = Greater(columns, rows)",
    "a shift that may be negative": "later = Sub(rows, past) y = LessOrEqual(columns, later)",
    "a vector of queries": "y = LessOrEqual(columns, r)",
    "no position": "y = LessOrEqual(columns, others)",
    "keys along another axis": "keys = Unsqueeze(r, v12) y = LessOrEqual(keys, rows)",
    "queries along another axis": "more = Unsqueeze(r, v12) y = LessOrEqual(columns, more)",
    "columns from one": "more = Add(columns, one) y = LessOrEqual(more, rows)",
    "an empty window": CAUSAL + "b = Greater(columns, rows) y = And(a, b)",
    "a window, fewer keys": "later = Add(rows, past) a = LessOrEqual(columns, later) "
    "b = Greater(columns, rows) y = And(a, b)",
    "two ends and a window": CAUSAL + "later = Add(rows, one) d = LessOrEqual(columns, later) "
    "e = And(a, d) b = GreaterOrEqual(columns, rows) y = And(e, b)",
    "many terms": CAUSAL + "a0 = And(a, a) "
    + " ".join(f"a{i + 1} = And(a{i}, a)" for i in range(8))
    + " y = Expand(a8, copies)",
}  # fmt: skip


def context(body: str) -> RewriteContext:
    """A graph that gives y, a condition on scores."""
    return context_of(
        optimizer_of(f"""g (float[s] x, float[p] cache, bool[s, s] c, int64[s, 1] others) => (y) <
            int64 zero = {{0}}, int64 one = {{1}}, int64 five = {{5}}, int64[1] v0 = {{0}},
            int64[1] v1 = {{1}}, int64[2] v12 = {{1, 2}}, int64[3] copies = {{2, 1, 1}},
            bool[2, 2] lower = {{1, 0, 1, 1}}
        > {{ dims = Shape(x) size = Squeeze(dims) lengths = Shape(cache) past = Squeeze(lengths)
             r = Range(zero, size, one) columns = Unsqueeze(r, v0) rows = Unsqueeze(r, v1) {body} }}""")
    )


@pytest.mark.parametrize("name", SEEN)
def test_sees_something(name: str) -> None:
    assert sees_a_key(context(SEEN[name]), "y")


@pytest.mark.parametrize("name", UNSEEN)
def test_may_see_nothing(name: str) -> None:
    assert not sees_a_key(context(UNSEEN[name]), "y")


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_keys_that_are_hidden(name: str) -> None:
    """Where the condition says which keys are hidden, a row of ones hides them all."""
    g = context("upper = Not(lower) y = Identity(upper)")
    assert sees_a_key(g, name, hides=True) == (name == "upper")


@pytest.mark.parametrize(
    ("body", "hidden"),
    [
        ("y = LessOrEqual(columns, rows)", True),
        ("y = GreaterOrEqual(rows, columns)", True),
        ("later = Add(rows, one) y = Less(columns, later)", True),
        (CAUSAL + "y = And(c, a)", True),
        (CAUSAL + "y = Expand(a, copies)", True),
        ("y = Less(columns, rows)", False),
        ("later = Add(rows, past) y = LessOrEqual(columns, later)", False),
        ("y = GreaterOrEqual(columns, rows)", False),
        ("y = Identity(c)", False),
    ],
)
def test_hides_later_keys(body: str, hidden: bool) -> None:
    """A term says that the last key of a query has its position."""
    assert hides_later_keys(context(body), "y") == hidden
