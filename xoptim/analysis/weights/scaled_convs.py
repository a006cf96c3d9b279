"""Convolutions whose result a node multiplies: the factor of their weight, groups that share
one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore

from ...authoring import RewriteContext
from ...authoring.deduction import Refusal
from ..arguments import optional_input
from .affine import AFFINE, Channels, affine_of, shift_name
from .weights import bias_of

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


def with_rank(factor: np.ndarray, rank: int) -> np.ndarray:
    """Appends dimensions 1 to the shape of a factor that is not a scalar."""
    return factor.reshape((*factor.shape, *(1,) * (rank - factor.ndim))) if factor.ndim else factor


def scaled_conv(g: RewriteContext, conv: NodeProto, node: NodeProto) -> ScaledConv:
    """Reads a convolution and the only reader of its result; refuses unless it is an affine
    function of it. The weight is not read."""
    result = conv.output[0]
    shape = g.static_shape(conv.input[1], NOT_STATIC)
    turned = conv.op_type == "ConvTranspose"
    group = g.get_attribute_with_default(conv, "group", 1)
    size = shape[1] * group if turned else shape[0]
    affine = affine_of(g, node, result, Channels(len(shape), 1, size))
    bias = np.asarray(bias_of(g, conv, 2) * affine.scale + affine.shift)
    factor = affine.scale
    if factor.ndim and turned:  # the weight is (inputs, outputs of a group, ...)
        factor = np.repeat(factor.reshape((group, -1)), shape[0] // group, axis=0)
    elif factor.ndim:
        factor = factor.reshape((-1, 1))
    named = optional_input(conv, 2) or shift_name(node, result)
    return ScaledConv(conv, node, with_rank(factor, len(shape)), bias, named, size)


def convs_sharing_weight(g: RewriteContext, row: ScaledConv) -> list[ScaledConv]:
    """The convolutions of a graph that share a weight and multiply it by the same factor.

    The new weight is shared as well: the file does not grow if nothing else reads the old one.
    Refuses all but the first one: all of them are folded with it.

    Cost: O(readers of the weight) for all of them, in each generation of the graph.
    """
    weight = row.conv.input[1]
    if not g.is_used_more_than_once(weight):
        return [row]
    known = g.shared.get(_Known)
    if known is None or known.store is not g.store or known.generation != g.store.generation:
        known = g.shared[_Known] = _Known(g.store, g.store.generation)
    if weight not in known.groups:
        known.groups[weight] = _groups(g, weight)
    rows: list[ScaledConv] = known.groups[weight].get(_key(row), [row])
    first = rows[0].node.output[0] == row.node.output[0]
    g.require(first, "it is folded with another convolution that shares the weight")
    for other in rows[1:]:
        g.look_at(other.conv, other.node)
    return rows


@dataclass(slots=True)
class _Known:
    """The convolutions reading each weight in one generation of a graph, by factor."""

    store: GraphStore
    generation: int
    groups: dict[str, dict[Hashable, list[ScaledConv]]] = field(default_factory=dict)


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
