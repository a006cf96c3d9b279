"""Simplifies Range: bounds of rank 1, a number added to it."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import add as add_dims

from ...analysis.arguments import other_input
from ...analysis.constants import scalar_dim, scalar_index
from ...analysis.neighbours import consumers_of
from ...analysis.shapes import at_least
from ...analysis.values.counted_positions import MISREAD, are_on_one_side
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from ...declarative import rule

#: bounds and terms above it are refused, so that no sum of them and a dimension overflows
_LARGEST = 2**31


@rewrite("default", root="Range", priority="first", min_opset=11)
def range_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """Range(a[1], b[1], c[1]) -> Range(Squeeze(a), Squeeze(b), Squeeze(c))

    Bounds of rank 1 are not valid. onnxruntime runs them as long as it does not know their shape,
    and refuses the model once it does: a branch that is inlined is enough for that.

    1. an input of rank 1 with one element is squeezed, the others are left as they are
    """
    bounds = {name for name in g.inputs(node) if g.shape_or_none(name) == (1,)}
    g.require(bounds, "no bound is known to have shape (1,)")
    return g.rewired(node, {name: g.op.Squeeze(name, axes=[0]) for name in bounds})


@rewrite("default", root="Range", min_opset=11)
def swap_range_add_scalar(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Range(a, b, d) + c -> Range(a + c, b + c, d) for int64.

    1. a and c are constants, the sums cannot overflow; b is constant, or a dimension.
    2. Floats are refused, because rounding may change the number of elements.
    3. If a Gather reads the sum, no bound of the new Range changes sides of 0, see GatherRange.
    """
    start, limit, delta = g.inputs(node)
    result = node.output[0]
    g.require(g.type_or_none(result) == TensorProto.INT64, "the type is not int64")
    add = g.after(result, "Add")
    term = other_input(add, result)
    one = g.is_constant(term) and g.shape_or_none(term) in ((), (1,))
    first, value = scalar_index(g, start), scalar_index(g, term) if one else None
    if first is None or value is None:
        g.refuse("the start or what is added is not a scalar constant")
    g.require(max(abs(first), abs(value)) < _LARGEST, "a sum may overflow")
    last, dim = scalar_index(g, limit), scalar_dim(g, limit)
    end: Operand = np.array((last or 0) + value, np.int64)
    if last is None:
        known = isinstance(dim, str) and at_least(g, dim, 0)
        g.require(known, "the limit is neither a constant nor a dimension")
        end = g.op.Add(limit, np.array(value, np.int64))
    else:
        g.require(abs(last) < _LARGEST, "a sum may overflow")
    moved = [d if d is None else add_dims(d, value) for d in (first, dim)]
    gathers = g.reader_or_none(add.output[0], "Gather") is not None
    g.require(not gathers or are_on_one_side(g, *moved), MISREAD)
    return {add.output[0]: g.op.Range(np.array(first + value, np.int64), end, delta)}


@rule(
    "default",
    "counted = Range(0, limit, 1); y = counted + start; y",
    priority="later",
    min_opset=11,
    sole_use=False,
)
def range_from_start(g: RewriteContext, counted: str, limit: str, start: str, y: str) -> NewNode:
    """Range(0, n, 1) + p -> Range(p, p + n, 1) for int64, where p + n is already computed.

    1. n and p are computed from dimensions, nothing overflows;
    2. p may have one dimension, 1: it is squeezed. n is then squeezed as well, for this Range only,
       or p is squeezed already.
    """
    g.require(g.type_or_none(y) == TensorProto.INT64, "the type is not int64")
    g.require_sole_use("Range is used elsewhere", counted)
    known = all(_is_dimension(g, name) for name in (start, limit))
    g.require(known, "the limit and what is added are not known to be dimensions")
    end = g.known(_sum(g, start, limit), "the last position is not computed already")
    run = g.before(counted)
    if g.shape_or_none(start) == ():
        return g.op.Range(start, end, run.input[2])
    squeezed = consumers_of(g, start, "Squeeze")
    if squeezed:
        return g.op.Range(squeezed[0].output[0], end, run.input[2])
    squeeze = g.producer_or_none(limit, "Squeeze")
    goes = squeeze is not None and g.is_used_only_by(limit, run)
    g.require(goes, "no node goes away")
    g.look_at(squeeze)
    return g.op.Range(g.op.Squeeze(start, axes=[0]), end, run.input[2])


def _is_dimension(g: RewriteContext, name: str) -> bool:
    """Whether a result is one integer, a dimension of a tensor or a sum of them."""
    dim = scalar_dim(g, name)
    if isinstance(dim, int):
        return 0 <= dim < _LARGEST
    return dim is not None and at_least(g, dim, 0)


def _sum(g: RewriteContext, start: str, limit: str) -> str | None:
    """The scalar `start + limit`, if the graph has it; both may be squeezed before or after."""
    sources = {limit}
    squeeze = g.producer_or_none(limit, "Squeeze")
    if squeeze is not None:
        sources.add(squeeze.input[0])
    for record in g.store.readers(start):
        if record.key != ("", "Add") or other_input(g.store.proto(record), start) not in sources:
            continue
        total: str = record.outputs[0]
        if g.shape_or_none(total) == ():
            return total
        for last in consumers_of(g, total, "Squeeze"):
            return str(last.output[0])
    return None
