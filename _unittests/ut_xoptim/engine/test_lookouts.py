"""Patterns that have nothing to look at are not run."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto
from ut_xoptim.toy_patterns import Silent, toy_optimizer

from xbuilder import GraphBuilder
from xoptim.authoring.roots import Candidates, Roots, Sweep
from xoptim.engine.lookouts import Lookouts
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.engine.schedule import Schedule
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


@pytest.mark.parametrize("sweep", [True, False], ids=["sweep", "near"])
@pytest.mark.parametrize(
    "declared, expected",
    [
        ({"roots": ("Neg",)}, True),
        ({"roots": ("Missing", "Neg")}, True),
        ({"roots": ("Missing",)}, False),
        ({"roots": ("*",)}, True),
        ({"roots": ("toy::LocalAttention*",)}, True),
        ({"roots": ("toy::Missing*",)}, False),
        ({"roots": ("Neg",), "after": ("Missing", "Abs")}, True),
        ({"roots": ("Neg",), "after": ("Missing",)}, False),
        ({"roots": ("*",), "after": ("Missing",)}, False),
        ({"roots": ("Neg",), "reads": ("Missing",)}, False),
        ({"roots": ("Neg",), "after": ("Abs",), "read_by": ("Missing",)}, False),
    ],
)
def test_sees_something(g: Any, declared: dict[str, Any], expected: bool, sweep: bool) -> None:
    pattern = Silent()
    for attribute, value in declared.items():
        setattr(pattern, attribute, value)
    roots: Roots = Sweep(g.store) if sweep else Candidates(g.store, g.store.nodes)
    assert _looks(pattern, g, roots) is expected
    pattern.listener = print
    may_be_asked = bool(roots.of(pattern.roots))
    assert _looks(pattern, g, roots) is may_be_asked, "every reason is asked for"
    assert not _looks(pattern, g, Candidates(g.store, []))


def _looks(pattern: Silent, g: Any, roots: Roots) -> bool:
    return bool(_possible(Lookouts([pattern]), g, roots))


def _possible(lookouts: Lookouts, g: Any, roots: Roots) -> list[Any]:
    """The patterns that have something to look at."""
    is_heard = lookouts.is_listened_to()
    ranks = lookouts.starting_from(roots, is_heard)
    possible = lookouts.answers(g.store, is_heard).possible(ranks)
    return [lookouts.patterns[rank] for rank in sorted(possible)]


def test_answers_follow_the_operators() -> None:
    g = toy_optimizer()
    first, after = Silent(), Silent()
    after.after = ("Abs",)
    for pattern in (first, after):
        pattern.roots = ("Neg",)
    lookouts = Lookouts([first, after])
    assert _possible(lookouts, g, Sweep(g.store)) == [first, after]
    assert lookouts.answers(g.store, False) is lookouts.answers(g.store, False), "asked once"
    for record in list(g.store.bucket("", "Abs")):
        relu = NodeProto(op_type="Relu", input=record.inputs, output=record.outputs)
        g.store.replace([record], [relu])
    assert _possible(lookouts, g, Sweep(g.store)) == [first]


def test_priorities() -> None:
    """Patterns of a higher priority wait."""
    g = toy_optimizer()
    first, last = Silent(), Silent(priority=5)
    first.roots = last.roots = ("Neg",)
    schedule = Schedule(g.store, Lookouts([first, last]))
    assert [p for p, _ in schedule.looking()] == [first]
    assert schedule.found_nothing()
    assert [p for p, _ in schedule.looking()] == [last]


def test_links() -> None:
    """Patterns whose roots are not after what they want have nothing to look at; a sweep is kept as
    long as the graph is the same."""
    text = """agraph (float[a] x, float[a] z) => (float[a] y) {
        n = Neg(x) b = Abs(z) p = Add(n, z) y = Mul(p, b)
    }"""
    g = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    declared: list[dict[str, Any]] = [
        {"roots": ("Add",), "after": ("Neg",)},
        {"roots": ("Mul",), "after": ("Neg",)},
        {"roots": ("Mul",), "reads": ("Abs",)},
        {"roots": ("Add", "Neg"), "reads": ("Abs", "Add")},
    ]
    patterns = [Silent() for _ in declared]
    for pattern, values in zip(patterns, declared, strict=True):
        for attribute, value in values.items():
            setattr(pattern, attribute, value)
    schedule = Schedule(g.store, Lookouts(patterns))
    looking = schedule.looking()
    assert [p for p, _ in looking] == [patterns[0], patterns[2]]
    assert schedule.looking()[0][1] is looking[0][1], "nothing changed"
    (neg,) = g.store.bucket("", "Neg")
    g.store.replace([neg], [NodeProto(op_type="Abs", input=["x"], output=["n"])])
    assert [p for p, _ in schedule.looking()] == [patterns[2], patterns[3]]
