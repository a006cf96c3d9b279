"""Computes a result repeated along the batch once, from one constant, then repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import NodeProto

from xbuilder.constants.evaluation import evaluate_node, predicted_bytes
from xbuilder.constants.table import CACHED_BYTES
from xbuilder.dims import Shape
from xbuilder.operators.op_traits import CARRIERS, ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from xbuilder.passes.fold_plans import growth_budget
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import int_attribute
from ...analysis.axes import axis_of
from ...analysis.constants import Ints, is_cheap
from ...analysis.moved_axes import ALONG, MOVED, moved_axis
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import dims_are_equal, padded
from ...analysis.values.repeated import (
    REPEATS,
    Repeated,
    is_one_number,
    once,
    repeated_axis,
    repeated_shape,
    repeated_value,
    repetition,
)
from ...analysis.values.uniform import resizes_elements
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: operators that return elements of their first input
_MOVES = tuple(sorted(CARRIERS - {"Compress", "Identity", "Split"} | {"Resize"}))
#: those that copy nothing
_VIEWS = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
_ELEMENTWISE = (
    *sorted(ELEMENTWISE_UNARY - {"Identity"}),
    *ELEMENTWISE_BINARY,
    *("Max", "Min", "Where"),
)
_PRODUCTS = ("Attention", "Gemm", "MatMul")
#: repeated operands, by name
Operands = Mapping[str, Repeated]


@rewrite("default", root=_MOVES, after=REPEATS, priority="first", min_opset=13)
def filled_move(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(ConstantOfShape(s, v)) -> ConstantOfShape(t, v), t is the shape of the result.

    1. f returns elements of its first input: Reshape, Transpose, Slice, Gather, Expand... or
       Resize, to the nearest element.
    2. One dimension of each shape is not an integer, and it is the same one.
    3. Expand(v, s) -> Expand(v, t), v is one number.
    4. f copies nothing (Reshape, Squeeze...): nothing else reads the first tensor, but its shape.
    """
    name, result = g.inputs(node)[0], node.output[0]
    found = g.known(repetition(g, name), "it is not repeated along one axis")
    g.require(is_one_number(g, found), "it is not filled with one number")
    nearest = node.op_type != "Resize" or resizes_elements(g, node)
    g.require(nearest, "elements are mixed, or come from outside")
    shape, axis = _repeated_as_often(g, result, found)
    _require_gain(g, node, name)
    target = repeated_shape(g, found, shape, axis)
    if not found.source:
        return g.like(found.node, target)
    number = g.constant_of(found.source)
    return g.op.Expand(number.reshape(()) if number.ndim > len(shape) else found.source, target)


def _repeated_as_often(g: RewriteContext, name: str, found: Repeated) -> tuple[Shape, int]:
    """Shape of a result and the only axis that is not an integer; refuses unless it is as long as
    the repeated one."""
    shape = g.known(moved_shape(g, name), "the shape of the result is not known")
    axis = repeated_axis(shape)
    if axis is None or not dims_are_equal(g)(shape[axis], found.times):
        g.refuse("the result is not as long, or has other dimensions that are not integers")
    return shape, axis


def _require_gain(g: RewriteContext, node: NodeProto, *names: str) -> None:
    """Refuses a node that copies nothing when its input stays live: its result would be filled as
    well."""
    for name in names if node.op_type in _VIEWS else ():
        readers = [r for r in g.store.readers(name) if r.op_type != "Shape"]
        alone = len(readers) == 1 and not g.is_output(name)
        g.require(alone, "the inner result is used elsewhere")


