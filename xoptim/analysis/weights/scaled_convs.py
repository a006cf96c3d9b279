"""Convolutions whose result a node multiplies: the factor of their weight, groups that share
one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from ...authoring import DerivedConstant, RewriteContext
from ...authoring.deduction import Refusal
from ...authoring.queries import until_change
from ..arguments import optional_input
from .affine import AFFINE, Channels, affine_of, shift_name
from .weights import bias_of, new_constant

CONVOLUTIONS = ("Conv", "ConvTranspose")
NOT_STATIC = "the shape of the weight is not static"


class ScaledConv(NamedTuple):
    """A convolution and the affine node after it, equal to `Conv(x, weight * factor, bias)`.

    :param conv: the convolution
    :param node: the only reader of its result, one of :data:`.affine.AFFINE`
    :param factor: of the rank of the weight, or of rank 0
    :param bias: in a wider type than the one of the model
    :param named: the constant the bias is derived from
    :param size: number of channels of the result
    """

    conv: NodeProto
    node: NodeProto
    factor: np.ndarray
    bias: np.ndarray
    named: str
    size: int

    @property
    def scales(self) -> bool:
        """Whether the weight changes."""
        return bool((self.factor != 1).any())


def factor_along(factor: np.ndarray, shape: tuple[int, ...], group: int, axis: int) -> np.ndarray:
    """Numbers for the channels along an axis of the weight of a convolution, as its factor.

    :param factor: one number, or one for each channel
    :param shape: shape of the weight
    :param group: number of groups, each one has its own channels along the second axis
    :param axis: 0 or 1
    """
    if factor.ndim == 0:
        return factor
    columns = factor.reshape((-1, 1))
    if axis == 1:
        columns = np.repeat(factor.reshape((group, -1)), shape[0] // group, axis=0)
    return columns.reshape((*columns.shape, *(1,) * (len(shape) - 2)))


def new_bias(
    g: RewriteContext, conv: NodeProto, value: np.ndarray, name: str, size: int
) -> list[DerivedConstant]:
    """The bias of a convolution among its inputs; a null one is not written.

    :param conv: the convolution, whose weight has the type of the bias
    :param value: one number, or one for each channel, in a wider type
    :param name: the constant it is derived from
    :param size: number of channels of the result
    """
    if not value.any():
        return []
    return [new_constant(g, np.broadcast_to(value, (size,)), name, conv.input[1])]


def scaled_conv(g: RewriteContext, conv: NodeProto, node: NodeProto) -> ScaledConv:
    """Reads a convolution and the only reader of its result; refuses unless it is an affine
    function of it. The weight is not read."""
    result = conv.output[0]
    shape = g.static_shape(conv.input[1], NOT_STATIC)
    turned = conv.op_type == "ConvTranspose"
    group = g.get_attribute_with_default(conv, "group", 1)
    size = shape[1] * group if turned else shape[0]
    affine = affine_of(g, node, result, Channels(len(shape), 1, size))
    bias = np.asarray(bias_of(g, conv) * affine.scale + affine.shift)
    # the weight of a ConvTranspose is (inputs, outputs of a group, ...)
    factor = factor_along(affine.scale, shape, group, int(turned))
    named = optional_input(conv, 2) or shift_name(node, result)
    return ScaledConv(conv, node, factor, bias, named, size)


def convs_sharing_weight(g: RewriteContext, row: ScaledConv) -> list[ScaledConv]:
    """The convolutions of a graph that share a weight and multiply it by the same factor.

    The new weight is shared as well: the file does not grow if nothing else reads the old one.
    Refuses all but the first one: all of them are folded with it.

    Cost: O(readers of the weight) for all of them, in each generation of the graph.
    """
    weight = row.conv.input[1]
    if not g.is_used_more_than_once(weight):
        return [row]
    known = until_change(g, _Groups)
    if weight not in known:
        known[weight] = _groups(g, weight)
    rows = known[weight].get(_key(row), [row])
    first = rows[0].node.output[0] == row.node.output[0]
    g.require(first, "it is folded with another convolution that shares the weight")
    for other in rows[1:]:
        g.look_at(other.conv, other.node)
    return rows


class _Groups(dict[str, dict[Hashable, list[ScaledConv]]]):
    """The convolutions reading each weight, by factor."""


def _key(row: ScaledConv) -> Hashable:
    return row.factor.shape, row.factor.tobytes()


def _groups(g: RewriteContext, weight: str) -> dict[Hashable, list[ScaledConv]]:
    """The convolutions that read a weight and whose result is multiplied, in graph order."""
    groups: dict[Hashable, list[ScaledConv]] = {}
    visited = g.visited[:]
    for record in sorted(g.store.readers(weight), key=lambda r: r.order):
        row = _scaled(g, record, weight)
        if row is not None and row.scales:
            groups.setdefault(_key(row), []).append(row)
    g.visited[:] = visited  # the rewrite does not depend on all the visited nodes
    return groups


def _scaled(g: RewriteContext, record: NodeRecord, weight: str) -> ScaledConv | None:
    """One reader of a weight, None if it is not a convolution which is multiplied."""
    inside = weight in record.captured or record.inputs.count(weight) != 1
    if record.domain or record.op_type not in CONVOLUTIONS or inside or record.inputs[1] != weight:
        return None
    conv = g.store.proto(record)
    node = g.after_or_none(conv, *AFFINE)
    try:
        return None if node is None else scaled_conv(g, conv, node)
    except Refusal:
        return None
