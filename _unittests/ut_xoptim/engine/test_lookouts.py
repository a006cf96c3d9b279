"""Patterns that have nothing to look at are not run."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto
from ut_xoptim.toy_patterns import Silent, toy_optimizer

from xoptim.api.roots import Candidates, Roots, Sweep
from xoptim.engine.lookouts import Lookouts


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
    lookouts = Lookouts([pattern])
    possible = lookouts.possible(g.store, pattern.priority)
    return bool(possible) and possible[0].has_roots(roots)


def test_possible_follows_the_operators() -> None:
    g = toy_optimizer()
    first, last, after = Silent(), Silent(priority=5), Silent()
    after.after = ("Abs",)
    for pattern in (first, last, after):
        pattern.roots = ("Neg",)
    lookouts = Lookouts([first, after, last])

    def possible(priority: int) -> list[Any]:
        return [lookouts.patterns[p.rank] for p in lookouts.possible(g.store, priority)]

    assert possible(1) == [first, after]
    assert possible(5) == [first, after, last]
    assert lookouts.possible(g.store, 1) is lookouts.possible(g.store, 1), "asked once"
    for record in list(g.store.bucket("", "Abs")):
        relu = NodeProto(op_type="Relu", input=record.inputs, output=record.outputs)
        g.store.replace([record], [relu])
    assert possible(1) == [first]
