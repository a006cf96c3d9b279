"""Attention with heads merged in the batch, three dimensions between two Reshape: written with
four."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, mul

from ...analysis.arguments import other_input
from ...analysis.attention.heads import KEYS
from ...analysis.axes import axis_of
from ...analysis.constants import scalar_constant
from ...analysis.permutations import perm_of
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

_TERMS = ("Add", "Sub")
_FACTORS = ("Mul", "Div")
_FOLLOWED = ("MatMul", "Softmax", "Transpose", *_TERMS, *_FACTORS)
#: most nodes between the heads and the Reshape back to four dimensions
_MOST = 12


@rewrite(
    "default",
    root="Reshape",
    after=("MatMul", "Softmax", *_TERMS, *_FACTORS),
    rank=4,
    min_opset=15,
)
def heads_of_batch(g: RewriteContext, last: NodeProto) -> dict[str, str | NewNode]:
    """Reshape(f(Reshape(A), Reshape(B))) -> f(A, B), f being an attention or its scores.

    1. every Reshape keeps the last two dimensions, (batch, heads, n, m) becomes
       (batch * heads, n, m) and back;
    2. f multiplies matrices, at least two of them reshaped, swaps their axes, multiplies by
       constants, adds operands that may be broadcast, takes Softmax of the last axis; nothing else
       reads its inner results;
    3. an added operand without heads yet (ALiBi) is reshaped to them.

    The other patterns of attention expect four dimensions.
    """
    record = g.record(last)
    name = record.inputs[0]
    inside, outside = g.shape_of(name), g.shape_of(record.outputs[0])
    # the last dimension, first: it is the one that refuses most nodes
    split = (
        len(inside) == 3 and len(outside) == 4 and proven_equal(g, inside[:0:-1], outside[:1:-1])
    )
    g.require(split, "it does not make heads of a batch")
    made = proven_equal(g, inside[:1], (mul(*outside[:2]),))
    g.require(made, "the batch may not be the one of the heads")
    heads = _Heads(g, outside[:2], inside[0])
    new = heads.split(name)
    if new is None:
        g.refuse("it is not computed from heads")
    g.require(len(heads.sources) >= 2, "there are not two operands made of heads")
    return {str(last.output[0]): new}


class _Heads:
    """Results of shape (batch * heads, n, m) as (batch, heads, n, m).

    :param lead: batch, heads
    :param batch: their product
    """

    def __init__(self, g: RewriteContext, lead: Shape, batch: Dim):
        self._g, self._lead, self._batch = g, lead, batch
        self._left = _MOST
        #: results of four dimensions
        self.sources: list[str] = []

    def split(self, name: str) -> str | NewNode | None:
        """A result computed from heads, with four dimensions; None if it is not."""
        g = self._g
        source = self._source(name)
        if source:
            self.sources.append(source)
            return source
        node = g.producer_or_none(name, *_FOLLOWED)
        self._left -= 1
        if node is None or self._left < 0 or g.is_used_more_than_once(name):
            return None
        g.look_at(node)
        if node.op_type == "MatMul":
            both = [self.split(n) for n in node.input if self._has_batch(n)]
            return g.like(node, *both) if len(both) == 2 and None not in both else None
        if node.op_type in _TERMS:
            return self._sum(node)
        return self._alone(node)

    def _alone(self, node: NodeProto) -> NewNode | None:
        """An operator of one operand, along the last two axes, or with a scalar."""
        g, name = self._g, str(node.input[0])
        if node.op_type == "Softmax":
            x = self.split(name) if axis_of(g, node, 3, None) == 2 else None
            return None if x is None else g.like(node, x, axis=3)
        if node.op_type == "Transpose":
            x = self.split(name) if perm_of(g, node) == (0, 2, 1) else None
            return None if x is None else g.op.Transpose(x, perm=list(KEYS))
        for source in node.input if node.op_type == "Mul" else node.input[:1]:
            other = other_input(node, source)
            if scalar_constant(g, other, 3) is not None:
                x = self.split(source)
                return None if x is None else g.rewired(node, {source: x})
        return None

    def _sum(self, node: NodeProto) -> NewNode | None:
        """An addition where at least one operand is computed from heads."""
        g = self._g
        names = [name for name in node.input if self._has_batch(name)]
        split = [self.split(name) for name in names]
        if not any(split):
            return None
        split_names = {n: x or self._reshaped(n) for n, x in zip(names, split, strict=True)}
        broadcast = [name for name in node.input if name not in split_names]
        shapes = [g.shape_or_none(name) for name in broadcast]
        if any(
            shape is None or (len(shape) == 3 and shape[0] != 1) or len(shape) > 3
            for shape in shapes
        ):
            return None
        return g.rewired(node, split_names)

    def _has_batch(self, name: str) -> bool:
        shape = self._g.shape_or_none(name)
        return (
            shape is not None
            and len(shape) == 3
            and proven_equal(self._g, shape[:1], (self._batch,))
        )

    def _source(self, name: str) -> str:
        """The heads a Reshape merges in the batch, empty if there is none."""
        g = self._g
        node = g.producer_or_none(name, "Reshape")
        before = None if node is None else g.shape_or_none(node.input[0])
        after = None if node is None else g.shape_or_none(name)
        if node is None or before is None or after is None or len(before) != 4 or len(after) != 3:
            return ""
        same = proven_equal(g, before, (*self._lead, *after[1:]))
        return str(node.input[0]) if same and self._has_batch(name) else ""

    def _reshaped(self, name: str) -> NewNode:
        """A result without heads, reshaped to have some."""
        g = self._g
        shape = (*self._lead, *g.shape_of(name)[1:])
        known = [d for d in shape if isinstance(d, int)]
        if len(known) == 4 and all(known):
            return g.op.Reshape(name, known)
        lead, rest = g.op.Shape(self.sources[0], end=2), g.op.Shape(name, start=1)
        return g.op.Reshape(name, g.op.Concat(lead, rest, axis=0), allowzero=1)
