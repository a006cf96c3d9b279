"""The examples of docstrings: those of a prompt run, the others are python."""

from __future__ import annotations

import ast
import doctest
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("xbuilder", "xoptim", "torch_interpreter")
MODULES = [p.relative_to(ROOT).as_posix() for k in PACKAGES for p in (ROOT / k).rglob("*.py")]
#: a table of figures is a literal block too
TABLES = {"xbuilder/dims/expr.py"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks_of(text: str) -> Iterator[str]:
    """The literal blocks of a docstring that are python without a prompt."""
    for found in re.finditer(r"^( *)[^\n]*::\n\n((?:\1 +.*(?:\n|$)|\s*\n)+)", text, re.M):
        block = textwrap.dedent(found.group(2))
        if not block.startswith(">>>"):
            yield block


def test_blocks_are_found():
    text = "Does.\n\n::\n\n    f(1)\n\n    g(2)\n\nExample::\n\n    >>> f(1)\n    1\n"
    assert list(blocks_of(text)) == ["f(1)\n\ng(2)\n\n"]


@pytest.mark.parametrize("path", sorted(p for p in MODULES if ">>> " in text_of(p)))
def test_examples_with_a_prompt_run(path):
    if path.startswith("torch_interpreter/"):
        pytest.importorskip("torch")
    module = import_module(path.removesuffix("/__init__.py").removesuffix(".py").replace("/", "."))
    done = doctest.testmod(module)
    assert done.attempted and not done.failed


def test_other_examples_are_python():
    found, wrong = 0, []
    for path in set(MODULES) - TABLES:
        for node in ast.walk(ast.parse(text_of(path))):
            doc = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            for block in blocks_of(doc or ""):
                found += 1
                try:
                    ast.parse(block)
                except SyntaxError as e:
                    wrong.append(f"{path}: {e}: {block}")
    assert found > 50 and not wrong, "\n".join(wrong)
