"""Zeros that replace NaN in the weights of an attention."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from ..reading.arguments import other_input
from ..reading.attention import weights_read
from ..reading.axes import axis_of, cut_axes
from ..reading.heads import SWAPPED, repeated, transposed
from ..reading.magnitudes import NORMALIZATIONS, Magnitudes
from ..reading.masks import boolean_mask, sees_something
from ..reading.neighbours import producer
from ..reading.shapes import known_rank, proven_equal, shape_of

#: operators that take some columns
_CUTS = ("Slice", "Split")
#: most nodes between the values and the sequence they are the product of
_MOST = 8


@rewrite("default", root="IsNaN", after="Softmax", name="SoftmaxGuard")
def softmax_guard(g: RewriteContext, test: NodeProto) -> dict[str, NewNode]:
    """Where(IsNaN(w), 0, w) @ V -> w @ V, w = Softmax(scores).

    1. V holds the heads of x @ W + b, x is a normalized sequence, W and b are constants;
    2. scores are computed from x, by operations that keep them finite when x is, see
       :mod:`xoptim.reading.magnitudes`, and from masks that are finite, or hide some keys of each
       query only, see :func:`xoptim.reading.masks.sees_something`.

    If w is NaN, an element of x is not finite, every column of V has a NaN or an infinity: zeros
    @ V is NaN as well.
    """
    weights = test.input[0]
    softmax = g.before(test, "Softmax")
    rank = g.rank_of(weights)
    g.require(rank == 4 and axis_of(g, softmax, 4, -1) == 3, "it is not a Softmax of rows")
    _, weighted = weights_read(g, weights)
    x = _projected(g, weighted.input[1])
    magnitudes = Magnitudes(g, x)
    finite = any(magnitudes.largest(name) is not None for name in _scores(g, softmax.input[0]))
    g.require(finite, "a score may not be finite where the values are")
    return {weighted.output[0]: g.op.MatMul(weights, weighted.input[1])}


def _scores(g: RewriteContext, name: str) -> Iterator[str]:
    """What Softmax reads; the same before a mask that lets each query see something is added."""
    yield name
    masked = producer(g, name, "Add")
    if masked is None:
        return
    for mask, scores in (tuple(masked.input), tuple(masked.input)[::-1]):
        found = boolean_mask(g, mask)
        if found is not None and sees_something(g, found[0]):
            yield scores


def _projected(g: RewriteContext, values: str) -> str:
    """The normalized sequence the values are a product of; refuses what is something else."""
    source = repeated(g, values) or values
    cut = producer(g, source, *_CUTS)
    if cut is not None and cut_axes(g, cut, g.rank_of(source)) == (3,):
        source = cut.input[0]  # queries, keys and values of a head are beside each other
    moved = g.known(transposed(g, source, SWAPPED), "the values are not moved from a sequence")
    flat = str(g.before(moved, "Reshape").input[0])
    x = g.known(_factor(g, flat), "the values are not the product of rows by a constant matrix")
    g.require(producer(g, x, *NORMALIZATIONS), "the sequence is not normalized")
    shapes = [g.shape_of(name) for name in (moved, flat, x)]
    same = all(proven_equal(g, shape[:2], shapes[0][:2]) for shape in shapes)
    g.require(
        same and len(shapes[2]) == 3, "the values are not those of each element of a sequence"
    )
    return x


def _factor(g: RewriteContext, name: str) -> str | None:
    """What a constant matrix multiplies, before a bias and what takes some columns; rows may be
    those of a matrix meanwhile. None if it is something else."""
    multiplied = False
    for _ in range(_MOST):
        node = producer(g, name, "Add", "Gemm", "MatMul", "Reshape", *_CUTS)
        if node is None:
            break
        is_product = node.op_type in ("Gemm", "MatMul")
        if is_product and multiplied:
            return None
        multiplied |= is_product
        before = _read(g, node)
        if before is None:
            return None
        name = before
    return name if multiplied else None


def _read(g: RewriteContext, node: NodeProto) -> str | None:
    """The operand a node reads row by row, the others are constants; None if there is none."""
    x, shape = str(node.input[0]), shape_of(g, node.output[0]) or ()
    if node.op_type == "Reshape":
        rows = (shape_of(g, x) or ())[-1:]
        return x if rows and proven_equal(g, rows, shape[-1:]) else None
    if node.op_type in _CUTS:
        return x if cut_axes(g, node, len(shape)) == (len(shape) - 1,) else None
    if node.op_type == "Add":
        constants = [name for name in node.input if g.is_constant(name)]
        other = other_input(node, constants[0]) if constants else None
        return other if other and g.same_shape(other, node.output[0]) else None
    turned = g.get_attribute_with_default(node, "transA", 0)
    matrix = all(map(g.is_constant, node.input[1:])) and known_rank(g, node.input[1]) == 2
    return x if matrix and not turned else None
