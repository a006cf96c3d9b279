"""Answers of rewrites that become matches."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization, RewriteContext
from xoptim.authoring.conclusion import conclude
from xoptim.authoring.context import context_of
from xoptim.catalogue.selection import single_pattern
from xoptim.testing import model_from_text

TEXT = "g (float[a] X) => (float[a] Y) <float k = {2}> { n = Neg(X) m = Mul(n, k) Y = Abs(m) }"


@pytest.fixture
def g() -> RewriteContext:
    builder = GraphBuilder(model_from_text(TEXT))
    context = context_of(GraphBuilderPatternOptimization(builder))
    context.visited = [builder.store.producers["Y"]]
    return context


def test_what_was_looked_at(g: Any) -> None:
    g.before(g.before(g.store.proto(g.store.producers["Y"])))
    assert g.before_or_none("j", "Abs") is None
    root = g.record(g.store.proto(g.store.producers["Y"]))
    match = conclude(g, None, root, "X", True)
    assert [n.op_type for n in match.nodes] == ["Neg", "Mul", "Abs"]
    g.visited = [root]
    assert [n.op_type for n in conclude(g, None, root, "m", True).nodes] == ["Abs"]


class Unsearched(list[Any]):
    """Records that are not looked for one by one: a rewrite may replace thousands of results."""

    def __contains__(self, record: object) -> bool:
        raise AssertionError("every record is compared for each result")


def test_concluding_is_linear(g: Any) -> None:
    records = [g.store.producers[name] for name in ("Y", "m", "n")]
    g.visited = Unsearched(records)
    match = conclude(g, single_pattern("NotNot"), records[0], {"Y": "X", "m": "X", "n": "X"}, False)
    assert match.records == records[::-1]
