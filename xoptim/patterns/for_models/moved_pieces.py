"""Short vectors whose pieces are reordered by Reshape, Transpose, Slice: one Concat (F.pad)."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.axes import axis_of
from ...analysis.places import moved_places
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: most nodes between the vector and the pieces
_LONGEST = 8
_MOVES = ("Reshape", "Slice", "Transpose")


@rewrite(
    "default",
    "model",
    "canonicalize",
    root="Reshape",
    after=("Slice", "Transpose"),
    beyond=(*_MOVES, "Concat"),
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
        places = moved_places(g, places, move)
    g.require(places.ndim == 1, "the result is not a vector")
    return g.op.Concat(*_pieces(g, concat, lengths, places.tolist()), axis=0)


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
