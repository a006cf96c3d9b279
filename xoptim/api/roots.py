"""Where patterns look: nodes by type, and by the type of what gives their first input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Set
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter

from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.readers import NO_READERS

#: key to sort records as the nodes of the graph
order_of = attrgetter("order")


def parse_root(root: str) -> Key:
    """`"Transpose"` or `"com.microsoft::FusedMatMul"` as a key of the store."""
    domain, _, op_type = root.rpartition("::")
    return domain, op_type


@lru_cache(maxsize=4096)
def root_keys(roots: tuple[str, ...]) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Keys of the roots, then domains and beginnings of names of those that end with `*`."""
    keys = dict.fromkeys(parse_root(root) for root in roots)
    starts = tuple((domain, name[:-1]) for domain, name in keys if name.endswith("*"))
    return tuple(k for k in keys if not k[1].endswith("*")), starts


class Roots(ABC):
    """Nodes patterns start from, as long as the graph does not change.

    The lists belong to this object, or to the store: they must stay as they are.

    :param store: the graph
    """

    def __init__(self, store: GraphStore):
        self.store = store
        self._lists: dict[tuple[str, ...], list[NodeRecord]] = {}
        self._groups: dict[tuple[str, ...], dict[str, list[NodeRecord]]] = {}
        self._readers: dict[tuple[str, ...], dict[str, list[NodeRecord]]] = {}

    @abstractmethod
    def everything(self) -> list[NodeRecord]:
        """Every node, in graph order."""

    @abstractmethod
    def keys(self) -> Set[Key]:
        """Domains and types of the nodes."""

    @abstractmethod
    def bucket(self, key: Key) -> list[NodeRecord]:
        """Nodes of one type, in graph order."""

    @cached_property
    def types(self) -> set[str]:
        """Types of the main domain the graph has. Cost: O(types) the first time."""
        return {op_type for domain, op_type in self.store.bucket_keys() if not domain}

    def of(self, roots: Iterable[str]) -> list[NodeRecord]:
        """Nodes whose type is one of the roots, in graph order.

        A root may end with `*` (`"intermediate::LocalAttention*"`), `"*"` is every node. Cost: O(1)
        for one type, O(number of these nodes) the first time for several.
        """
        names = tuple(roots)
        rows = self._lists.get(names)
        if rows is None:
            rows = self._lists[names] = self._merged(names)
        return rows

    def _merged(self, roots: tuple[str, ...]) -> list[NodeRecord]:
        if "*" in roots:
            return self.everything()
        keys, starts = root_keys(roots)
        if starts:
            some = [k for d, s in starts for k in self.keys() if k[0] == d and k[1].startswith(s)]
            keys = tuple(dict.fromkeys((*keys, *some)))
        return _merge([self.bucket(key) for key in keys])

    def after(self, roots: Iterable[str], types: Iterable[str]) -> list[NodeRecord]:
        """Roots whose first input is given by a node of one of these types of the main domain.

        Cost: O(what is returned), O(number of roots) the first time.
        """
        if self.types.isdisjoint(types):
            return []
        names = tuple(roots)
        groups = self._groups.get(names)
        if groups is None:
            groups = self._groups[names] = {}
            producers = self.store.producers
            for record in self.of(names):
                before = producers.get(record.inputs[0]) if record.inputs else None
                if before is not None and not before.domain:
                    groups.setdefault(before.op_type, []).append(record)
        return _merge([groups[t] for t in types if t in groups])

    def reading(self, roots: Iterable[str], types: Iterable[str]) -> list[NodeRecord]:
        """Roots one of whose inputs is given by a node of one of these types of the main domain.

        Cost: as :meth:`after`.
        """
        if self.types.isdisjoint(types):
            return []
        names = tuple(roots)
        groups = self._readers.get(names)
        if groups is None:
            groups = self._readers[names] = {}
            producers = self.store.producers
            for record in self.of(names):
                for name in record.inputs:
                    before = producers.get(name)
                    if before is not None and not before.domain:
                        rows = groups.setdefault(before.op_type, [])
                        if not rows or rows[-1] is not record:
                            rows.append(record)
        lists = [groups[t] for t in types if t in groups]
        return list(dict.fromkeys(_merge(lists))) if len(lists) > 1 else _merge(lists)

    def read_by(self, records: Iterable[NodeRecord], types: Container[str]) -> list[NodeRecord]:
        """Those of some nodes one of whose results is read by a node of one of these types of the
        main domain. Cost: O(readers)."""
        consumers = self.store.consumers
        found = []
        for record in records:
            readers = (r for name in record.outputs for r in consumers.get(name, NO_READERS))
            if any(r.op_type in types and not r.domain for r in readers):
                found.append(record)
        return found


class Sweep(Roots):
    """The whole graph."""

    def everything(self) -> list[NodeRecord]:
        """Every node, in graph order."""
        return self.store.nodes

    def keys(self) -> Set[Key]:
        """Domains and types of the nodes."""
        return self.store.bucket_keys()

    def bucket(self, key: Key) -> list[NodeRecord]:
        """Nodes of one type, in graph order."""
        return self.store.bucket(*key)


class Candidates(Roots):
    """A few nodes, those near the last changes. Cost: O(number of these nodes).

    :param store: the graph
    :param records: the nodes, dead ones are left out
    """

    def __init__(self, store: GraphStore, records: Iterable[NodeRecord]):
        super().__init__(store)
        self.records = sorted((r for r in records if r.alive), key=order_of)
        self._by_key: dict[Key, list[NodeRecord]] = {}
        for r in self.records:
            self._by_key.setdefault((r.domain, r.op_type), []).append(r)
        self._present = set(self._by_key)

    def everything(self) -> list[NodeRecord]:
        """Every one of them, in graph order."""
        return self.records

    def keys(self) -> Set[Key]:
        """Domains and types of these nodes."""
        return self._present

    def bucket(self, key: Key) -> list[NodeRecord]:
        """Those of one type, in graph order."""
        return self._by_key.get(key, [])


def _merge(lists: list[list[NodeRecord]]) -> list[NodeRecord]:
    filled = [rows for rows in lists if rows] if len(lists) > 1 else lists
    if len(filled) < 2:
        return filled[0] if filled else []
    return sorted(chain.from_iterable(filled), key=order_of)
