"""Finds the regions torch.vmap runs, which torch.export writes between two functorch calls."""

from __future__ import annotations

from typing import Any

import torch

from ..common.errors import ExportError

_FUNCTORCH = "torch._functorch.predispatch"
_BEGIN = "_vmap_increment_nesting"


def has_vmap(graph: torch.fx.Graph) -> bool:
    """Whether a graph has such a region. Only its decomposition is made of operators.

    :raises ExportError: the region depends on the sizes of the arguments: ``associative_scan`` is
        unrolled for them, whatever torch says of its dynamic dimensions
    """
    calls = [n for n in graph.nodes if getattr(n.target, "__module__", "") == _FUNCTORCH]
    for node in calls:
        if node.target.__name__ == _BEGIN and _is_part(node.args[0]):
            raise ExportError(
                "associative_scan over a dynamic dimension: torch.export unrolls it for the size "
                "of the arguments with strict=True. Use strategy 'nostrict', or leave this "
                "dimension static, or use scan (torch._higher_order_ops.scan)."
            )
    return bool(calls)


def _is_part(size: Any) -> bool:
    """Whether a size is a part of a dynamic dimension, such as n // 2."""

    value = size.meta.get("val") if isinstance(size, torch.fx.Node) else size
    if not isinstance(value, torch.SymInt) or value.node.expr.is_number:
        return False
    return any("FloorDiv" in type(e).__name__ for e in _expressions(value.node.expr))


def _expressions(expr: Any) -> list[Any]:
    return [expr, *(inner for arg in expr.args for inner in _expressions(arg))]
