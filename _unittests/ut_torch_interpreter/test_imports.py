"""The files of torch_interpreter do not import each other in a circle, type hints included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import torch_interpreter

ROOT = Path(torch_interpreter.__file__).parent


def module_name(path: Path) -> str:
    parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: set[str]) -> set[str]:
    """The files a file imports, wherever the statement is."""
    package = module_name(path).split(".")
    package = package if path.stem == "__init__" else package[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = package[: len(package) - node.level + 1]
            base = ".".join([*start, node.module] if node.module else start)
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= (names & modules) or {base}
    return found & modules


def order(graph: dict[str, set[str]]) -> list[str]:
    return list(TopologicalSorter(graph).static_order())


def test_no_circle():
    files = sorted(ROOT.rglob("*.py"))
    modules = {module_name(p) for p in files}
    graph = {module_name(p): imported(p, modules) - {module_name(p)} for p in files}
    names = order(graph)
    conversion = [n for n in names if n.startswith("torch_interpreter.conversion.")]
    last = [n.rpartition(".")[2] for n in conversion]
    assert last.index("interpreter") < last.index("control_flow") < last.index("building")
    assert last.index("interpreter") < last.index("functions") < last.index("building")


def test_a_circle_is_seen():
    with pytest.raises(CycleError):
        order({"a": {"b"}, "b": {"a"}})
