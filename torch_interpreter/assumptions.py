"""What torch assumed of the dynamic dimensions to choose a branch: a model says it nowhere.

A model that does ``if x.shape[1] > 4`` becomes a graph which is right for the sizes that go the
same way as the arguments of the export. torch keeps it as a range or as an assertion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .dynamic_shapes import DimensionNamer, is_symbol, spec_items

_ASSERTION = "aten._assert_scalar.default"
#: torch takes every dimension as 2 or more, those of 0 or 1 go the same way most of the time
_USUAL = 2


def assumptions(
    placeholders: Sequence[tuple[str, Any]],
    specs: Sequence[Any],
    module: torch.fx.GraphModule,
    namer: DimensionNamer,
) -> list[str]:
    """The conditions the dynamic dimensions must follow, those a user asked for apart.

    torch.compile gives no specification: it makes another graph for the sizes out of the bounds.

    :param placeholders: name and fake value of every input
    :param specs: specification of every input
    :param module: the graph
    :param namer: the names of the dimensions
    :return: one text for each of them: ``"265 <= samples"``, ``"seq % 4 == 0"``
    """
    bounds = (
        text
        for (_, value), spec in zip(placeholders, specs, strict=False)
        if isinstance(value, torch.Tensor)
        for axis, asked in spec_items(spec)
        if is_symbol(dim := value.shape[axis])
        for text in _bounds(dim, asked, namer)
    )
    return list(dict.fromkeys((*bounds, *_assertions(module.graph, namer))))


def _bounds(dim: Any, asked: Any, namer: DimensionNamer) -> Iterator[str]:
    expr = dim.node.expr
    found = dim.node.shape_env.var_to_range.get(expr)
    if found is None:
        return
    least = max(_USUAL, _integer(getattr(asked, "min", None)) or 0)
    if (_integer(found.lower) or 0) > least:
        yield f"{found.lower} <= {namer.text(expr)}"
    most, allowed = _integer(found.upper), _integer(getattr(asked, "max", None))
    if most is not None and (allowed is None or most < allowed):
        yield f"{namer.text(expr)} <= {most}"


def _integer(bound: Any) -> int | None:
    """None for no bound at all."""
    return int(bound) if isinstance(bound, int) or getattr(bound, "is_Integer", False) else None


def _assertions(graph: torch.fx.Graph, namer: DimensionNamer) -> Iterator[str]:
    """Those about the remainder of a dimension, others follow from them or from the ranges."""
    for node in graph.nodes:
        condition = node.args[0] if str(node.target) == _ASSERTION and node.args else None
        value = condition.meta.get("val") if isinstance(condition, torch.fx.Node) else None
        expr = value.node.expr if isinstance(value, torch.SymBool) else None
        if expr is None or expr.func.__name__ != "Equality" or expr.args[1] != 0:
            continue
        left = expr.args[0]
        if left.func.__name__ in ("Mod", "PythonMod"):
            base, divisor = left.args
            if base.is_Symbol and divisor.is_Integer and base.name in namer.names:
                yield f"{namer.text(base)} % {divisor} == 0"
