"""Patterns that have nothing to look at are not run."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toy_patterns import Silent, toy_optimizer

from xoptim.api.roots import Candidates, Roots, Sweep
from xoptim.engine.lookouts import Lookout


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
    assert Lookout(pattern).sees_something(roots) is expected
    pattern.listener = print
    may_be_asked = bool(roots.of(pattern.roots))
    assert Lookout(pattern).sees_something(roots) is may_be_asked, "every reason is asked for"
    assert not Lookout(pattern).sees_something(Candidates(g.store, []))
