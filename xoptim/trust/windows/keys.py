"""The keys of a window: equal for windows that only differ by names and by shared weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from xbuilder.dims import Constraints, Dim, substitute, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.facts.facts import ResultFacts

from ...authoring.rewriters import Member
from .programs import Names, renamed
from .window import Window, names_read

#: floats both sides read are weights from this number of elements on, which a rewrite passes along
_WEIGHT = 64


class WindowKeys(NamedTuple):
    """The keys of a window.

    :param whole: with the values of the weights that one side reads
    :param family: without them
    """

    whole: bytes
    family: bytes


def keys_of(window: Window, member: Member, settings: object = None) -> WindowKeys:
    """The keys of a window. Cost: its nodes and its constants.

    :param window: a window
    :param member: the rewrite, which declares its precision
    :param settings: what else the check depends on
    """
    names, dims = Names(), Names("n")
    digest = hashlib.sha256(repr((member.precision, member.tolerance, settings)).encode())
    for side in window.sides():
        for node in side:
            digest.update(renamed(node, names).SerializeToString(deterministic=True))
        digest.update(b"|")
    constraints = window.graph.facts.constraints
    for name in window.reads():
        digest.update(names(name).encode())
        digest.update(_facts_text(window.facts_of(name), dims, constraints).encode())
    for name in window.results:
        digest.update(names(name).encode())
        digest.update(_facts_text(window.facts_of(name), dims, constraints).encode())
    digest.update(repr(sorted(window.graph.opsets.items())).encode())
    whole, read = digest.copy(), [set(names_read(nodes)) for nodes in (window.before, window.after)]
    for name in window.reads():
        value = window.constants.get(name)
        if value is not None:
            digest.update(_value_digest(value, 2))
            # weights that both sides read, or the nodes around them alone, do not count
            is_shared = (name in read[0]) == (name in read[1])
            whole.update(_value_digest(value, _WEIGHT if is_shared else math.inf))
    return WindowKeys(whole.digest(), digest.digest())


def _value_digest(value: np.ndarray, free_size: float) -> bytes:
    head = f"{value.dtype} {value.shape}".encode()
    if value.dtype.kind in "OUS":
        return head + repr(value.tolist()).encode()
    if value.dtype.kind == "f" and value.size >= free_size:
        return head
    return head + hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()


def _facts_text(facts: ResultFacts, dims: Callable[[str], str], constraints: Constraints) -> str:
    if facts.sequence is not None:
        return f"seq({_facts_text(facts.sequence, dims, constraints)})"
    shape = None if facts.shape is None else [_dim(d, dims, constraints) for d in facts.shape]
    value = facts.value
    content = value if isinstance(value, tuple) else () if value is None else (value,)
    known = [_dim(d, dims, constraints) for d in content]
    return f"{facts.type} {shape} {facts.rank} {known} {facts.optional is not None}"


def _dim(dim: Dim, dims: Callable[[str], str], constraints: Constraints) -> Dim:
    dim = constraints.canonical(dim)
    if isinstance(dim, int):
        return dim
    if dim.isidentifier():
        return dims(dim)
    try:
        return substitute(dim, {name: dims(name) for name in sorted(symbols(dim))})
    except DimensionError:
        return dim
