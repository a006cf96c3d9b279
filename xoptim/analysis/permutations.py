"""Permutations of axes: read in a Transpose, composed, inverted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from onnx import NodeProto

from xbuilder.nodes.attributes import find_attribute

from ..authoring.queries import GraphQueries
from .constants import Ints


def perm_of(g: GraphQueries, node: NodeProto, rank: int | None = None) -> Ints | None:
    """Permutation of a Transpose; a missing one reverses the axes, which needs the rank.

    :param node: the Transpose
    :param rank: number of dimensions if the caller knows it, otherwise facts are used
    """
    att = find_attribute(node, "perm")
    if att is not None:
        perm = tuple(att.ints[:])
        return perm if not att.ref_attr_name and _is_permutation(perm) else None
    if rank is None:
        rank = g.rank_or_none(node.input[0])
    return None if rank is None else tuple(range(rank - 1, -1, -1))


@lru_cache(maxsize=1 << 10)
def _is_permutation(perm: Ints) -> bool:
    """Whether every axis is there exactly once."""
    return sorted(perm) == list(range(len(perm)))


def is_identity(perm: Sequence[int]) -> bool:
    """Whether a permutation moves nothing."""
    return list(perm) == list(range(len(perm)))


def compose(first: Sequence[int], second: Sequence[int]) -> Ints:
    """Permutation of `Transpose(Transpose(x, first), second)`."""
    return tuple(first[p] for p in second)


def inverse(perm: Sequence[int]) -> Ints:
    """Permutation that cancels another one: the new place of each axis of the input."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)
