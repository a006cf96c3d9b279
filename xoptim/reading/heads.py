"""Heads of an attention: which axis they are on, how they are moved."""

from __future__ import annotations

from ..api.context import RewriteContext
from .constants import Ints
from .neighbours import producer
from .permutations import perm_of

#: (batch, sequence, heads, length) to (batch, heads, sequence, length), and back
SWAPPED = (0, 2, 1, 3)


def transposed(g: RewriteContext, name: str, perm: Ints) -> str | None:
    """What a Transpose with some permutation moves to give a result, None if it is something else.

    :param g: the rewrite, it looks at the Transpose
    :param name: the result
    :param perm: the permutation
    """
    node = producer(g, name, "Transpose")
    if node is None or perm_of(g, node) != perm:
        return None
    g.look_at(node)
    return str(node.input[0])
