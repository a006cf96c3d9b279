"""Reshape, Transpose, Reshape that exchange factors of dimensions: DepthToSpace, SpaceToDepth,
channel shuffles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, Shape, is_static, prod
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.constants import Ints
from ...analysis.kernels import require_fast
from ...analysis.permutations import perm_of
from ...analysis.places import transposed_places
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .space_to_depth import reordered_channels

#: permutation -> mode of DepthToSpace, the order of the channels
_MODES: dict[Ints, str] = {(0, 3, 4, 1, 5, 2): "DCR", (0, 1, 4, 2, 5, 3): "CRD"}
#: the same, the channels are last in the result
_LAST_MODES: dict[Ints, str] = {(0, 4, 1, 5, 2, 3): "DCR", (0, 4, 2, 5, 3, 1): "CRD"}
#: numbers of factors of the dimensions of images, blocks being in the channels, or in the plane
_DEPTH, _SPACE, _SPACE_LAST = (1, 3, 1, 1), (1, 1, 2, 2), (1, 2, 2, 1)
#: onnxruntime, one thread: Gather takes 0.56 to 0.89 of the time of the Transpose when it copies
#: runs of so many elements, up to 3.4 times otherwise
_RUN = 4


@rewrite(
    "default",
    root="Reshape",
    after="Transpose",
    beyond="Reshape",
    rank=4,
    min_opset=11,
    sole_use=True,
    aliases="ReshapeSpaceToDepth",
)
def reshape_depth_to_space(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Transpose(Reshape(x, (n, b, b, c, h, w)), (0, 3, 4, 1, 5, 2)), (n, c, h*b, w*b)) ->
    DepthToSpace(x, b), which torch calls pixel_shuffle.

    1. The channels may come first, (n, c, b, b, h, w): the mode is CRD.
    2. Reshape(Transpose(Reshape(x, (n, c, h, b, w, b)), (0, 3, 5, 1, 2, 4)), (n, b*b*c, h, w)) ->
       SpaceToDepth(x, b). The channels may be in another order, as those of pixel_unshuffle:
       Gather(SpaceToDepth(x, b), order, axis=1).
    3. The channels may be last in the result, as Keras has them: Transpose(DepthToSpace(x, b)),
       0.56 to 0.81 of the time.
    """
    x, factors, perm, fits = _exchange(g, node)
    last = perm in _LAST_MODES
    mode = _LAST_MODES[perm] if last else _MODES.get(perm, "")
    deep = perm[:1] == (0,) and sorted(perm[1:4]) == [1, 3, 5] and perm[4:] == (2, 4)
    g.require(mode or deep, "the blocks are not moved by the operator")
    rows, columns = (perm[3 - last], perm[5 - last]) if mode else (3, 5)
    block, channels = factors[rows], factors[1]
    if not isinstance(block, int) or block < 2 or factors[columns] != block:
        g.refuse("the blocks are not known to be squares")
    plane = _SPACE_LAST if last else _SPACE
    same = fits(_DEPTH, plane) if mode else fits(plane, _DEPTH)
    g.require(same, "the dimensions are not those of blocks")
    op_type = "DepthToSpace" if mode else "SpaceToDepth"
    known = has_kernel(op_type, g.type_or_none(x), g.main_opset)
    g.require(known, "the operator has no kernel for this type")
    if mode:
        new = g.op.DepthToSpace(x, blocksize=block, mode=mode)
        return g.op.Transpose(new, perm=[0, 2, 3, 1]) if last else new
    new = g.op.SpaceToDepth(x, blocksize=block)
    if perm[1:4] == (3, 5, 1):
        return new
    if not isinstance(channels, int):
        g.refuse("the number of channels is not known")
    order = transposed_places((block, block, channels), [(3, 5, 1).index(p) for p in perm[1:4]])
    return reordered_channels(g, new, order.ravel(), 1)


@rewrite("default", root="Reshape", after="Transpose", beyond="Reshape", min_opset=5, sole_use=True)
def channel_shuffle(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Transpose(Reshape(x, (n, k, c, h, w)), (0, 2, 1, 3, 4)), (n, c * k, h, w)) ->
    Gather(x, (0, c, 1, c + 1, ...), axis=1), as ShuffleNet mixes groups.

    One dimension is cut, its parts change places, they are joined again. The dimensions after it
    are known, they hold at least 4 elements: Gather copies runs of them.
    """
    x, factors, perm, fits = _exchange(g, node)
    moving = [i for i, p in enumerate(perm) if i != p]
    g.require(moving, "nothing moves")
    begin, end = moving[0], moving[-1] + 1
    parts, inside = factors[begin:end], factors[end:]
    if not is_static(parts) or not is_static(inside):
        g.refuse("the dimensions that move, or those inside, are not known")
    require_fast(g, np.prod(inside) >= _RUN, "the runs of elements are too short")
    lengths = (*(1,) * begin, len(parts), *(1,) * len(inside))
    g.require(fits(lengths, lengths), "it is not one dimension that is cut and joined again")
    g.require(0 not in parts, "there is nothing to move")
    order = transposed_places(parts, [p - begin for p in perm[begin:end]])
    return g.op.Gather(x, order.ravel(), axis=begin)


def _exchange(
    g: RewriteContext, last: NodeProto
) -> tuple[str, Shape, Ints, Callable[[Ints, Ints], bool]]:
    """Reads Reshape, Transpose, Reshape: the input, the factors of its dimensions, how they move,
    and whether so many factors make each dimension before, and so many after."""
    middle = g.before(last, "Transpose")
    first = g.before(middle, "Reshape")
    x, unknown = first.input[0], "a shape is not known for every size"
    names = (first.output[0], last.output[0])
    factors, after = (g.known(moved_shape(g, name), unknown) for name in names)
    before = g.shape_of(x)
    perm = g.known(perm_of(g, middle, len(factors)), "the permutation is not known")

    def fits(cut: Ints, joined: Ints) -> bool:
        moved = [factors[p] for p in perm]
        same = proven_equal(g, _products(factors, cut), before)
        return same and proven_equal(g, _products(moved, joined), after)

    return x, factors, perm, fits


def _products(factors: Sequence[Dim], lengths: Ints) -> Shape:
    """Products of so many factors at a time."""
    left = iter(factors)
    return tuple(prod(islice(left, length)) for length in lengths)
