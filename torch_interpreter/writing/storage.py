"""Converts operators that read the storage of a tensor through one of its views.

torch.export keeps views. An operator such as as_strided reads beyond the view it is given, because
it counts from the beginning of the storage.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._sympy import functions

_FUNCTIONS: Any = functions
# their first argument is a tensor used as its storage, then come sizes, strides and an offset
_STORAGE_READERS = ("aten.as_strided.default", "aten.as_strided_copy.default")
_OFFSET = 3
_MAYBE_COPIES = ("aten::contiguous", "aten::to", "aten::reshape", "aten::flatten")


def storage_arguments(node: torch.fx.Node) -> tuple[Any, ...]:
    """The arguments of a node; as_strided of a view becomes as_strided of the owner of the storage.

    They do not change if the offset of the view is not a number and is not an argument of the node.
    """
    args = tuple(node.args)
    if str(node.target) not in _STORAGE_READERS or not isinstance(args[0], torch.fx.Node):
        return args
    owner = _owner(args[0])
    offset = args[_OFFSET] if len(args) > _OFFSET else None
    if owner is args[0] or owner.meta.get("val") is None:
        return args
    if offset is None:
        offset = known_size(args[0].meta["val"].storage_offset())
    return args if offset is None else (owner, *args[1:_OFFSET], offset)


def _owner(node: torch.fx.Node) -> torch.fx.Node:
    """The first node before a chain of views."""
    source = viewed(node)
    while source is not None:
        node, source = source, viewed(source)
    return node


def viewed(node: torch.fx.Node) -> torch.fx.Node | None:
    """The node a view is taken from, as the schema of the operator says, None if it is no view."""
    source = node.args[0] if node.args else None
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(source, torch.fx.Node):
        return None
    schema = node.target._schema
    if len(schema.returns) != 1 or schema.is_mutable or schema.returns[0].alias_info is None:
        return None
    copied = schema.name in _MAYBE_COPIES and _is_copied(schema.name, source, node)
    return None if copied else source


def _is_copied(name: str, source: torch.fx.Node, node: torch.fx.Node) -> bool:
    """Whether an operator that copies only when it must has copied its argument."""
    before: torch.Tensor = source.meta["val"]
    after: torch.Tensor = node.meta["val"]
    if before.dtype != after.dtype:
        return True
    if name in ("aten::reshape", "aten::flatten"):
        return storage_order(before) != list(range(before.ndim))
    return before.stride() != after.stride()


def known_size(size: int | torch.SymInt) -> int | None:
    """A size as an integer, None if it depends on a dynamic dimension."""
    if isinstance(size, int):
        return size
    return int(size.node.expr) if size.node.expr.is_number else None


def storage_order(fake: torch.Tensor) -> list[int] | None:
    """The axes in the order of the storage, None if the tensor does not fill its storage."""
    # the sizes of the arguments give an order, which holds for any size if the strides are equal
    hints = [s if isinstance(s, int) else s.node.hint for s in fake.stride()]
    axes = list(range(fake.ndim))
    known = [s for s in hints if s is not None]
    if len(known) == len(hints):
        axes.sort(key=lambda i: -known[i])
    sizes = [_expression(s) for s in fake.shape]
    # torch writes the stride of an empty dimension as that of a dimension of 1
    never_empty = {_FUNCTIONS.Max(1, size): size for size in sizes if not size.is_number}
    expected = _expression(1)
    for axis in reversed(axes):
        if sizes[axis] == 1:
            continue
        stride = _expression(fake.stride()[axis]).xreplace(never_empty)
        if (stride - expected).expand() != 0:
            return None
        expected *= sizes[axis]
    return axes


def _expression(size: int | torch.SymInt) -> Any:
    return _FUNCTIONS.sympy.Integer(size) if isinstance(size, int) else size.node.expr
