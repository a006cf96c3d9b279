"""The text of a function that searches: tests, local variables, loops, reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: python refuses more than twenty nested loops
_MAX_LOOPS = 15
_PRELUDE = (
    "store = g.store",
    "get, many = store.producers.get, store.is_used_more_than_once",
)


class FunctionText:
    """Lines of python, from the outermost test to the innermost one.

    :param helpers: what the function may call
    :param loud: the function says why an attempt ends
    """

    def __init__(self, helpers: Mapping[str, Any], loud: bool):
        self._loud = loud
        self._namespace: dict[str, Any] = dict(helpers)
        self._lines: list[str] = []
        self._indent = 1
        self._loops = 0
        self._steps = 0
        self._parts = 0
        self._counter = 0
        self._locals: list[str] = []

    def _compiled(self, name: str) -> Any:
        """A function of the text."""
        exec(compile("\n".join(self._lines), "<rule>", "exec"), self._namespace)
        return self._namespace[name]

    def _emit(self, line: str) -> None:
        self._lines.append("    " * self._indent + line)

    def _define(self, name: str, arguments: tuple[str, ...]) -> None:
        self._lines.append(f"def {name}({', '.join(('g', 'say', *arguments))}):")
        self._indent, self._loops = 1, 0
        for line in _PRELUDE:
            self._emit(line)

    def _assign(self, name: str, expression: str) -> str:
        self._emit(f"{name} = {expression}")
        self._locals.append(name)
        return name

    def _new(self, kind: str) -> str:
        self._counter += 1
        return f"{kind}{self._counter}"

    def _constant(self, value: Any) -> str:
        name = f"K{len(self._namespace)}"
        self._namespace[name] = value
        return name

    def _loop(self, names: list[str], rows: str) -> None:
        if self._loops == _MAX_LOOPS:
            self._parts += 1
            part, arguments = f"part{self._parts}", tuple(dict.fromkeys(("n0", *self._locals)))
            self._emit(f"yield from {part}({', '.join(('g', 'say', *arguments))})")
            self._define(part, arguments)
        self._emit(f"for {', '.join(names)} in {rows}:")
        self._locals.extend(names)
        self._indent += 1
        self._loops += 1

    def _found(self, what: str) -> None:
        """The last line: what an attempt found."""
        self._emit(f"yield {what}" if self._loops else f"return (({what}),)")

    def _refuse_if(self, condition: str, text: str, *arguments: str, less: str = "") -> None:
        """One test: the attempt ends if a condition holds.

        :param condition: the condition
        :param text: the reason
        :param arguments: expressions, what the reason is formatted with
        :param less: expression, makes the reason less interesting than another one of the same test
        """
        self._steps += 1
        leave = "continue" if self._loops else "return ()"
        if not self._loud:
            self._emit(f"if {condition}: {leave}")
            return
        self._emit(f"if {condition}:")
        self._emit(f"    say({self._steps}{less}, {', '.join((repr(text), *arguments))})")
        self._emit(f"    {leave}")
