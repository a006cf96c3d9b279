"""DepthToSpace and SpaceToDepth written as Reshape, Transpose, Reshape."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape, mul, prod
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.constants import Ints
from ...analysis.permutations import perm_of
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .space_to_depth import in_order

#: permutation -> mode of DepthToSpace, the order of the channels
_MODES: dict[Ints, str] = {(0, 3, 4, 1, 5, 2): "DCR", (0, 1, 4, 2, 5, 3): "CRD"}


@rewrite("default", root="Reshape", after="Transpose", min_opset=11, sole_use=True)
def reshape_depth_to_space(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Transpose(Reshape(x, (n, b, b, c, h, w)), (0, 3, 4, 1, 5, 2)), (n, c, h*b, w*b)) ->
    DepthToSpace(x, b), which torch calls pixel_shuffle.

    The channels may come first, (n, c, b, b, h, w): the mode is CRD.
    """
    x, before, middle, perm, after = _exchange(g, node)
    mode = g.known(_MODES.get(perm), "the blocks are not moved by the operator")
    block = middle[perm[3]]
    if not isinstance(block, int) or block < 2 or middle[perm[5]] != block:
        g.refuse("the blocks are not known to be squares")
    split = (before[0], *middle[1:4], *before[2:])
    joined = (before[0], middle[perm[1]], *(mul(d, block) for d in before[2:]))
    same = proven_equal(g, split, middle) and proven_equal(g, joined, after)
    same = same and proven_equal(g, (prod(middle[1:4]),), before[1:2])
    g.require(same, "the dimensions are not those of blocks")
    _require_kernel(g, "DepthToSpace", x)
    return g.op.DepthToSpace(x, blocksize=block, mode=mode)


@rewrite("default", root="Reshape", after="Transpose", min_opset=11, sole_use=True)
def reshape_space_to_depth(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Transpose(Reshape(x, (n, c, h, b, w, b)), (0, 3, 5, 1, 2, 4)), (n, b*b*c, h, w)) ->
    SpaceToDepth(x, b).

    The channels may be in another order, as those of pixel_unshuffle:
    Gather(SpaceToDepth(x, b), order, axis=1).
    """
    x, before, middle, perm, after = _exchange(g, node)
    moved = perm[0] == 0 and sorted(perm[1:4]) == [1, 3, 5] and perm[4:] == (2, 4)
    g.require(moved, "the blocks are not moved by the operator")
    block, channels = middle[3], middle[1]
    if not isinstance(block, int) or block < 2 or middle[5] != block:
        g.refuse("the blocks are not known to be squares")
    whole = (*middle[:2], mul(middle[2], block), mul(middle[4], block))
    joined = (before[0], mul(channels, block * block), middle[2], middle[4])
    same = proven_equal(g, whole, before) and proven_equal(g, joined, after)
    g.require(same, "the dimensions are not those of blocks")
    _require_kernel(g, "SpaceToDepth", x)
    new = g.op.SpaceToDepth(x, blocksize=block)
    if perm[1:4] == (3, 5, 1):
        return new
    if not isinstance(channels, int):
        g.refuse("the number of channels is not known")
    places = np.arange(block * block * channels).reshape((block, block, channels))
    order = places.transpose([(3, 5, 1).index(p) for p in perm[1:4]])
    return in_order(g, new, order.ravel(), 1)


def _exchange(g: RewriteContext, last: NodeProto) -> tuple[str, Shape, Shape, Ints, Shape]:
    """Reads Reshape to six dimensions, Transpose, Reshape to four: the input, its shape, the six
    dimensions, the permutation, the last four dimensions."""
    middle = g.before(last, "Transpose")
    first = g.before(middle, "Reshape")
    x, unknown = first.input[0], "a shape is not known for every size"
    names = (first.output[0], last.output[0])
    six, four = (g.known(moved_shape(g, name), unknown) for name in names)
    before = g.shape_of(x)
    blocks = (len(before), len(six), len(four)) == (4, 6, 4)
    g.require(blocks, "there are no blocks of rows and columns")
    return x, before, six, g.known(perm_of(g, middle), "the permutation is not known"), four


def _require_kernel(g: RewriteContext, op_type: str, x: str) -> None:
    known = has_kernel(op_type, g.type_or_none(x), g.main_opset)
    g.require(known, "the operator has no kernel for this type")
