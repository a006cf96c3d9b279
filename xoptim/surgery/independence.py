"""Conditions under which a node does not depend on a size its model fixes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto

from xbuilder import GraphBuilder
from xbuilder.dims import Dim, exact_div, symbols
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, REDUCTIONS

#: a constant equal to a size of at least this number is suspect
_SUSPECT = 16
#: constants of more elements are tables, not sizes
_FEW = 4

_BATCH_FIRST = frozenset(
    [
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GroupNormalization",
        "InstanceNormalization",
        "LRN",
        "LpPool",
        "MaxPool",
        "Resize",
        "SpaceToDepth",
        "Upsample",
    ]
)
_ALONG = frozenset(["CumSum", "Hardmax", "LayerNormalization", "LogSoftmax", "Softmax"])
_MADE_OF_SIZES = frozenset(["ConstantOfShape", "Range", "Shape", "Size"])
_RECURRENT = frozenset(["GRU", "LSTM", "RNN"])
_OTHERS = frozenset(
    [
        "ArgMax",
        "ArgMin",
        "Cast",
        "Clip",
        "Concat",
        "DequantizeLinear",
        "Dropout",
        "Expand",
        "Flatten",
        "Gather",
        "Gemm",
        "Identity",
        "MatMul",
        "Max",
        "Mean",
        "Min",
        "Mod",
        "PRelu",
        "Pad",
        "QuantizeLinear",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Sum",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
    ]
)
_KNOWN = (
    _BATCH_FIRST
    | _ALONG
    | _MADE_OF_SIZES
    | _RECURRENT
    | _OTHERS
    | frozenset(ELEMENTWISE_BINARY)
    | frozenset(ELEMENTWISE_UNARY)
    | frozenset(REDUCTIONS)
)
_POOLS = ("AveragePool", "Conv", "LpPool", "MaxPool")
_NUMBERS = frozenset((*ELEMENTWISE_BINARY, "Clip", "Max", "Min", "Mod", "Sum", "Where"))
_BOUND = re.compile(r"\b(?:min|max)\(")


@dataclass
class NodeView:
    """A node with the dimensions of its operands, once sizes became symbols.

    :param builder: the graph that holds its operands
    :param node: the node
    :param sizes: size each new symbol had
    :param before: shapes of the results when sizes are fixed
    """

    builder: GraphBuilder
    node: NodeProto
    sizes: Mapping[str, int]
    before: Callable[[str], Sequence[Dim] | None]
    rows: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = frozenset(name for name, size in self.sizes.items() if size == 1)

    def dims(self, i: int) -> Sequence[Dim]:
        """The dimensions of an input, none if it is missing or unknown."""
        name = self.node.input[i] if i < len(self.node.input) else ""
        return (self.builder.facts[name].shape or ()) if name else ()

    def new(self, dims: Sequence[Dim]) -> set[str]:
        """The new symbols of some dimensions."""
        return set().union(*map(symbols, dims)) & set(self.sizes)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.builder.get_attribute_value(self.node, name, default)

    def constant(self, i: int) -> np.ndarray | None:
        """A constant input, None if it is not."""
        name = self.node.input[i] if i < len(self.node.input) else ""
        if not name or not self.builder.is_constant(name):
            return None
        return np.asarray(self.builder.get_constant(name))

    def axes(self, names: Collection[str]) -> list[int]:
        """The axes of the first input that hold some symbols."""
        return [i for i, d in enumerate(self.dims(0)) if not symbols(d).isdisjoint(names)]


def refusal(view: NodeView) -> str:
    """The reason why a node may depend on a size, before its results are known; none if empty.

    :param view: the node
    """
    op_type = view.node.op_type
    if main_domain(view.node.domain) or op_type not in _KNOWN:
        return "nothing is known of this operator"
    if op_type in _BATCH_FIRST and view.axes(view.rows) not in ([], [0]):
        return "rows are not along its first axis"
    if op_type in _RECURRENT:
        return _of_recurrent(view)
    if op_type in _NUMBERS:
        return _of_numbers(view)
    check = _CHECKS.get(op_type)
    return check(view) if check is not None else ""


def refusal_of_results(view: NodeView) -> str:
    """The reason why the results of a node may depend on a size; none if empty.

    :param view: the node, already in its graph
    """
    op_type = view.node.op_type
    read = [view.dims(i) for i in range(len(view.node.input))]
    rows = set().union(*(view.new(dims) for dims in read)) & view.rows
    bounded = any(_BOUND.search(str(d)) for dims in read for d in dims)
    for name in filter(None, view.node.output):
        shape = view.builder.facts[name].shape
        if shape is None:
            return f"the shape of {name!r} is not known any more"
        for row in rows if op_type not in _MADE_OF_SIZES else ():
            holders = [d for d in shape if row in symbols(d)]
            if len(holders) != 1 or exact_div(holders[0], row) is None:
                return f"its result does not keep the rows of {row!r}: {list(shape)}"
        if op_type == "Tile" and not all(d in read[0] for d in shape if view.rows & symbols(d)):
            return "it repeats rows"
        if op_type == "Slice" and not bounded:
            for d in shape:
                if _BOUND.search(str(d)) and not re.fullmatch(r"min\((\w+,1|1,\w+)\)", str(d)):
                    return f"it stops at a fixed place: {list(shape)}"
    return _of_cut(view) if op_type in (*_POOLS, "Resize", "Upsample") else ""


def _of_numbers(view: NodeView) -> str:
    """A scalar that is a size, such as 640 in a product of coordinates."""
    suspects = {float(s) for size in view.sizes.values() if size >= _SUSPECT for s in (size,)}
    suspects |= {1 / s for s in suspects} | {s - 1 for s in suspects}
    for i in range(len(view.node.input)):
        value = view.constant(i)
        if value is None or value.size > _FEW or value.dtype.kind not in "fiu":
            continue
        for number in value.ravel().tolist():
            if any(np.isclose(abs(number), s, rtol=1e-6) for s in suspects):
                return f"it holds {number:g}, which may come from a size"
    return ""


def _of_recurrent(view: NodeView) -> str:
    """Initial states have the rows of the inputs."""
    rows = view.axes(view.rows)
    if rows and rows != [0 if view.attr("layout", 0) else 1]:
        return "rows are not along its axis of sequences"
    states = [i for i in (5, 6) if i < len(view.node.input) and view.node.input[i]]
    fixed = [i for i in states if not view.new(view.dims(i))]
    return "its initial state has a fixed number of rows" if rows and fixed else ""


def _of_along(view: NodeView) -> str:
    """No row is normalized with another one."""
    rank, op_type = len(view.dims(0)), view.node.op_type
    opset = view.builder.opsets.get("", 1)
    if op_type == "CumSum":
        constant = view.constant(1)
        axes = range(rank) if constant is None else [int(constant.ravel()[0]) % rank]
    else:
        first = int(view.attr("axis", -1 if opset >= 13 or op_type[0] == "L" else 1)) % max(rank, 1)
        flat = op_type == "LayerNormalization" or opset < 13
        axes = range(first, rank) if flat else range(first, first + 1)
    return "it mixes rows" if set(axes) & set(view.axes(view.rows)) else ""


def _of_gather(view: NodeView) -> str:
    """The first or the last element may be taken, another one would depend on the size."""
    axis = int(view.attr("axis", 0))
    dims, value = view.dims(0), view.constant(1)
    if not dims or not view.new([dims[axis]]):
        return ""
    if view.rows & symbols(dims[axis]):
        return "it takes some rows only"
    if value is not None and set(value.ravel().tolist()) <= {0, -1}:
        return ""
    return f"it takes elements at fixed places of {dims[axis]}"


def _of_split(view: NodeView) -> str:
    axis = int(view.attr("axis", 0))
    dims = view.dims(0)
    return f"it splits {dims[axis]}" if dims and view.new([dims[axis]]) else ""


def _of_topk(view: NodeView) -> str:
    axis = int(view.attr("axis", -1))
    dims = view.dims(0)
    return f"it takes a fixed number of {dims[axis]}" if dims and view.new([dims[axis]]) else ""


def _of_concat(view: NodeView) -> str:
    axis = int(view.attr("axis", 0))
    dims = [view.dims(i) for i in range(len(view.node.input))]
    held = any(view.rows & symbols(d[axis]) for d in dims if d)
    return "it puts rows side by side" if held else ""


def _of_flatten(view: NodeView) -> str:
    dims = view.dims(0)
    axis = int(view.attr("axis", 1))
    axis = axis + len(dims) if axis < 0 else axis
    start = {i: 0 if i < axis else axis for i in view.axes(view.rows)}
    inside = any(d != 1 for i, first in start.items() for d in dims[first:i])
    return "it moves rows inside a dimension" if inside else ""


def _of_slice(view: NodeView) -> str:
    """Rows stay in their order."""
    if not view.axes(view.rows):
        return ""
    steps = view.constant(4) if len(view.node.input) > 4 else np.ones(1)
    return "" if steps is not None and (steps == 1).all() else "it may put rows in another order"


def _of_cut(view: NodeView) -> str:
    """A window that covers a whole axis, or a result of fixed size."""
    source, result = view.dims(0), view.builder.facts[view.node.output[0]].shape or ()
    for i, (d, new) in enumerate(zip(source, result, strict=False)):
        if not view.new([d]):
            continue
        if not view.new([new]):
            return f"it always makes {new} of {d}"
        frozen = view.before(view.node.input[0]) or ()
        kernel = view.attr("kernel_shape") or ()
        size = frozen[i] if i < len(frozen) else None
        if size != 1 and size in kernel[i - 2 : i - 1] and i >= 2:
            return f"its window covers the {size} of {d}"
    return ""


_CHECKS: dict[str, Callable[[NodeView], str]] = {
    **dict.fromkeys(_ALONG, _of_along),
    "Concat": _of_concat,
    "Flatten": _of_flatten,
    "Gather": _of_gather,
    "Slice": _of_slice,
    "Split": _of_split,
    "TopK": _of_topk,
}
