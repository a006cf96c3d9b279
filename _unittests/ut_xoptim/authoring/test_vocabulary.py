"""One question, one name on `g`: the rules of the vocabulary."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import xoptim
from xoptim.authoring.context import RewriteContext
from xoptim.authoring.queries import GraphQueries
from xoptim.authoring.seed_queries import EngineQueries, SeedQueries

ROOT = Path(xoptim.__file__).parent
#: the name of a fact that refuses -> the name of the one that returns None
FORMS = {
    "type_of": "type_or_none",
    "shape_of": "shape_or_none",
    "rank_of": "rank_or_none",
    "constant_of": "constant_or_none",
    "producer_of": "producer_or_none",
    "reader_of": "reader_or_none",
    "before": "before_or_none",
    "after": "after_or_none",
}


def names_of(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_each_fact_has_two_forms() -> None:
    names = names_of(RewriteContext)
    assert {n for n in names if n.endswith("_or_none")} == set(FORMS.values())
    assert {n for n in names if n.endswith("_of")} == {n for n in FORMS if n.endswith("_of")}
    for refusing, asking in FORMS.items():
        first = inspect.signature(getattr(RewriteContext, refusing)).parameters
        second = inspect.signature(getattr(RewriteContext, asking)).parameters
        assert [p for p in first if p != "reason"] == list(second), refusing
        assert "None" not in str(
            inspect.signature(getattr(RewriteContext, refusing)).return_annotation
        )


def test_the_names_of_the_context_are_few() -> None:
    """A question that few rewrites ask is a function of `xoptim.analysis`."""
    assert len(names_of(RewriteContext)) <= 71
    assert not names_of(RewriteContext) & (names_of(EngineQueries) - names_of(SeedQueries))


def test_no_function_has_the_name_of_a_query() -> None:
    """A function of analysis that is only another way to ask becomes a method."""
    taken = names_of(RewriteContext)
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path, module in modules("analysis")
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name in taken
    ]
    assert not found


@pytest.mark.parametrize(
    "folder", ["patterns", "patterns_ort", "patterns_ml", "patterns_cuda", "analysis"]
)
def test_no_rewrite_uses_the_other_names(folder: str) -> None:
    """They are for existing patterns; a rewrite of the project has the two forms."""
    others = names_of(EngineQueries) - names_of(GraphQueries)
    assert {"get_shape", "try_infer_type", "node_before", "get_computed_constant"} < others
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for path, module in modules(folder)
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr in others and _is_g(node.value)
    ]
    assert not found


def test_every_query_has_a_user() -> None:
    """One that no code of the project asks belongs to the other names."""
    used = {
        node.attr
        for path, module in modules(".")
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and path.name != "seed_queries.py"
    }
    methods = {n for n in names_of(GraphQueries) if callable(getattr(GraphQueries, n))}
    assert len(methods) > 25 and methods <= used


def _is_g(node: ast.expr) -> bool:
    """Whether an expression is `g`, `self.g` or `self._g`."""
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name in ("g", "_g")
