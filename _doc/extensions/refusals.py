"""The reasons for which a pattern declines, read in its source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

#: methods that take the reason of a refusal
_ASK = {"after", "before", "known", "no", "none", "refuse", "require", "producer_of", "reader_of"}
_ASK |= {"type_of", "shape_of", "rank_of", "constant_of", "static_shape"}


@cache
def _functions(module: str) -> dict[str, ast.FunctionDef]:
    """The functions and the methods of a module, by name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _texts(node: ast.AST) -> Iterator[str]:
    """The sentences among the arguments of a call: constants, and texts with holes."""
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            values = part.values
            yield "".join(v.value if isinstance(v, ast.Constant) else "..." for v in values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def reasons_of(member: Any) -> list[str]:
    """The reasons a pattern may give, in the order of its source.

    :param member: a pattern
    :return: sentences
    """
    module = type(member).__module__
    functions = _functions(module)
    methods = [inspect.unwrap(getattr(type(member), name)) for name in vars(type(member))]
    own = [f for f in methods if inspect.isfunction(f) and f.__module__ == module]
    todo = [f.__code__.co_firstlineno for f in own]
    lines = {node.lineno - len(node.decorator_list): node for node in functions.values()}
    lines |= {d.lineno: n for n in functions.values() for d in n.decorator_list[:1]}
    queue = [lines[line] for line in todo if line in lines]
    seen, found = set(), []
    while queue:
        function = queue.pop(0)
        if function.name in seen:
            continue
        seen.add(function.name)
        for call in ast.walk(function):
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, ast.Name) and call.func.id in functions:
                queue.append(functions[call.func.id])
            elif isinstance(call.func, ast.Attribute) and call.func.attr in _ASK:
                found += [text for arg in call.args[1:] or call.args for text in _texts(arg)]
    return list(dict.fromkeys(text for text in found if " " in text))
