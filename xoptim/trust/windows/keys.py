"""The keys of a window: equal for windows that only differ by names, by weights, by sizes."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Constraints, Dim, substitute, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.facts.facts import ResultFacts
from xbuilder.nodes.attributes import find_attribute
from xbuilder.nodes.copies import copy_with_edges
from xbuilder.nodes.subgraphs import subgraphs_of

from ...authoring.rewriters import Member
from .programs import Names, renamed
from .window import Window, names_read

#: floats both sides read are weights from this number of elements on, which a rewrite passes along
_WEIGHT = 64
#: what stands for a size or a number of groups above 1
_SEVERAL = 2
#: renamed expressions that are remembered
_SUBSTITUTED = 1 << 12


class WindowKeys:
    """The keys of a window.

    :param window: a window
    :param member: the rewrite, which declares its precision
    :param settings: what else the check depends on
    :param sizes: sizes that are tried first, by symbol
    """

    def __init__(
        self,
        window: Window,
        member: Member,
        settings: object = None,
        sizes: Mapping[str, int] = MappingProxyType({}),
    ):
        self._window, self._sizes = window, sizes
        self._written: dict[int, bytes] = {}
        self._names, self._dims = Names(), _Dims(window.graph.facts.constraints)
        opsets = sorted(window.graph.opsets.items())
        self._head = repr((member.precision, member.tolerance, settings, opsets)).encode()

    @cached_property
    def whole(self) -> bytes:
        """With the sizes, and with the values of the weights that one side reads. Cost: the nodes
        of the window and these weights."""
        window = self._window
        digest = self._digest(self._node_bytes, self._dims.exact)
        for symbol, size in sorted(self._sizes.items()):
            digest.update(f"{self._dims.exact(symbol)} is {size}".encode())
        read = [set(names_read(nodes)) for nodes in (window.before, window.after)]
        for name in window.reads():
            value = window.constants.get(name)
            if value is not None:
                # weights that both sides read, or the nodes around them alone, do not count
                is_shared = (name in read[0]) == (name in read[1])
                content = _value_digest(value, _WEIGHT if is_shared else math.inf)
                digest.update(f"{value.dtype.num} {value.shape}".encode() + content)
        found: bytes = digest.digest()
        return found

    @cached_property
    def family(self) -> bytes:
        """Without sizes and weights: a size above 1 is like another one, so is a number of groups,
        and an expression only counts by the places where it is met again."""
        window = self._window
        digest = self._digest(self._loose_node_bytes, self._dims.loose)
        for name in window.reads():
            value = window.constants.get(name)
            if value is not None:
                digest.update(_value_digest(value, 2) or b"%d" % value.dtype.num)
        found: bytes = digest.digest()
        return found

    def _node_bytes(self, node: NodeProto) -> bytes:
        """A node under its other names, written once."""
        found = self._written.get(id(node))
        if found is None:
            found = self._written[id(node)] = _node_bytes(node, self._names)
        return found

    def _loose_node_bytes(self, node: NodeProto) -> bytes:
        """The same with a number of groups that stands for another one."""
        groups = find_attribute(node, "group")
        if groups is None or groups.i <= _SEVERAL:
            return self._node_bytes(node)
        copy = copy_with_edges(node, node.input, node.output)
        for attribute in copy.attribute:
            if attribute.name == "group":
                attribute.i = _SEVERAL
        return _node_bytes(copy, self._names)

    def _digest(self, of_node: Callable[[NodeProto], bytes], write: Callable[[Dim], Dim]) -> Any:
        """The digest of the nodes and of what is known of the results."""
        window, names = self._window, self._names
        digest = hashlib.sha256(self._head)
        for side in window.sides():
            for node in side:
                digest.update(of_node(node))
            digest.update(b"|")
        for name in (*window.reads(), *window.results):
            digest.update(f"{names(name)}{_facts_text(window.facts_of(name), write)}".encode())
        return digest


def _node_bytes(node: NodeProto, names: Names) -> bytes:
    """A node under other names, without what changes nothing of its results."""
    if any(subgraphs_of(node)):
        whole: bytes = renamed(node, names).SerializeToString(deterministic=True)
        return whole
    edges = [names(name) for name in node.input], [names(name) for name in node.output]
    head = repr((node.op_type, node.domain, node.overload, edges)).encode()
    content = (a.SerializeToString(deterministic=True) for a in node.attribute)
    return head + b"".join(content)


def _value_digest(value: np.ndarray, free_size: float) -> bytes:
    """The digest of the values and of the shape, empty for the floats that do not count."""
    if value.dtype.kind in "OUS":
        content = repr(value.tolist()).encode()
    elif value.dtype.kind == "f" and value.size >= free_size:
        return b""
    else:
        content = np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(f"{value.dtype.num} {value.shape}".encode() + content).digest()


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
        return _substituted(dim, tuple((n, self._symbols(n)) for n in sorted(symbols(dim))))

    def loose(self, dim: Dim) -> Dim:
        """The rank of an expression among the different ones; integers above 1 are alike."""
        dim = self._constraints.canonical(dim)
        return min(dim, _SEVERAL) if isinstance(dim, int) else self._sizes(dim)


@functools.lru_cache(_SUBSTITUTED)
def _substituted(dim: Dim, names: tuple[tuple[str, str], ...]) -> Dim:
    """An expression under other names, itself if it has no value with them."""
    try:
        return substitute(dim, dict(names))
    except DimensionError:
        return dim
