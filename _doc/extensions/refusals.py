"""The reasons for which a pattern declines, read in its equations and in its source."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

from xoptim.declarative.rule_patterns import RulePattern

#: methods that take the reason of a refusal
_ASK = {"after", "before", "known", "no", "none", "refuse", "require", "producer_of", "reader_of"}
_ASK |= {"type_of", "shape_of", "rank_of", "constant_of", "static_shape"}
#: classes that take the reason of a refusal
_RAISED = {"Refusal"}
#: where the functions that refuse are
_PLACES = ("xoptim.patterns", "xoptim.analysis", "xoptim.catalogue.speed_gated")


@cache
def _tree(function: FunctionType) -> ast.Module:
    """The syntax tree of a function."""
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def _names(function: FunctionType) -> dict[str, Any]:
    """The values of the names that a function reads outside of its own body."""
    found = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a name the enclosing function never gave a value
            continue
    return found


def _given(tree: ast.AST) -> dict[str, list[ast.AST]]:
    """The expressions that a function assigns to each of its names."""
    found: dict[str, list[ast.AST]] = {}
    kinds = (ast.Constant, ast.JoinedStr, ast.IfExp)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, kinds):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _texts(node: ast.AST, names: dict[str, Any]) -> Iterator[str]:
    """The sentences among the arguments of a call: constants, their names, texts with holes."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(v.value if isinstance(v, ast.Constant) else "..." for v in node.values)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        yield names[node.id]
    elif isinstance(node, ast.Name) and isinstance(names.get(node.id), list):
        for value in names[node.id]:
            if isinstance(value, ast.AST):
                yield from _texts(value, {})
    for part in ast.iter_child_nodes(node):
        yield from _texts(part, names)


def _methods(member: Any) -> list[FunctionType]:
    """The methods of a pattern, those of the bases written beside the patterns included."""
    classes = [c for c in type(member).__mro__ if c.__module__.startswith(_PLACES)]
    values = (inspect.unwrap(getattr(v, "__func__", v)) for c in classes for v in vars(c).values())
    return [v for v in values if inspect.isfunction(v) and v.__module__.startswith(_PLACES)]


def reasons_of(member: Any) -> list[str]:
    """The reasons a pattern may give, in the order of its source.

    :param member: a pattern
    :return: sentences
    """
    found = _of_equations(member) if isinstance(member, RulePattern) else []
    if getattr(member, "sole_use", False):
        found.append("an inner result is used elsewhere")
    queue, seen = _methods(member), set()
    while queue:
        function = queue.pop(0)
        if function in seen:
            continue
        seen.add(function)
        tree = _tree(function)
        names = _names(function) | _given(tree)
        for node in ast.walk(tree):
            called = getattr(node, "func", None)
            if isinstance(called, ast.Attribute) and called.attr in _ASK:
                found += [t for arg in node.args[1:] or node.args for t in _texts(arg, names)]
            elif isinstance(called, ast.Name) and called.id in _RAISED:
                found += [t for arg in node.args for t in _texts(arg, names)]
            if isinstance(node, ast.Name):
                queue += _refusing(names.get(node.id))
    return list(dict.fromkeys(text for text in found if " " in text))


def _refusing(value: Any) -> list[FunctionType]:
    """A function that may refuse: it is beside the patterns, and takes the context."""
    if not (inspect.isfunction(value) and value.__module__.startswith(_PLACES)):
        return []
    return [value] if value.__code__.co_varnames[:1] in {("g",), ("context",)} else []


def _of_equations(member: RulePattern) -> list[str]:
    """The reasons of the search for equations."""
    left = [text.split("->")[0].strip() for text in member.equations]
    # `y = f(x); y`: one result with a name
    left = [re.sub(r"^(\w+) = ([^;]*); \1$", r"\2", text) for text in left]
    return [f"the graph does not contain {text}" for text in dict.fromkeys(left)]
