"""Roots of patterns in a graph: nodes by type, and by the types of their producers and readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.readers import NO_READERS

#: nodes of one type, by the types, as roots are written, of the nodes producing their inputs
Kinds: TypeAlias = Mapping[str, list[NodeRecord]]
#: with more roots, those of the graph are chosen first
_MANY = 16
#: key to sort records in graph order
order_of = attrgetter("order")


def parse_root(root: str) -> Key:
    """`"Transpose"` or `"com.microsoft::FusedMatMul"` as a key of the store."""
    domain, _, op_type = root.rpartition("::")
    return domain, op_type


@lru_cache(maxsize=4096)
def as_root(key: Key) -> str:
    """A key of the store as :func:`parse_root` reads it.

    >>> as_root(("", "Transpose")), as_root(("com.microsoft", "FusedMatMul"))
    ('Transpose', 'com.microsoft::FusedMatMul')
    """
    domain, op_type = key
    return f"{domain}::{op_type}" if domain else op_type


def in_main_domain(types: Iterable[str]) -> bool:
    """Whether operators, written as roots are, are all of the main domain.

    :param types: the operators
    """
    return "::" not in " ".join(types)


@lru_cache(maxsize=4096)
def root_keys(roots: tuple[str, ...]) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Keys of the roots, then domains and beginnings of names of those that end with `*`."""
    keys = dict.fromkeys(parse_root(root) for root in roots)
    starts = tuple((domain, name[:-1]) for domain, name in keys if name.endswith("*"))
    return tuple(k for k in keys if not k[1].endswith("*")), starts


def kinds_of(store: GraphStore, records: Iterable[NodeRecord]) -> Kinds:
    """Nodes, indexed by the types, written as roots are, of the nodes producing their inputs. Cost:
    O(inputs).

    :param store: the graph
    :param records: the nodes, in graph order
    """
    producer_of = store.producers.get
    kinds: defaultdict[str, dict[NodeRecord, None]] = defaultdict(dict)
    for record in records:
        for producer in map(producer_of, record.inputs):
            if producer is not None:
                kinds[as_root(producer.key)][record] = None
    return {op_type: list(rows) for op_type, rows in kinds.items()}


@lru_cache(maxsize=64)
def _key_set(roots: tuple[str, ...]) -> frozenset[Key]:
    """The domains and types of roots that are whole names."""
    return frozenset(root_keys(roots)[0])


