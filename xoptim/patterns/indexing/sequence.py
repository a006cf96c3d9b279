"""Sequences that are built, then read at known positions."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axis

from ...analysis.arguments import int_attribute, optional_input
from ...analysis.constants import Ints, int_values, scalar_index
from ...analysis.neighbours import consumers_of
from ...authoring import RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite


@rewrite("default", root="SequenceAt", after="SequenceConstruct", min_opset=11)
def sequence_construct_at(g: RewriteContext, node: NodeProto) -> str:
    """SequenceAt(SequenceConstruct(a, b, ...), i) -> the element at this position.

    The position is constant and in the sequence, which is kept for its other readers.
    """
    elements = g.inputs(g.before(node, "SequenceConstruct"))
    index = g.known(scalar_index(g, node.input[1]), "the position is not constant")
    n = len(elements)
    g.require(-n <= index < n, "the position is not in the sequence")
    return elements[index % n]


@rewrite("default", root="SplitToSequence", min_opset=13)
def split_to_sequence_sequence_at(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """SequenceAt(SplitToSequence(x, split), i), for every position -> Split(x, sizes)[i].

    1. Sizes are given, or there is one size and the dimension is known; without any, the pieces
       have one element.
    2. They are squeezed when there is no size and keepdims is 0.

    Only SequenceAt reads the sequence, at constant positions that are in it.
    """
    sequence = node.output[0]
    reads = consumers_of(g, sequence, "SequenceAt")
    alone = bool(reads) and g.is_used_only_by(sequence, *reads)
    g.require(alone, "something else than SequenceAt reads the sequence")
    x, given = node.input[0], optional_input(node, 1)
    rank = g.rank_of(x)
    axis = normalize_axis(int_attribute(node, "axis", 0) or 0, rank)
    axis = g.known(axis, "the axis is not known")
    sizes = _sizes(g, node, axis)
    indices = [scalar_index(g, r.input[1]) for r in reads]
    n = len(sizes)
    inside = [i for i in indices if i is not None and -n <= i < n]
    g.require(len(inside) == len(indices), "a position is not constant, or not in the sequence")
    squeezed = not given and int_attribute(node, "keepdims", 1) == 0
    g.look_at(*reads)
    split = g.op.Split(x, list(sizes), axis=axis, outputs=n)
    return {
        r.output[0]: g.op.Squeeze(split[i % n], axes=[axis]) if squeezed else split[i % n]
        for r, i in zip(reads, inside, strict=True)
    }


def _sizes(g: RewriteContext, node: NodeProto, axis: int) -> Ints:
    """Sizes of the pieces of a SplitToSequence; refuses if they are not known."""
    given = optional_input(node, 1)
    if given and g.rank_or_none(given) == 1:
        return g.known(int_values(g, given), "the sizes are not constant")
    shape = g.shape_or_none(node.input[0])
    dim = None if shape is None else shape[axis]
    if not isinstance(dim, int) or dim == 0:
        g.refuse("the dimension is not known, or null")
    size = scalar_index(g, given) if given else 1
    size = g.known(size, "the sizes are not constant")
    g.require(size > 0, "the sizes are not positive")
    rest = dim % size
    return (size,) * (dim // size) + ((rest,) if rest else ())
