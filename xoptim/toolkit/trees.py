"""Converts nested tuples with constraints into the text of an equation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from xbuilder.errors import OptionError

from ..authoring.context import RewriteContext
from ..declarative.tuples import text_of

#: a condition on the value bound to a name: a result, or the value of an attribute
Constraint: TypeAlias = Callable[[RewriteContext, Any], Any]


class Var:
    """The value of an attribute, bound to a name: `("Softmax", "x", {"axis": Var("axis")})`; with
    a constraint, `{"axis": {"pattern": Var("axis"), "constraint": function}}`.
    """

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


class TreeReader:
    """Converts one side of an equation into text, sub-trees with constraints included.

    A dictionary `{"pattern": tree, "constraint": function, "results": names, "index": i}` stands
    for the tree: its result must satisfy the constraint; its results get names; *index* says which
    one is read. Attribute `statements` lists the statements before the side, `constraints` the
    functions.

    :param prefix: prefix of the generated names
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._known: dict[int, str] = {}
        self.statements: list[str] = []
        self.constraints: list[tuple[str, Constraint]] = []

    def side(self, tree: Any) -> str:
        """The text of a side.

        :param tree: a tree, or a list with a tree for each result
        """
        if isinstance(tree, Mapping) and "results" in tree and "index" not in tree:
            self._name(tree)
            last = ", ".join(tree["results"])
            last = f"({last})" if len(tree["results"]) > 1 else last
        elif isinstance(tree, list):
            last = f"({', '.join(self._text(t) for t in tree)})"
        else:
            last = self._text(tree)
        return "; ".join([*self.statements, last])

    def _text(self, tree: Any) -> str:
        return text_of(self._plain(tree))

    def _plain(self, tree: Any) -> Any:
        """The tree with a name instead of each dictionary."""
        if isinstance(tree, Mapping):
            return self._name(tree)
        if not isinstance(tree, tuple):
            return tree
        attributes = [t for t in tree[-1:] if isinstance(t, Mapping) and "pattern" not in t]
        operands = tree[: len(tree) - len(attributes)]
        values = ({k: self._value(v) for k, v in row.items()} for row in attributes)
        return (*map(self._plain, operands), *values)

    def _value(self, value: Any) -> Any:
        """The value of an attribute; a value with a constraint is bound to a name."""
        if not isinstance(value, Mapping):
            return value
        named = value.get("pattern")
        if set(value) != {"pattern", "constraint"} or not isinstance(named, Var):
            raise OptionError(
                f"{dict(value)!r} is not the value of an attribute: expected a value, a Var, or "
                "{'pattern': Var('a'), 'constraint': function}."
            )
        self._constrain(named.name, value["constraint"])
        return named

    def _constrain(self, name: str, constraint: Any) -> None:
        """Adds a constraint.

        :raises OptionError: it does not take a graph and a name or a value
        """
        try:
            with suppress(ValueError):  # a function whose parameters python does not know
                inspect.signature(constraint).bind("graph", name)
        except TypeError:
            raise OptionError(
                f"The constraint on {name} must be a function of the graph and of the name of a "
                f"result, or of the value of an attribute, not {constraint!r}."
            ) from None
        self.constraints.append((name, constraint))

    def _name(self, entry: Mapping[str, Any]) -> str:
        """Name of the result a dictionary stands for; the same object gives the same name."""
        unknown = set(entry) - {"pattern", "constraint", "results", "index"}
        if unknown or "pattern" not in entry:
            raise OptionError(
                f"{dict(entry)!r} is not a part of a pattern: expected a key 'pattern', and "
                "'constraint', 'results' or 'index' if they are needed."
            )
        if id(entry) not in self._known:
            self._known[id(entry)] = self._defined(entry)
        return self._known[id(entry)]

    def _defined(self, entry: Mapping[str, Any]) -> str:
        tree = entry["pattern"]
        names: Sequence[str] = entry.get("results", ())
        if isinstance(tree, str):
            found = tree
        else:
            text = self._text(tree)
            if not names:
                names = (f"{self._prefix}{len(self.statements)}",)
            self.statements.append(f"{', '.join(names)} = {text}")
            found = names[entry.get("index", 0)]
        if "constraint" in entry:
            self._constrain(found, entry["constraint"])
        return found
