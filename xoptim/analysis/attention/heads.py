"""Heads of an attention: which axis they are on, and how a model moves and repeats them."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from ...authoring.context import RewriteContext
from ...authoring.right_side import Operand
from ..axes import axes_of, axis_of
from ..constants import Ints, int_values
from ..permutations import perm_of
from ..shapes import proven_equal

#: (batch, sequence, heads, length) to (batch, heads, sequence, length), and back
SWAPPED = (0, 2, 1, 3)
#: the same axes, then the last two are swapped
SWAPPED_KEYS = (0, 2, 3, 1)
#: the axis of the heads, as Squeeze and Unsqueeze write it
HEAD_AXES = ((1,), (-3,))
#: the last two axes are swapped
KEYS = (0, 1, 3, 2)


def transposed(g: RewriteContext, name: str, perm: Ints) -> str | None:
    """The input of the Transpose that produces a result with this permutation, None otherwise.

    :param g: the rewrite, which visits the Transpose
    :param name: the result
    :param perm: the permutation
    """
    node = g.producer_or_none(name, "Transpose")
    if node is None or perm_of(g, node) != perm:
        return None
    g.look_at(node)
    return str(node.input[0])


def repeated(g: RewriteContext, name: str) -> str | None:
    """The heads that Unsqueeze(axis 2), Expand, Reshape repeat for consecutive queries, or one
    Gather; a Squeeze stands for the Reshape if there is one head.

    `(batch, heads, sequence, length)` becomes `(batch, heads * n, sequence, length)`, both numbers
    of heads are known. None for any other result.

    :param g: the rewrite, which visits these nodes
    :param name: the result
    """
    gather = g.producer_or_none(name, "Gather")
    if gather is not None:
        return _gathered(g, gather)
    chain: list[NodeProto] = []
    for op_types in (("Reshape", "Squeeze"), ("Expand",), ("Unsqueeze",)):
        node = g.producer_or_none(chain[-1].input[0] if chain else name, *op_types)
        if node is None:
            return None
        chain.append(node)
    source = chain[-1].input[0]
    names = (source, chain[1].output[0], name)
    shapes = [g.shape_or_none(n) for n in names]
    if any(s is None for s in shapes):
        return None
    before, wide, after = (tuple(s or ()) for s in shapes)
    if (len(before), len(wide), len(after)) != (4, 5, 4) or not isinstance(before[1], int):
        return None
    if not isinstance(wide[2], int) or before[1] * wide[2] != after[1]:
        return None
    new_axis = axes_of(g, chain[-1]) in ((2,), (-3,))
    spread = proven_equal(g, wide, (*before[:2], wide[2], *before[2:]))
    joined = proven_equal(g, after, (before[0], before[1] * wide[2], *before[2:]))
    if not (new_axis and spread and joined):
        return None
    g.look_at(*chain)
    return str(source)


def each_repeated(g: RewriteContext, *names: str) -> list[str]:
    """The heads of keys and of values, before each is repeated, see :func:`repeated`; refuses other
    results, or if there are not as many of both."""
    sources = [g.known(repeated(g, name), "a head is not repeated") for name in names]
    counts = {g.shape_of(name)[1] for name in sources}
    g.require(len(counts) == 1, "keys and values do not have as many heads")
    return sources


def _gathered(g: RewriteContext, node: NodeProto) -> str | None:
    """The heads a Gather reads as many times, one after the other."""
    shape, rows = g.shape_or_none(node.input[0]), int_values(g, node.input[1])
    if not rows or shape is None or len(shape) != 4 or axis_of(g, node, 4) != 1:
        return None
    count = shape[1]
    if not isinstance(count, int) or count < 1 or len(rows) % count:
        return None
    times = len(rows) // count
    if rows != tuple(i // times for i in range(len(rows))):
        return None
    g.look_at(node)
    return str(node.input[0])


@dataclass(frozen=True, slots=True)
class Heads:
    """Queries, keys or values, of shape (batch, heads, sequence, length).

    :param name: the result, empty when only *moved* exists
    :param moved: (batch, sequence, heads, length), empty when no Transpose produces the result
    :param count: number of heads
    :param length: elements of each
    :param alone: (batch, sequence, length), when an Unsqueeze turns it into one head
    """

    name: str
    moved: str
    count: int
    length: int
    alone: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether the heads are moved from a sequence."""
        return self.moved != "" or self.alone != ""

    def flat(self, g: RewriteContext) -> Operand:
        """The heads side by side, (batch, sequence, heads * length)."""
        if self.alone:
            return self.alone
        moved = self.moved or g.op.Transpose(self.name, perm=list(SWAPPED))
        return g.op.Reshape(moved, [0, 0, self.count * self.length])

    def split(self, g: RewriteContext) -> Operand:
        """The heads, (batch, heads, sequence, length)."""
        if self.alone:
            return self.name or g.op.Unsqueeze(self.alone, [1])
        return self.name or g.op.Transpose(self.moved, perm=list(SWAPPED))


def heads_of(g: RewriteContext, name: str, keys: bool = False) -> Heads:
    """Reads the heads of a result; refuses when their number or their length is not known.

    :param name: the result
    :param keys: the last two axes are swapped
    """
    shape = g.shape_of(name)
    count, length = shape[1], shape[2] if keys else shape[3]
    if not isinstance(count, int) or not isinstance(length, int) or count < 1 or length < 1:
        g.refuse("the heads are not known")
    alone = _alone(g, name, keys) if count == 1 else ""
    if alone:
        return Heads("" if keys else name, "", 1, length, alone)
    if not keys:
        return Heads(name, transposed(g, name, SWAPPED) or "", count, length)
    moved = transposed(g, name, SWAPPED_KEYS)
    if moved is not None:
        return Heads("", moved, count, length)
    plain = g.known(transposed(g, name, KEYS), "the keys are not transposed")
    return Heads(plain, transposed(g, plain, SWAPPED) or "", count, length)


def _alone(g: RewriteContext, name: str, keys: bool) -> str:
    """The sequence an Unsqueeze turns into one head, before the Transpose of keys; empty if there
    is none."""
    node = g.producer_or_none(name, "Unsqueeze")
    if node is None or axes_of(g, node) not in HEAD_AXES:
        return ""
    source = transposed(g, node.input[0], (0, 2, 1)) if keys else str(node.input[0])
    g.look_at(node if source else None)
    return source or ""
