"""Short vectors whose pieces are reordered by Reshape, Transpose, Slice: one Concat (F.pad)."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import optional_input
from ...analysis.axes import axis_of, slice_axes
from ...analysis.constants import int_values
from ...analysis.permutations import perm_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..indexing.slices import kept_positions

#: most nodes between the vector and the pieces
_LONGEST = 8
_MOVES = ("Reshape", "Slice", "Transpose")


@rewrite(
    "default",
    "model",
    "canonicalize",
    root="Reshape",
    after=("Slice", "Transpose"),
    min_opset=10,
)
def moved_pieces(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Transpose(Slice(Reshape(Concat(...), (-1, 2)), step=-1)), (-1,)) -> Concat(...).

    torch.onnx.export computes the pads of F.pad this way.

    1. Any Reshape, Transpose, Slice whose arguments are constant.
    2. The length of each piece is known, its elements follow each other in the end; those of a
       constant may go anywhere.
    """
    moves = [node]
    while (move := g.before_or_none(moves[-1], *_MOVES)) is not None and len(moves) < _LONGEST:
        moves.append(move)
    concat = g.before(moves[-1], "Concat")
    g.require(axis_of(g, concat, 1, None) == 0, "no Concat of vectors before")
    shapes = [g.shape_or_none(name) or () for name in concat.input]
    lengths = [s[0] for s in shapes if len(s) == 1 and isinstance(s[0], int)]
    g.require(len(lengths) == len(shapes), "the length of a piece is not known")
    places = np.arange(sum(lengths))
    for move in reversed(moves):
        places = _moved(g, move, places)
    g.require(places.ndim == 1, "the result is not a vector")
    return g.op.Concat(*_pieces(g, concat, lengths, places.tolist()), axis=0)


def _moved(g: RewriteContext, node: NodeProto, places: np.ndarray) -> np.ndarray:
    """Applies one move to the element positions; refuses if it is not known."""
    if node.op_type == "Transpose":
        return places.transpose(g.known(perm_of(g, node), "the permutation is not known"))
    if node.op_type == "Reshape":
        target = g.known(int_values(g, node.input[1]), "a shape is not constant")
        usual = all(d == -1 or d > 0 for d in target) and target.count(-1) <= 1
        known = np.prod([d for d in target if d != -1], dtype=np.int64)
        fits = usual and (places.size % known == 0 if -1 in target else places.size == known)
        g.require(fits and places.size, "a shape is not that of every element")
        return places.reshape(target)
    axes = g.known(slice_axes(g, node), "a Slice is not constant")
    starts, ends = (int_values(g, node.input[i]) for i in (1, 2))
    name = optional_input(node, 4)
    steps = int_values(g, name) if name else (1,) * len(axes)
    if starts is None or ends is None or steps is None:
        g.refuse("a Slice is not constant")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        kept = kept_positions(range(places.shape[axis]), (start, end, step))
        places = np.take(places, g.known(kept, "runtimes disagree on a Slice"), axis=axis)
    return places


def _pieces(
    g: RewriteContext, concat: NodeProto, lengths: list[int], places: list[int]
) -> list[str | np.ndarray]:
    """Pieces of a Concat, and elements of its constants, in a new order; refuses if a piece is
    cut."""
    starts = np.cumsum([0, *lengths]).tolist()
    pieces: list[str | np.ndarray] = []
    while places:
        index = next(i for i, end in enumerate(starts[1:]) if places[0] < end)
        name, first = concat.input[index], starts[index]
        if g.is_constant(name):
            value = g.constant_of(name)[places[0] - first :][:1]
            last = pieces[-1] if pieces else None
            if isinstance(last, np.ndarray):
                pieces[-1] = np.concatenate([last, value])
            else:
                pieces.append(value)
            places = places[1:]
            continue
        whole = list(range(first, starts[index + 1]))
        g.require(places[: len(whole)] == whole, "a piece is cut")
        pieces.append(name)
        places = places[len(whole) :]
    return pieces
