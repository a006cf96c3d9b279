"""Writes and compiles the text of a matcher: tests, local variables, loops, reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

#: python refuses more than twenty nested loops
_MAX_LOOPS = 15
#: attributes of the graph that a function reads once for all nodes it is called on
_PRELUDE = (
    "def make(g, say):",
    "    store = g.store",
    "    get, readers = store.producers.get, store.consumers.get",
    "    many = store.is_used_more_than_once",
    "    facts, constants = g.facts, g.graph.constants",
    "    stored, computed = constants.initializers, constants.computed",
    "    is_inside = constants.parent is not None",
)

#: lines of a function up to the next loop, with their indentation
Step: TypeAlias = tuple[str, ...]
_Tree: TypeAlias = "dict[Step, _Tree]"


def compiled(name: str, texts: Iterable[Sequence[Step]], namespace: dict[str, Any]) -> Any:
    """Compiles one or several matchers that share a prefix into a function of a graph.

    Common first steps run once. A loop is the last statement of its block, so another matcher may
    follow it.

    :param name: name of the function
    :param texts: the texts
    :param namespace: the functions they call
    """
    tree: _Tree = {}
    for steps in texts:
        below = tree
        for step in steps:
            below = below.setdefault(step, {})
    lines = [*_PRELUDE, *_lines(tree), f"    return {name}"]
    exec(compile("\n".join(lines), "<rule>", "exec"), namespace)
    return namespace["make"]


def _lines(tree: _Tree) -> Iterable[str]:
    for step, below in tree.items():
        yield from step
        yield from _lines(below)


class FunctionText:
    """Lines of python, from the outermost test to the innermost one.

    :param namespace: the names the function may use, completed with its constants
    :param loud: the function reports why an attempt ends
    """

    def __init__(self, namespace: dict[str, Any], loud: bool):
        self._loud = loud
        self._namespace = namespace
        self._lines: list[str] = []
        self._indent = 1
        self._loops = 0
        self._steps = 0
        self._parts = 0
        self._counter = 0
        self._locals: list[str] = []

    def steps(self) -> list[Step]:
        """The text, split before each loop."""
        starts = [i for i, line in enumerate(self._lines) if line.lstrip().startswith("for ")]
        cuts = [0, *starts, len(self._lines)]
        return [tuple(self._lines[a:b]) for a, b in pairwise(cuts)]

    @property
    def has_shareable_prefix(self) -> bool:
        """Whether another function may share the first steps. The code after a loop runs whatever
        the loop finds."""
        return self._loops > 0 and not self._parts and not self._loud

    def _emit(self, line: str) -> None:
        self._lines.append("    " * self._indent + line)

    def _define(self, name: str, arguments: tuple[str, ...]) -> None:
        self._lines.append(f"    def {name}({', '.join(arguments)}):")
        self._indent, self._loops = 2, 0

    def _assign(self, name: str, expression: str) -> str:
        self._emit(f"{name} = {expression}")
        self._locals.append(name)
        return name

    def _new(self, kind: str) -> str:
        self._counter += 1
        return f"{kind}{self._counter}"

    def _constant(self, value: Any) -> str:
        for name, known in self._namespace.items():
            if known is value:
                return name
        name = f"K{len(self._namespace)}"
        self._namespace[name] = value
        return name

    def _loop(self, names: list[str], rows: str) -> None:
        if self._loops == _MAX_LOOPS:
            self._parts += 1
            part, arguments = f"part{self._parts}", tuple(dict.fromkeys(("n0", *self._locals)))
            self._emit(f"yield from {part}({', '.join(arguments)})")
            self._define(part, arguments)
        self._emit(f"for {', '.join(names)} in {rows}:")
        self._locals.extend(names)
        self._indent += 1
        self._loops += 1

    def _found(self, what: str) -> None:
        """The last line, which returns or yields a match."""
        self._emit(f"yield {what}" if self._loops else f"return (({what}),)")

    def _nodes(self) -> list[str]:
        """Expressions: the nodes found so far."""
        return []

    def _refuse_if(self, condition: str, text: str, *arguments: str, less: str = "") -> None:
        """Emits one test, which ends the attempt if a condition holds.

        :param text: the reason
        :param arguments: expressions that are the arguments of the reason
        :param less: expression, makes the reason less interesting than another one of the same test
        """
        self._steps += 1
        leave = "continue" if self._loops else "return ()"
        if not self._loud:
            self._emit(f"if {condition}: {leave}")
            return
        self._emit(f"if {condition}:")
        nodes = f"[{', '.join(self._nodes())}]"
        self._emit(f"    say({self._steps}{less}, {', '.join((nodes, repr(text), *arguments))})")
        self._emit(f"    {leave}")
