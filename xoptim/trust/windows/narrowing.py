"""Narrow windows: the same nodes on a few rows of their weights and of their inputs."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable
from dataclasses import replace

import numpy as np

from xbuilder.dims import Dim
from xbuilder.facts.facts import ResultFacts

from .axis_links import AxisLinks, Place, link_nodes
from .window import Window

#: elements of the weights and of the static inputs above which a window is made narrow
_LARGE = 1 << 15
#: rows that are kept of an axis: the first one, the last one, others at random
KEPT = 16


def narrow_window(window: Window) -> Window | None:
    """A window with the same nodes, whose weights and inputs are shorter.

    An axis is cut when its rows meet no other row but those of the same position, in all nodes: the
    channels a convolution gives, the columns of a matrix, every axis of an element by element
    operator. Weights are sampled at the same rows wherever they meet.

    :return: the narrow window, None when this one is small or when nothing can be cut
    """
    if _elements(window) < _LARGE:
        return None
    links = AxisLinks({name: window.facts_of(name).shape for name in _names(window)})
    for side in window.sides():
        link_nodes(side, links, window.constants)
    lengths = _cut_lengths(links, set(window.reads()))
    known, constants = dict(window.known), dict(window.constants)
    for name in dict.fromkeys([*window.reads(), *window.results] if lengths else ()):
        shape = links.shapes.get(name) or ()
        cut = {a: lengths[name, a] for a in range(len(shape)) if (name, a) in lengths}
        if not cut:
            continue
        facts = window.facts_of(name)
        if name in constants:
            constants[name] = _rows_of(constants[name], cut)
        if any(shape[axis] != size for axis, size in cut.items()):
            known[name] = ResultFacts(facts.type, rank=len(shape))  # its length follows another one
        else:
            dims = tuple(KEPT if axis in cut else d for axis, d in enumerate(shape))
            known[name] = ResultFacts(facts.type, dims)
    return replace(window, known=known, constants=constants) if lengths else None


def _cut_lengths(links: AxisLinks, given: Container[str]) -> dict[Place, Dim]:
    """The axes that are cut, with the length of those of their group that are inputs or weights."""
    found: dict[Place, Dim] = {}
    for group in links.groups():
        sizes = {links.size(place) for place in group if place[0] in given}
        size = sizes.pop() if len(sizes) == 1 else 0
        if isinstance(size, int) and size > KEPT:
            found.update(dict.fromkeys(group, size))
    return found


def _names(window: Window) -> Iterable[str]:
    made = (o for side in window.sides() for n in side for o in n.output if o)
    return dict.fromkeys([*window.reads(), *made])


def _elements(window: Window) -> int:
    """The number of elements of the constants and of the inputs, symbolic dimensions are 1."""
    shapes = (window.facts_of(name).shape or () for name in window.inputs())
    inputs = (np.prod([float(d) for d in s if isinstance(d, int)]) for s in shapes)
    return int(sum(inputs) + sum(v.size for v in window.constants.values()))


def _rows_of(value: np.ndarray, axes: Iterable[int]) -> np.ndarray:
    for axis in axes:
        value = np.take(value, _rows(value.shape[axis]), axis)
    return value


@functools.cache
def _rows(size: int) -> np.ndarray:
    """The rows kept of an axis of some size, always the same ones."""
    inside = np.random.default_rng(size).choice(size - 2, KEPT - 2, replace=False) + 1
    return np.array([0, *sorted(inside), size - 1])
