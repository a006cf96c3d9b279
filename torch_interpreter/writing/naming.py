"""Results take the names of the fx nodes they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xbuilder import GraphBuilder
from xbuilder.support.names import NameAllocator

from .symbols import SymScalar


def free_name(names: NameAllocator, name: str) -> str:
    """A name nobody uses yet, which stays free: an input reserves its own name.

    :param names: the names that are taken
    :param name: what it should be, a number follows if it is taken
    """
    i, free = 0, name
    while free in names:
        i += 1
        free = f"{name}_{i}"
    return free


def name_results(g: GraphBuilder, size: int, results: Any, names: Sequence[str]) -> Any:
    """Gives names to the results a converter has just made. Cost: O(what it added).

    A result that was there before, an input or a constant keeps its name: the fx node is this
    result. So does a second fx node with the same result.

    :param g: the graph
    :param size: number of nodes of the graph before the converter was called
    :param results: what the converter returned
    :param names: the names the results should have
    :return: the same thing with the names the results have
    """
    made = {name for record in g.store.nodes[size:] for name in record.outputs}
    renamed: dict[str, str] = {}

    def named(result: Any, name: str) -> Any:
        if not isinstance(result, str) or result == name:
            return result
        if result in made and result not in renamed and name not in made:
            g.rename_result(result, name)
            renamed[str(result)] = name
        final = renamed.get(result, str(result))
        return SymScalar(final, result.kind) if isinstance(result, SymScalar) else final

    if isinstance(results, list | tuple):
        return [named(r, n) for r, n in zip(results, names, strict=False)] + list(
            results[len(names) :]
        )
    return named(results, names[0]) if names else results
