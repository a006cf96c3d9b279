"""Bounds proven from the normalized sequence the values of an attention are projected from."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import mul

from ...authoring import RewriteContext
from ..arguments import other_input
from ..axes import cut_axes
from ..shapes import proven_equal
from .heads import SWAPPED, repeated, transposed
from .magnitudes import NORMALIZATIONS, Magnitudes

#: operators that take some columns
_CUTS = ("Slice", "Split")
#: most nodes between the values and the sequence they are the product of
_MOST = 8


def projected_magnitudes(g: RewriteContext, values: str) -> Magnitudes:
    """The bounds of what is computed from the normalized sequence a product projects to the values;
    refuses any other values.

    If an element of the sequence is NaN, so is that element in each column of the values. The
    elements may be the rows of a matrix, (batch * sequence, length).

    :param values: (batch, heads, sequence, length)
    """
    source = repeated(g, values) or values
    cut = g.producer_or_none(source, *_CUTS)
    if cut is not None and cut_axes(g, cut, g.rank_of(source)) in ((1,), (3,)):
        source = cut.input[0]  # queries, keys and values of a head, or their heads, side by side
    moved = g.known(transposed(g, source, SWAPPED), "the values are not moved from a sequence")
    flat = str(g.before(moved, "Reshape").input[0])
    x = g.known(_factor(g, flat), "the values are not the product of rows by a constant matrix")
    g.require(g.producer_or_none(x, *NORMALIZATIONS), "the sequence is not normalized")
    elements, given = g.shape_of(moved)[:2], g.shape_of(x)
    matrix = len(given) == 2 and proven_equal(g, given[:1], (mul(*elements),))
    same = matrix or (len(given) == 3 and proven_equal(g, given[:2], elements))
    wide = g.shape_of(flat)
    rows = proven_equal(g, wide[:2], elements) or proven_equal(g, wide[:-1], (mul(*elements),))
    g.require(same and rows, "the values are not those of each element of a sequence")
    return Magnitudes(g, x, elements[:1])


def _factor(g: RewriteContext, name: str) -> str | None:
    """The operand a constant matrix multiplies, before a bias and nodes that take columns; its rows
    may be reshaped to those of a matrix. None for any other result."""
    multiplied = False
    for _ in range(_MOST):
        node = g.producer_or_none(name, "Add", "Gemm", "MatMul", "Reshape", *_CUTS)
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
    """The operand a node reads row by row while the others are constants; None if there is none."""
    x, shape = str(node.input[0]), g.shape_or_none(node.output[0]) or ()
    if node.op_type == "Reshape":
        rows = (g.shape_or_none(x) or ())[-1:]
        return x if rows and proven_equal(g, rows, shape[-1:]) else None
    if node.op_type in _CUTS:
        return x if cut_axes(g, node, len(shape)) == (len(shape) - 1,) else None
    if node.op_type == "Add":
        constants = [name for name in node.input if g.is_constant(name)]
        other = other_input(node, constants[0]) if constants else ""
        return other if g.same_shape(other, node.output[0]) else None
    turned = g.get_attribute_with_default(node, "transA", 0)
    matrix = all(map(g.is_constant, node.input[1:])) and g.rank_or_none(node.input[1]) == 2
    return x if matrix and not turned else None
