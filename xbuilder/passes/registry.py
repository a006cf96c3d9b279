"""The table of passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..close_names import closest_names
from ..errors import OptionError

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder

Row = dict[str, Any]
Pass = Callable[["GraphBuilder"], "int | list[Row]"]

_PASSES: dict[str, Pass] = {}

#: what a row says of itself when it has nothing to say; -1 is no iteration and no match
ROW_DEFAULTS: Row = {
    "pattern": "",
    "time_in": 0.0,
    "added": 0,
    "removed": 0,
    "iteration": -1,
    "match_index": -1,
    "instances": 0,
    "changed": 0,
}


def complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Gives every column to every row, so that a table can be grouped whatever happened.

    :param rows: rows of statistics
    :return: complete rows; there is at least one, `"nothing"` if nothing ran
    """
    return [
        row if "changed" in row and "match_index" in row else {**ROW_DEFAULTS, **row}
        for row in rows
    ] or [{**ROW_DEFAULTS, "pattern": "nothing"}]


def register_pass(name: str) -> Callable[[Pass], Pass]:
    """Decorator, registers a pass: it returns what it did, a count or rows of statistics.

    :raises OptionError: the name is taken
    """

    def register(function: Pass) -> Pass:
        if name in _PASSES:
            raise OptionError(f"Pass {name!r} is already registered.")
        _PASSES[name] = function
        return function

    return register


def pass_names() -> list[str]:
    """Names of the registered passes."""
    return sorted(_PASSES)


def get_pass(name: str) -> Pass:
    """Returns a pass.

    :raises OptionError: there is none of this name, close names are suggested
    """
    if name not in _PASSES:
        close = closest_names(name, _PASSES)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {pass_names()}."
        raise OptionError(f"Unknown pass {name!r}, {hint}")
    return _PASSES[name]


def run_pass(builder: GraphBuilder, name: str) -> list[Row]:
    """Runs a pass, returns its rows of statistics."""
    function = get_pass(name)
    nodes, initializers = len(builder.store), len(builder.constants.initializers)
    begin = time.perf_counter()
    answer = function(builder)
    if isinstance(answer, list):
        return answer
    return [
        {
            "pattern": name,
            "time_in": time.perf_counter() - begin,
            "removed": max(nodes - len(builder.store), 0),
            "added": max(len(builder.store) - nodes, 0),
            "changed": answer,
            "initializers": len(builder.constants.initializers) - initializers,
        }
    ]
