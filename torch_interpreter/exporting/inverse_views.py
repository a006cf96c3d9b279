"""The inverse of a view: the tensor it is taken from, when the view has another value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

_ATEN: Any = torch.ops.aten
_IDENTITIES = (
    "alias", "contiguous", "detach", "detach_", "dropout", "lift_fresh", "positive", "to"
)  # fmt: skip
_RESHAPES = ("flatten", "reshape", "squeeze", "unflatten", "unsqueeze", "view_as", "_unsafe_view")
#: an operator and its arguments
_Call = tuple[Any, ...]


def inverse(graph: Graph, view: Node, source: Node, value: Node) -> Node | None:
    """Adds the nodes that make the source of a view from the value of the view.

    :param graph: receives the nodes where it inserts
    :param view: the view
    :param source: the value of its source before
    :param value: the value of the view
    :return: None if the view has no known inverse

    >>> import torch
    >>> graph = torch.fx.Graph()
    >>> x, row = graph.placeholder("x"), graph.placeholder("row")
    >>> view = graph.call_function(torch.ops.aten.select.int, (x, 0, 2))
    >>> print(inverse(graph, view, x, row).target)
    aten.select_scatter.default
    """
    pieces = view.args[0] if view.target is operator.getitem else None
    target = pieces.target if isinstance(pieces, Node) else view.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    name = target._schema.name.split("::")[1]
    if name in _IDENTITIES:
        return value
    if name in _RESHAPES or target is _ATEN.view.default:
        call: _Call | None = _ATEN.reshape.default, value, _sizes(graph, source)
    elif isinstance(pieces, Node):
        call = _with_piece(name, pieces, int(str(view.args[1])), source, value)
    else:
        make = _INVERSES.get(name)
        call = None if make is None else make(source, value, *view.args[1:])
    if call is None:
        return None
    made = graph.call_function(call[0], call[1:])
    made.meta = dict(source.meta)
    return made


def _sizes(graph: Graph, source: Node) -> list[Any]:
    """The dimensions of a tensor, as nodes when they are dynamic."""
    sizes: list[Any] = []
    for i, size in enumerate(source.meta["val"].shape):
        if isinstance(size, torch.SymInt):
            node = graph.call_function(_ATEN.sym_size.int, (source, i))
            node.meta = {**source.meta, "val": size}
            sizes.append(node)
        else:
            sizes.append(size)
    return sizes


def _with_piece(name: str, pieces: Node, index: int, source: Node, value: Node) -> _Call | None:
    """Writes one of the pieces of a tensor, whose sizes have to be known."""
    dim = pieces.args[2] if len(pieces.args) > 2 else pieces.kwargs.get("dim", 0)
    if name == "unbind":
        axis = pieces.args[1] if len(pieces.args) > 1 else pieces.kwargs.get("dim", 0)
        return _ATEN.select_scatter.default, source, value, axis, index
    if name.removeprefix("unsafe_") not in ("chunk", "split", "split_with_sizes", "tensor_split"):
        return None
    sizes = [v.shape[dim] for v in pieces.meta["val"][: index + 1]]
    if not all(isinstance(s, int) for s in sizes):
        return None
    return _ATEN.slice_scatter.default, source, value, dim, sum(sizes[:-1]), sum(sizes)


def _narrowed(source: Node, value: Node, dim: int, start: Any, length: Any) -> _Call | None:
    if not isinstance(start, int) or not isinstance(length, int) or start < 0:
        return None
    return _ATEN.slice_scatter.default, source, value, dim, start, start + length


def _permuted(source: Node, value: Node, dims: list[int]) -> _Call:
    axes = [d % len(dims) for d in dims]
    return _ATEN.permute.default, value, [axes.index(i) for i in range(len(axes))]


#: view -> the call that makes the source of a value, from the arguments of the view
_INVERSES: dict[str, Callable[..., _Call | None]] = {
    "diagonal": lambda source, value, *args: (_ATEN.diagonal_scatter.default, source, value, *args),
    "narrow": _narrowed,
    "permute": _permuted,
    "select": lambda source, value, *args: (_ATEN.select_scatter.default, source, value, *args),
    "slice": lambda source, value, *args: (_ATEN.slice_scatter.default, source, value, *args),
    "t": lambda source, value: (_ATEN.t.default, value),
    "transpose": lambda source, value, *args: (_ATEN.transpose.int, value, *args),
}
