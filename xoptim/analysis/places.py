"""Places of elements: what 0, 1, 2, ... become through nodes that only move elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import NodeProto

from ..authoring import RewriteContext
from .axes import axis_of, cuts_of
from .permutations import perm_of

#: start, end and step
Interval = tuple[int, int, int]

#: ends that onnxruntime reads as none, even for a negative step
_NO_END = (np.iinfo(np.int32).max, np.iinfo(np.int64).max)


def moved_places(g: RewriteContext, places: np.ndarray, *nodes: NodeProto) -> np.ndarray:
    """The place each element of a result had before a move; refuses if it is not known.

    1. a Transpose;
    2. a Reshape to a known shape;
    3. a Slice whose bounds are constant;
    4. a Split and a Concat of all its parts, along the same axis: a roll.

    :param places: an integer for each element of the input, of the same rank
    :param nodes: one node, or both nodes of a roll
    """
    node = nodes[0]
    if node.op_type == "Transpose":
        perm = perm_of(g, node, places.ndim)
        return places.transpose(g.known(perm, "the permutation is not known"))
    if node.op_type == "Reshape":
        shape = g.static_shape(node.output[0], "a shape is not constant")
        g.require(0 < places.size == prod(shape), "a shape is not that of every element")
        return places.reshape(shape)
    if node.op_type == "Slice":
        for axis, interval in intervals_of(g, node, places.ndim).items():
            kept = kept_positions(range(places.shape[axis]), interval)
            places = np.take(places, g.known(kept, "what a Slice keeps is not known"), axis=axis)
        return places
    split, concat = nodes
    axis = g.known(axis_of(g, split, places.ndim), "the axis is not known")
    ends = np.cumsum([length_along(g, name, axis) for name in split.output])
    parts = dict(zip(split.output, np.split(places, ends[:-1], axis), strict=True))
    return np.concatenate([parts[name] for name in concat.input], axis)


def transposed_places(dims: Sequence[int], perm: Sequence[int]) -> np.ndarray:
    """The place each element of a transposed tensor had before.

    :param dims: shape of the tensor
    :param perm: the permutation

    >>> transposed_places((2, 3), (1, 0)).ravel()
    array([0, 3, 1, 4, 2, 5])
    """
    return np.arange(prod(dims)).reshape(dims).transpose(perm)


def length_along(g: RewriteContext, name: str, axis: int) -> int:
    """The length of a part along an axis; refuses if it is not known.

    :param name: the part
    :param axis: the axis
    """
    dim = g.shape_of(name)[axis]
    return dim if isinstance(dim, int) else g.refuse("the length of a part is not known")


def intervals_of(g: RewriteContext, node: NodeProto, rank: int | None) -> dict[int, Interval]:
    """Start, end and step along each axis; refuses if they are not constant.

    :param node: a Slice whose arguments are inputs
    :param rank: rank of the sliced tensor
    """
    return g.known(
        cuts_of(g, node, rank), "the bounds are not constant, or the axes of a Slice are not known"
    )


def kept_positions(positions: range, interval: Interval) -> range | None:
    """The positions a Slice keeps; None for a null step, and for a negative one from a start before
    the first position, or to the largest integer: onnxruntime moves the start to this position, and
    does not stop, Python takes nothing.

    :param positions: the positions before the Slice
    :param interval: start, end and step

    >>> kept_positions(range(4), (-1, -9, -2)), kept_positions(range(4), (-9, -9, -1))
    (range(3, -1, -2), None)
    """
    start, end, step = interval
    if not step or (step < 0 and (start < -len(positions) or end in _NO_END)):
        return None
    return positions[slice(*interval)]
