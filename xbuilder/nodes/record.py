"""NodeRecord, a node of a store: its proto, names and place, read once."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import TYPE_CHECKING

from onnx import NodeProto

from ..operators.domains import main_domain
from ..operators.op_traits import GRAPH_OWNERS
from .copies import copy_with_captures, copy_with_edges
from .subgraphs import local_names, node_captures, subgraphs_of

Key = tuple[str, str]


class _Keys(dict[Key, Key]):
    """One key for all the nodes of a type."""

    def __missing__(self, key: Key) -> Key:
        self[key] = key
        return key


_NOTHING: dict[str, None] = {}
_KEYS = _Keys()
#: a node with more inputs renames them together, when they are read
_FEW_INPUTS = 32


class NodeRecord:
    """A node of a store, whose protobuf fields are read only once.

    `proto` is the current node, copied when an edge was renamed, never changed in place.
    `order` sorts nodes, `gap` is the free room after it. `inputs` holds empty strings for missing
    optional inputs, `captured` the names read by the subgraphs. Renaming one of these is O(1),
    because the subgraphs are copied once, when the proto is next read. Renaming an input is
    O(number of inputs) if there are few of them, O(1) otherwise, see :class:`WideRecord`.
    """

    __slots__ = (
        "_late_renames",
        "_local",
        "_proto",
        "_renamed",
        "alive",
        "captured",
        "children",
        "domain",
        "gap",
        "inputs",
        "key",
        "op_type",
        "order",
        "outputs",
        "stale",
    )

    def __init__(self, proto: NodeProto, order: int, gap: int):
        self._proto = proto
        # one string for every node of a type: less memory, comparisons by identity
        self.op_type = op_type = intern(proto.op_type)
        domain = proto.domain
        self.domain = domain = main_domain(domain) if domain else ""
        #: key of its bucket
        self.key: Key = _KEYS[domain, op_type]
        # the slice of a protobuf field costs half of iterating on it, which ends with an exception
        self.inputs: tuple[str, ...] = tuple(proto.input[:])
        self.outputs: tuple[str, ...] = tuple(proto.output[:])
        owner = op_type in GRAPH_OWNERS or domain
        self.captured: dict[str, None] = dict.fromkeys(node_captures(proto)) if owner else _NOTHING
        self._renamed: dict[str, list[str]] | None = None
        self._local: set[str] | None = None
        self.order = order
        self.gap = gap
        self.alive = True
        self.stale = False
        self.children: object | None = None
        if len(self.inputs) > _FEW_INPUTS:
            self._widen()

    def _widen(self) -> None:
        # in another class, because reading the attributes of one with `__getattr__` costs more
        self._late_renames: tuple[tuple[str, ...], list[tuple[str, str]]] | None = None
        self.__class__ = WideRecord

    def reads(self) -> Sequence[str]:
        """Every name the node reads, captures included, empty names left out."""
        inputs = self.inputs
        if not self.captured and "" not in inputs:
            return inputs
        return [*filter(None, inputs), *self.captured]

    def hides(self, name: str) -> bool:
        """Whether a subgraph of the node defines a name on its own."""
        if self._local is None:
            self._local = set()
            for _, graph in subgraphs_of(self._proto):
                self._local |= local_names(graph)
        return name in self._local

    def rename_read(self, old: str, new: str) -> None:
        """Renames a result the node, or its subgraphs, read."""
        self.stale = True
        inputs = self.inputs
        alone = len(inputs) == 1 and inputs[0] == old
        self.inputs = (new,) if alone else tuple([new if n == old else n for n in inputs])
        if old in self.captured:
            self._rename_captured(old, new)

    def _rename_captured(self, old: str, new: str) -> None:
        if self._renamed is None:
            self._renamed = {}
        originals = self._renamed.pop(old, [old])
        if new in self.captured:
            self._renamed.setdefault(new, [new]).extend(originals)
        else:
            self._renamed[new] = originals
        del self.captured[old]
        self.captured[new] = None
        self.children = None

    def refresh(self) -> NodeProto:
        """Copies the proto with the current names of inputs, captures and outputs."""
        self._proto = self.current()
        self._renamed = None
        self.stale = False
        return self._proto

    def current(self) -> NodeProto:
        """The node with the current names; the record stays as it is."""
        if not self.stale:
            return self._proto
        proto = self._proto
        if self._renamed:
            mapping = {o: new for new, originals in self._renamed.items() for o in originals}
            proto = copy_with_captures(proto, mapping)
        return copy_with_edges(proto, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"{self.op_type}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"


class WideRecord(NodeRecord):
    """The record of a node with many inputs. Then n renamings of a Concat of n results cost O(n).

    The slot `inputs` is empty from a renaming until it is read, then all are renamed at once.
    """

    __slots__ = ()

    def rename_read(self, old: str, new: str) -> None:
        """Renames a result the node reads. Cost: O(1)."""
        self.stale = True
        if self._late_renames is None:
            self._late_renames = self.inputs, []
            del self.inputs
        self._late_renames[1].append((old, new))
        if old in self.captured:
            self._rename_captured(old, new)

    if not TYPE_CHECKING:  # a type checker knows every attribute

        def __getattr__(self, name: str) -> tuple[str, ...]:
            """Fills the slot `inputs`. Python calls it when an attribute is missing."""
            if name != "inputs" or self._late_renames is None:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
            before, renames = self._late_renames
            self._late_renames = None
            self.inputs = _renamed_names(before, renames)
            return self.inputs


def _renamed_names(names: Sequence[str], renames: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Names after some renamings, done one after the other. Cost: O(names + renamings)."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        places.setdefault(name, []).append(i)
    for old, new in renames:
        moved = places.pop(old, None)
        if moved is not None:
            known = places.setdefault(new, moved)
            if known is not moved:
                known.extend(moved)
    rows = list(names)
    for name, positions in places.items():
        for i in positions:
            rows[i] = name
    return tuple(rows)
