"""Reorders a constant weight instead of transposing parts of the rows it multiplies or produces."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import other_input
from ...analysis.constants import Ints
from ...analysis.permutations import perm_of
from ...analysis.places import transposed_places
from ...analysis.shapes import proven_equal
from ...analysis.weights.weights import ordered_weight, require_weight
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


def _moved_parts(g: RewriteContext, move: NodeProto, row: str) -> tuple[Ints, np.ndarray]:
    """Dimensions of the parts of a row after the move, and the element of the row each one is.

    Refuses unless the Transpose moves known dimensions that come from the last one of *row*, or
    that are joined in it, and leaves the others.

    :param move: the Transpose
    :param row: the result whose last dimension is made of parts
    """
    whole = g.shape_of(row)
    first = len(whole) - 1
    perm = g.known(perm_of(g, move), "the permutation is not known")
    g.require(perm[:first] == tuple(range(first)), "another dimension is moved")
    shape = g.shape_of(move.input[0])
    parts = tuple(d for d in shape[first:] if isinstance(d, int) and d > 0)
    known = first >= 0 and len(parts) == len(shape) - first and math.prod(parts) == whole[-1]
    g.require(known, "the parts of the last dimension are not known")
    g.require(proven_equal(g, shape[:first], whole[:first]), "another dimension is reshaped")
    axes = [p - first for p in perm[first:]]
    order = transposed_places(parts, axes)
    return order.shape, order.reshape(-1)


def _matrix(g: RewriteContext, product: NodeProto) -> str:
    """The weight of a product, a constant matrix that can be replaced."""
    weight = str(product.input[1])
    known = g.known(g.get_constant_shape(weight), "the weight is not a constant")
    g.require(len(known) == 2, "the weight is not a matrix")
    require_weight(g, weight)
    return weight


@rewrite(
    "default",
    root="Transpose",
    after="Reshape",
    beyond=("Add", "MatMul"),
    priority="late",
    precision="rounding",
)
def columns_transpose(g: RewriteContext, move: NodeProto) -> NewNode:
    """Transpose(Reshape(x @ w + b)) -> Reshape(x @ w' + b'), the columns of w' are those of w in
    another order.

    1. The Reshape splits the last dimension of the product in known parts, the Transpose moves them
       and nothing else;
    2. w is a constant matrix that nothing else reads, there may be a bias, a constant vector;
    3. nothing else reads the inner results.
    """
    reshape = g.before(move, "Reshape")
    row = source = str(reshape.input[0])
    dims, order = _moved_parts(g, move, row)
    chain = [reshape, move]
    add = g.before_or_none(row, "Add")
    bias = None if add is None else next(filter(g.is_constant, add.input), None)
    if add is not None and bias is not None:
        source = other_input(add, bias)
        chain.insert(0, add)
    product = g.before(source, "MatMul")
    for node, reader in pairwise([product, *chain]):
        g.require(g.is_used_only_by(node.output[0], reader), "an inner result is used elsewhere")
    weight = _matrix(g, product)
    new: NewNode = g.like(product, product.input[0], ordered_weight(g, weight, 1, order))
    if bias is not None:
        values = g.constant_of(bias)
        g.require(values.shape == (len(order),), "the bias is not a vector")
        new = g.op.Add(new, values[order])
    return g.op.Reshape(new, [*[0] * (len(g.shape_of(row)) - 1), *dims])


@rewrite("default", root="MatMul", after="Reshape", priority="late", precision="rounding")
def rows_transpose(g: RewriteContext, product: NodeProto) -> NewNode:
    """Reshape(Transpose(x)) @ w -> Reshape(x) @ w', the rows of w' are those of w in another order.

    1. The Reshape joins known dimensions in the last one, the Transpose moves them and nothing
       else;
    2. w is a constant matrix that nothing else reads;
    3. nothing else reads the inner results.
    """
    reshape = g.before(product, "Reshape")
    move = g.before(reshape, "Transpose")
    row = reshape.output[0]
    _, order = _moved_parts(g, move, row)
    for node, reader in pairwise([move, reshape, product]):
        g.require(g.is_used_only_by(node.output[0], reader), "an inner result is used elsewhere")
    weight = _matrix(g, product)
    flat = g.op.Reshape(move.input[0], [*[0] * (len(g.shape_of(row)) - 1), len(order)])
    return g.like(product, flat, ordered_weight(g, weight, 0, np.argsort(order)))
