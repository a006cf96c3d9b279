"""The keys of a window: equal for windows that only differ by names, by weights, by sizes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from xbuilder.dims import Constraints, Dim, substitute, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.facts.facts import ResultFacts
from xbuilder.nodes.attributes import find_attribute

from ...authoring.rewriters import Member
from .programs import Names, renamed
from .window import Window, names_read

#: floats both sides read are weights from this number of elements on, which a rewrite passes along
_WEIGHT = 64
#: what stands for a size or a number of groups above 1
_SEVERAL = 2


class WindowKeys(NamedTuple):
    """The keys of a window.

    :param whole: with the sizes, and with the values of the weights that one side reads
    :param family: without them: a size above 1 is like another one, so is a number of groups, and
        an expression only counts by the places where it is met again
    """

    whole: bytes
    family: bytes


def keys_of(window: Window, member: Member, settings: object = None) -> WindowKeys:
    """The keys of a window. Cost: its nodes and its constants.

    :param window: a window
    :param member: the rewrite, which declares its precision
    :param settings: what else the check depends on
    """
    names, dims = Names(), _Dims(window.graph.facts.constraints)
    family = hashlib.sha256(repr((member.precision, member.tolerance, settings)).encode())
    whole = family.copy()
    for side in window.sides():
        for node in side:
            copy = renamed(node, names)
            whole.update(copy.SerializeToString(deterministic=True))
            groups = find_attribute(copy, "group")
            if groups is not None and groups.i > 1:
                groups.i = _SEVERAL
            family.update(copy.SerializeToString(deterministic=True))
        for digest in (whole, family):
            digest.update(b"|")
    for digest in (whole, family):
        digest.update(repr(sorted(window.graph.opsets.items())).encode())
    for name in (*window.reads(), *window.results):
        facts, rank = window.facts_of(name), names(name)
        whole.update(f"{rank}{_facts_text(facts, dims.exact)}".encode())
        family.update(f"{rank}{_facts_text(facts, dims.loose)}".encode())
    read = [set(names_read(nodes)) for nodes in (window.before, window.after)]
    for name in window.reads():
        value = window.constants.get(name)
        if value is not None:
            family.update(_value_digest(value, 0) or _kind_of(value))
            # weights that both sides read, or the nodes around them alone, do not count
            is_shared = (name in read[0]) == (name in read[1])
            content = _value_digest(value, _WEIGHT if is_shared else math.inf)
            whole.update(f"{value.dtype} {value.shape}".encode() + content)
    return WindowKeys(whole.digest(), family.digest())


def _value_digest(value: np.ndarray, free_size: float) -> bytes:
    """The digest of the values and of the shape, empty for the floats that do not count."""
    if value.dtype.kind in "OUS":
        content = repr(value.tolist()).encode()
    elif value.dtype.kind == "f" and value.size >= free_size:
        return b""
    else:
        content = np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(f"{value.dtype} {value.shape}".encode() + content).digest()


def _kind_of(value: np.ndarray) -> bytes:
    """The type of some floats; the value of a sole one as well if it is 0, 1, -1 or not finite, and
    its sign otherwise."""
    kind = ""
    if value.size == 1:
        number = float(value.item())
        is_plain = math.isfinite(number) and number not in (-1, 0, 1)
        kind = str(number > 0) if is_plain else repr(number)
    return f"{value.dtype} {kind}".encode()


def _facts_text(facts: ResultFacts, write: Callable[[Dim], Dim]) -> str:
    if facts.sequence is not None:
        return f"seq({_facts_text(facts.sequence, write)})"
    shape = None if facts.shape is None else [write(d) for d in facts.shape]
    value = facts.value
    content = value if isinstance(value, tuple) else () if value is None else (value,)
    known = [write(d) for d in content]
    return f"{facts.type} {shape} {facts.rank} {known} {facts.optional is not None}"


class _Dims:
    """Writes dimensions with ranks instead of names.

    :param constraints: what is known of them
    """

    def __init__(self, constraints: Constraints):
        self._constraints = constraints
        self._symbols, self._sizes = Names("n"), Names("s")
        self._written: dict[Dim, Dim] = {}

    def exact(self, dim: Dim) -> Dim:
        """A dimension under the ranks of its symbols."""
        found = self._written.get(dim)
        if found is None:
            found = self._written[dim] = self._write(self._constraints.canonical(dim))
        return found

    def _write(self, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        if dim.isidentifier():
            return self._symbols(dim)
        try:
            return substitute(dim, {name: self._symbols(name) for name in sorted(symbols(dim))})
        except DimensionError:
            return dim

    def loose(self, dim: Dim) -> Dim:
        """The rank of an expression among the different ones; integers above 1 are alike."""
        dim = self._constraints.canonical(dim)
        return min(dim, _SEVERAL) if isinstance(dim, int) else self._sizes(dim)
