"""Moves a scalar factor of queries to the constant weights they are computed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from onnx import NodeProto

from xbuilder.dims import is_static
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.domains import MICROSOFT

from ...authoring import DerivedConstant, RewriteContext
from ...authoring.outlining import INTERMEDIATE
from ...authoring.right_side import NewNode, Operand, Replacement
from ..arguments import other_input
from ..axes import axis_of
from ..constants import is_cheap
from ..permutations import perm_of
from ..weights.affine import wide
from ..weights.weights import is_scalable_product, rounded
from .magnitudes import NORMALIZATIONS
from .rotary import HALF_ROTARY, INTERLEAVED_ROTARY

#: linear functions of their first input: they move elements, or rotate pairs of them
_LINEAR = frozenset(
    (
        ("", "Neg"),
        ("", "Reshape"),
        ("", "RotaryEmbedding"),
        ("", "Slice"),
        ("", "Split"),
        ("", "Squeeze"),
        ("", "Transpose"),
        ("", "Unsqueeze"),
        (INTERMEDIATE, HALF_ROTARY),
        (INTERMEDIATE, INTERLEAVED_ROTARY),
        (MICROSOFT, "RotaryEmbedding"),
    )
)
#: most nodes between the queries and the weights
_MOST = 16
ELSEWHERE = "an inner result is used elsewhere"
NOTHING = "nothing takes the scale"


def scaled_source(
    g: RewriteContext, name: str, reader: NodeProto, factor: float
) -> tuple[Operand, dict[str, Replacement]]:
    """Multiplies constant weights by *factor*, so that a result computed from them is multiplied as
    well. The multiplied results are new: a name keeps its value.

    1. between them, nodes are linear in the multiplied operand and have no other use: Reshape,
       Transpose, Split and Concat, rotary embeddings;
    2. the weights are those of MatMul, Gemm, of both and a bias, of a normalization, or a constant
       factor;
    3. the result may be some of the columns: only these columns are multiplied.

    :param name: the result
    :param reader: the node that reads it
    :param factor: a finite number, not null
    :return: the multiplied result, and replacements of results that keep their values
    """
    return _Walk(g, factor, name, g.record(reader), {name}).multiplied()


@dataclass(slots=True)
class _Walk:
    """Walks back from a result, which one node reads, to the weights. `inside` are the visited
    nodes, `waiting` the results to multiply, `others` the parts of a Split that keep their
    values."""

    g: RewriteContext
    factor: float
    result: str
    reader: NodeRecord
    waiting: set[str]
    inside: set[int] = field(default_factory=set)
    seen: list[NodeRecord] = field(default_factory=list)
    others: frozenset[str] = frozenset()

    def multiplied(self) -> tuple[Operand, dict[str, Replacement]]:
        """See :func:`scaled_source`."""
        g = self.g
        for _ in range(_MOST):
            record = self._last()
            g.require(
                all(map(self._is_inner, self.waiting.intersection(record.outputs))), ELSEWHERE
            )
            node = g.store.proto(record)
            if self.waiting == {record.outputs[0]}:
                found = _sink(g, node, self.factor)
                if found is not None:
                    return self._written(node, found)
            if record.key == ("", "Split") and not self._takes_all(record):
                return self._columns(node)
            self._go_before(record, node)
        return g.refuse(NOTHING)

    def _last(self) -> NodeRecord:
        """The last node, in graph order, that produces one of the results."""
        records = [self.g.store.producers.get(name) for name in self.waiting]
        known = [r for r in records if r is not None]
        self.g.require(len(known) == len(records), NOTHING)
        return max(known, key=lambda r: r.order)

    def _is_inner(self, name: str) -> bool:
        """Whether only visited nodes read a result; the reader of the first one may read another
        one as well."""
        store = self.g.store
        if name in store.outputs or name in store.captures:
            return False
        allowed = {id(self.reader)} if name == self.result else self.inside
        return all(id(r) in allowed for r in store.readers(name))

    def _takes_all(self, record: NodeRecord) -> bool:
        """Whether every part of a Split is multiplied, or unused."""
        others = (n for n in record.outputs if n and n not in self.waiting)
        return not any(map(self.g.is_used, others))

    def _go_before(self, record: NodeRecord, node: NodeProto) -> None:
        """Multiplies the operands of a node instead of its results."""
        g = self.g
        self.inside.add(id(record))
        self.seen.append(record)
        self.waiting.difference_update(record.outputs)
        if record.key == ("", "Concat"):
            self.waiting.update(node.input)
            return
        g.require(record.key in _LINEAR, NOTHING)
        g.require(node.input[0] not in node.input[1:], NOTHING)
        self.waiting.add(node.input[0])

    def _written(self, source: NodeProto, value: NewNode) -> tuple[Operand, dict[str, Replacement]]:
        """Writes the visited nodes again, after the new value of the first result of a node."""
        g = self.g
        new: dict[str, Operand] = {source.output[0]: value}
        kept: dict[str, Replacement] = {}
        g.look_at(source)
        for record in reversed(self.seen):
            node = g.store.proto(record)
            g.look_at(node)
            copy = g.rewired(node, new)
            for name, result in zip(node.output, copy, strict=True):
                if name in self.others:
                    kept[name] = result
                elif name:
                    new[name] = result
        return new[self.result], kept

    def _columns(self, split: NodeProto) -> tuple[Operand, dict[str, Replacement]]:
        """Multiplies parts of a Split that are columns of a product by weights, through reshaped
        rows and moved heads."""
        g = self.g
        g.require(self.waiting <= set(split.output), NOTHING)
        scales = _scales(g, split, self.waiting, self.factor)
        parts = (n for n in split.output if n and g.is_used(n))
        self.others = frozenset(parts).difference(self.waiting)
        self.seen.append(g.record(split))
        name = split.input[0]
        for _ in range(_MOST):
            g.require(not g.is_used_more_than_once(name), ELSEWHERE)
            node = g.producer_or_none(name, "Reshape", "Transpose")
            if node is None:
                break
            self.seen.append(g.record(node))
            scales = _before_move(g, node, scales)
            name = node.input[0]
        g.require(is_scalable_product(g, name), NOTHING)
        source = g.before(name)
        g.require(g.shape_of(name)[-1:] == scales.shape, "the Reshape does not keep the columns")
        return self._written(source, g.op.Mul(g.like(source, *source.input), scales))


def _sink(g: RewriteContext, node: NodeProto, factor: float) -> NewNode | None:
    """The result of a node multiplied by changing its constants, None if it has none."""
    name = node.output[0]
    if node.domain:
        return None
    if is_scalable_product(g, name):
        return g.op.Mul(g.like(node, *node.input), g.scalar(factor, name))
    # the scale of a normalization, and its bias if there is one, take the number
    if node.op_type in NORMALIZATIONS and not any(node.output[1:]):
        return g.like(node, node.input[0], *_times(g, node.input[1:], factor))
    if node.op_type == "Mul":
        constants = [n for n in node.input if is_cheap(g, n)]
        if len(constants) != 1:
            return None
        x = other_input(node, constants[0])
        return g.like(node, x, *_times(g, constants, factor))
    return None


def _times(g: RewriteContext, names: Sequence[str], factor: float) -> list[Operand]:
    """Small constants multiplied by a number."""
    cheap = all(is_cheap(g, n) for n in names)
    g.require(cheap, "the scale or the bias is not a small constant")
    values = [(g.constant_of(name), name) for name in names]
    return [DerivedConstant(rounded(g, wide(v) * factor, v.dtype), n) for v, n in values]


def _scales(g: RewriteContext, split: NodeProto, parts: set[str], factor: float) -> np.ndarray:
    """One number for each element of the axes a Split cuts, and of the next axes: the factor for
    the given parts, 1 for the others."""
    shape = g.shape_of(split.input[0])
    axis = g.known(axis_of(g, split, len(shape)), "the axis of the parts is not known")
    g.require(is_static(shape[axis:]), "the length of a part is not known")
    rows = []
    for name in split.output:
        dims = g.shape_of(name)[axis:]
        if not is_static(dims):
            g.refuse("the length of a part is not known")
        rows.append(np.full(dims, g.scalar(factor if name in parts else 1, split.input[0])))
    return np.concatenate(rows)


def _before_move(g: RewriteContext, node: NodeProto, scales: np.ndarray) -> np.ndarray:
    """The factors of the last axes before a Reshape or a Transpose, given those after it."""
    if node.op_type == "Transpose":
        perm = g.known(perm_of(g, node), "the permutation is not known")
        kept = range(len(perm) - scales.ndim, len(perm))
        g.require(perm[-scales.ndim :] == tuple(kept), "the parts are not columns")
        return scales
    before, after = (g.shape_of(name) for name in (node.input[0], node.output[0]))
    size = before[-1] if before else None
    for i in range(len(after) - scales.ndim, -1, -1):
        dims = after[i:]
        if not is_static(dims):
            break
        if prod(dims) == size:
            return np.broadcast_to(scales, dims).reshape(-1)
    return g.refuse("the Reshape does not keep the columns")