class Roots(ABC):
    """Nodes patterns start from, valid as long as the graph does not change.

    The lists belong to this object, or to the store: do not modify them.
    """

    def __init__(self, store: GraphStore):
        self.store = store
        self._types: set[str] | None = None
        self._lists: dict[tuple[str, ...], list[NodeRecord]] = {}
        self._kinds: dict[Key, Kinds] = {}
        # types, as roots are written, of the producers of the inputs of a node, and of its readers
        self._producers: dict[NodeRecord, set[str]] = {}
        self._readers: dict[NodeRecord, set[str]] = {}

    def has_one_of(self, types: Iterable[str]) -> bool:
        """Whether the graph may have a node of one of these types, written as roots are: True if
        one is of another domain than the main one."""
        if self._types is None:
            self._types = self.store.main_types()
        return not self._types.isdisjoint(types) or not in_main_domain(types)

    @abstractmethod
    def everything(self) -> list[NodeRecord]:
        """Every node, in graph order."""

    @abstractmethod
    def keys(self) -> Set[Key]:
        """Domains and types of the nodes."""

    @abstractmethod
    def bucket(self, key: Key) -> list[NodeRecord]:
        """Nodes of one type, in graph order."""

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
        if len(keys) == 1 and not starts:
            return self.bucket(keys[0])
        if starts:
            some = [k for d, s in starts for k in self.keys() if k[0] == d and k[1].startswith(s)]
            keys = tuple(dict.fromkeys((*keys, *some)))
        elif len(keys) > _MANY:
            keys = tuple(self.keys() & _key_set(roots))
        return _merge([self.bucket(key) for key in keys])

    def after(self, roots: Iterable[str], types: Iterable[str]) -> list[NodeRecord]:
        """Roots whose first input is produced by a node of one of these types, written as roots
        are. Cost: as :meth:`reading`.
        """
        producers, types = self.store.producers, tuple(types)
        # a node produces one of their inputs; the first one may be missing, or have no producer
        return [
            record
            for record in self.reading(roots, types)
            if (before := producers.get(record.inputs[0])) is not None
            and as_root(before.key) in types
        ]

    def reading(self, roots: Iterable[str], types: Iterable[str]) -> list[NodeRecord]:
        """Roots one of whose inputs is produced by a node of one of these types, written as roots
        are. Cost: O(nodes returned), O(edges) the first time.
        """
        names, types = tuple(roots), tuple(types)
        if not self.has_one_of(types):
            return []
        keys, starts = root_keys(names)
        if starts:
            keys = tuple({record.key for record in self.of(names)})
        elif len(keys) > _MANY:
            keys = tuple(self.keys() & _key_set(names))
        found, known = [], self._kinds
        for key in keys:
            kinds = known[key] if key in known else self.kinds(key)
            for op_type in types:
                if op_type in kinds:
                    found.append(kinds[op_type])
        if len(found) < 2:
            return found[0] if found else []
        return sorted(set(chain.from_iterable(found)), key=order_of)

    def reading_each(self, types: Mapping[str, Iterable[str]]) -> list[NodeRecord]:
        """Same as :meth:`reading`, where each root has its own types. Cost: as :meth:`reading`.

        :param types: root -> the types
        """
        return _merge([self.reading((root,), kept) for root, kept in types.items()])

    def kinds(self, key: Key) -> Kinds:
        """The nodes of one type, indexed by the types of their producers. Cost: O(1), O(inputs) the
        first time."""
        kinds = self._kinds.get(key)
        if kinds is None:
            kinds = self._kinds[key] = kinds_of(self.store, self.bucket(key))
        return kinds

    def beyond(
        self, records: Iterable[NodeRecord], near: Iterable[str], far: Iterable[str]
    ) -> list[NodeRecord]:
        """The given nodes an input of which is produced by a node of one type among *near*, any if
        it is empty, which reads a node of one type among *far*, all written as roots are. Cost:
        O(inputs)."""
        near, wanted = frozenset(near), frozenset(far)
        producer_of, known = self.store.producers.get, self._producers
        found = []
        for record in records:
            for before in map(producer_of, record.inputs):
                if before is None or (near and as_root(before.key) not in near):
                    continue
                types = known.get(before)
                if types is None:
                    types = known[before] = self._types_of_producers(before)
                if not wanted.isdisjoint(types):
                    found.append(record)
                    break
        return found

    def _types_of_producers(self, record: NodeRecord) -> set[str]:
        producers = map(self.store.producers.get, record.inputs)
        return {as_root(p.key) for p in producers if p is not None}

    def read_by(self, records: Iterable[NodeRecord], types: Iterable[str]) -> list[NodeRecord]:
        """The given nodes that have a reader of one of these types, written as roots are. Cost:
        O(nodes), O(readers) the first time."""
        wanted, known = frozenset(types), self._readers
        found = []
        for record in records:
            readers = known.get(record)
            if readers is None:
                readers = known[record] = self._types_of_readers(record)
            if not wanted.isdisjoint(readers):
                found.append(record)
        return found

    def _types_of_readers(self, record: NodeRecord) -> set[str]:
        consumers, types = self.store.consumers, set[str]()
        for name in record.outputs:
            for reader in consumers.get(name, NO_READERS):
                types.add(as_root(reader.key))
        return types


class Sweep(Roots):
    """The roots of the whole graph."""

    def __init__(self, store: GraphStore):
        super().__init__(store)
        #: the indexes are valid as long as the store has this generation
        self.generation = store.generation

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
    """The roots among a few nodes, those near the last changes. Cost: O(number of these nodes).

    :param store: the graph
    :param records: the nodes, removed ones are left out
    """

    def __init__(self, store: GraphStore, records: Iterable[NodeRecord]):
        super().__init__(store)
        self.records = sorted([r for r in records if r.alive], key=order_of)
        self._by_key: dict[Key, list[NodeRecord]] = {}
        for r in self.records:
            self._by_key.setdefault(r.key, []).append(r)
        self._present = set(self._by_key)

    def everything(self) -> list[NodeRecord]:
        """These nodes, in graph order."""
        return self.records

    def keys(self) -> Set[Key]:
        """Domains and types of these nodes."""
        return self._present

    def bucket(self, key: Key) -> list[NodeRecord]:
        """These nodes of one type, in graph order."""
        return self._by_key.get(key, [])


def _merge(lists: list[list[NodeRecord]]) -> list[NodeRecord]:
    filled = [rows for rows in lists if rows] if len(lists) > 1 else lists
    if len(filled) < 2:
        return filled[0] if filled else []
    return sorted(chain.from_iterable(filled), key=order_of)
