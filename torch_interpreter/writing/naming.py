"""Names the results after the fx nodes they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xbuilder import GraphBuilder
from xbuilder.support.names import NameAllocator

from .symbols import SymScalar


def free_name(names: NameAllocator, name: str) -> str:
    """A name nobody uses yet. It stays free, since an input reserves its own name.

    :param names: the names that are taken
    :param name: the preferred name, a number follows if it is taken
    """
    i, free = 0, name
    while free in names:
        i += 1
        free = f"{name}_{i}"
    return free


def name_results(g: GraphBuilder, size: int, results: Any, names: Sequence[str]) -> Any:
    """Names the results a converter has just made. Cost: O(nodes it added).

    An input, a constant or a result that existed before keeps its name, because the fx node is this
    result. So does a second fx node with the same result.

    :param g: the graph
    :param size: number of nodes of the graph before the converter was called
    :param results: the value the converter returned
    :param names: the names the results should have
    :return: *results* with the names they have at the end
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
        if isinstance(result, SymScalar):
            return SymScalar(final, result.kind, result.quotient)
        return final

    if isinstance(results, list | tuple):
        return [named(r, n) for r, n in zip(results, names, strict=False)] + list(
            results[len(names) :]
        )
    return named(results, names[0]) if names else results