@rewrite(
    "default",
    root=(*_ELEMENTWISE, *ALONG, *MOVED, "Concat"),
    reads=REPEATS,
    priority="first",
    min_opset=13,
)
def repeated_constant(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(Expand(c, (n, 1, ...)), k) -> Expand(f(c, k), (n, 1, ...)), f(c, k) is computed at once.

    1. One dimension of the repeated tensor is not an integer. c is a constant, repeated by Expand
       or Tile, or one number, repeated by ConstantOfShape. Every operand is repeated as many times,
       or is a constant.
    2. f applies to each element, and constants have one along this axis.
    3. f is CumSum, LayerNormalization, Softmax, LogSoftmax, Slice or Concat, along other axes.
    4. f is Reshape, Squeeze, Unsqueeze or Transpose, and the axis stays whole. When f copies
       nothing, nothing else reads the repeated tensor, except its shape.
    5. Constants are small (is_cheap), the new one adds no more to the file than the folds
       of the model may still add.
    """
    return _computed_once(g, node)


@rewrite(
    "default", root=_PRODUCTS, reads=REPEATS, priority="first", min_opset=13, precision="rounding"
)
def repeated_product(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(Expand(c, (n, 1, 1)), w) -> Expand(MatMul(c, w), (n, 1, 1)), computed at once.

    As RepeatedConstant. Runtimes multiply one row and many rows differently, hence the rounding.

    1. MatMul along an axis of the batch of one or both operands, or along the rows of the first
       one.
    2. Gemm, along the rows of the first operand; the bias is the same for all of them.
    3. Attention, along the batch, without mask nor cache.
    """
    return _computed_once(g, node)


def _computed_once(g: RewriteContext, node: NodeProto) -> NewNode:
    """The node computed now on the repeated constants, then repeated."""
    names, result = g.inputs(node), node.output[0]
    found = {n: r for n in names if n and (r := repetition(g, n)) is not None}
    g.require(found, "nothing is repeated along one axis")
    known = all(n in found or not n or is_cheap(g, n) for n in names)
    g.require(known, "an operand is not a small constant, or is not repeated along one axis")
    first, same = next(iter(found.values())), dims_are_equal(g)
    filled = node.op_type in _MOVES and all(is_one_number(g, r) for r in found.values())
    g.require(not filled, "what is filled with one number stays so")
    often = all(same(first.times, r.times) for r in found.values())
    g.require(often, "operands are not repeated as many times")
    g.require(len(node.output) == 1, "it gives several results")
    shape, axis = _repeated_as_often(g, result, first)
    independent = _RULES[node.op_type](g, node, found, shape) == axis
    g.require(independent, "the operator may mix what is repeated")
    _require_gain(g, node, *found)
    kernel = has_kernel("Expand", g.type_of(result), g.main_opset)
    g.require(kernel, "runtimes do not expand this type")
    _require_room(g, node, found, once(shape))
    value = _value(g, node, found, once(shape))
    dims = zip(padded(value.shape, len(shape)), shape, strict=True)
    target = [1 if before == after else after for before, after in dims]
    return g.op.Expand(value, repeated_shape(g, first, tuple(target), axis))


def _require_room(g: RewriteContext, node: NodeProto, found: Operands, shape: Ints) -> None:
    """Refuses a result that is too large to compute now, or to write, as constant folding does."""
    for name, operand in found.items():
        size = predicted_bytes(g.type_or_none(name), operand.once)
        small = size is not None and size <= CACHED_BYTES
        g.require(small, "one element of the batch takes more than a megabyte")
    growth = predicted_bytes(g.type_of(node.output[0]), shape) or 0
    for name in {*node.input} - {""}:
        source = found[name].source if name in found else name
        stays = source not in g.graph.constants.initializers
        if not stays and not any(map(g.is_used_more_than_once, (name, source))):
            growth -= predicted_bytes(g.type_or_none(source), g.get_constant_shape(source)) or 0
    refusal = growth_budget(g.graph).refusal(growth) if growth > 0 else ""
    g.require(not refusal, refusal)


def _value(g: RewriteContext, node: NodeProto, found: Operands, shape: Ints) -> np.ndarray:
    """The value of a node on the repeated constants; refuses if it cannot be computed."""
    values: list[np.ndarray | None] = []
    for name in node.input:
        if name not in found:
            values.append(g.constant_of(name) if name else None)
            continue
        value, whole = repeated_value(g, found[name]), node.op_type not in _ELEMENTWISE
        values.append(np.array(np.broadcast_to(value, found[name].once)) if whole else value)
    if node.op_type == "Reshape":
        values[1] = np.array(shape, np.int64)
    one = all(value is None or value.size == 1 for value in values)
    g.require(not one, "everything is one number")
    made = evaluate_node(node, values, g.graph.opsets, [g.type_of(node.output[0])])
    return np.asarray(g.known(made, "it cannot be computed")[node.output[0]])


# -- the axis of the result operands are repeated along, None if the operator may mix what is


Rule = Callable[[RewriteContext, NodeProto, Operands, Shape], int | None]


def _elementwise(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    place = _place(g, node, found)
    return None if place is None else len(shape) + place


def _place(g: RewriteContext, node: NodeProto, found: Operands) -> int | None:
    """The axis operands are repeated along, counted from the last one; None if there are several,
    or if a constant has more than one element there."""
    places = {r.axis - len(r.shape) for r in found.values()}
    place = places.pop()
    constants = [g.get_constant_shape(n) or () for n in node.input if n and n not in found]
    alone = all(len(shape) < -place or shape[place] == 1 for shape in constants)
    return place if alone and not places else None


def _matmul(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    """An axis of the batch, or the rows of the first operand."""
    names = node.input
    ranks = [len(found[n].shape if n in found else g.get_constant_shape(n) or ()) for n in names]
    if min(ranks) < 2:
        return None
    if names[1] not in found and found[names[0]].axis == ranks[0] - 2:
        return len(shape) - 2
    place = _place(g, node, found)
    return len(shape) + place if place is not None and place < -2 else None


def _gemm(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    """The rows of the first operand; the bias is the same for all of them."""
    left, right, *bias = node.input
    rows = int_attribute(node, "transA", 0)
    if set(found) != {left} or right == left or found[left].axis != rows:
        return None
    added = g.get_constant_shape(bias[0]) or () if bias and bias[0] else ()
    return 0 if left not in bias and (len(added) < 2 or added[0] == 1) else None


def _concat(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    axes = {r.axis for r in found.values()}
    axis = axes.pop()
    along = axis_of(g, node, len(shape), None)
    alone = not axes and all(n in found for n in node.input)
    return axis if alone and along not in (None, axis) else None


def _attention(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    """The batch of queries, keys and values."""
    alone = len(node.input) == 3 and all(n in found for n in node.input)
    return 0 if alone and all(r.axis == 0 for r in found.values()) else None


def _carried(g: RewriteContext, node: NodeProto, found: Operands, shape: Shape) -> int | None:
    """The place of the axis of the first operand."""
    name, *others = node.input
    alone = set(found) == {name} and name not in others
    return moved_axis(g, node, found[name].shape, found[name].axis, shape) if alone else None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys((*ALONG, *MOVED), _carried),
    "Attention": _attention,
    "Concat": _concat,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
