"""The tables of a graph: what produces and reads each name, the nodes of each operator type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto

from ..nodes.record import Key, NodeRecord
from ..nodes.subgraphs import may_own_graph
from .placement import by_order
from .readers import NO_READERS, Readers, as_readers, with_reader, without_reader


class EdgeTables:
    """Producers and readers of results, and nodes by operator type.

    A node is registered, then removed, in O(its edges). The subclass
    :class:`.graph_store.GraphStore` calls the methods that change these tables.

    :param outputs: the outputs of the graph
    """

    def __init__(self, outputs: Iterable[str] = ()):
        self.producers: dict[str, NodeRecord] = {}
        self.consumers: dict[str, Readers] = {}
        self.captures: dict[str, int] = {}
        self.outputs: dict[str, None] = dict.fromkeys(outputs)
        self.pinned: set[str] = set()
        self.generation = 0
        #: whether a node may come before one whose result it reads
        self.order_violated = False
        self._dead = 0
        self._buckets: dict[Key, list[NodeRecord]] = {}
        self._dirty_buckets: set[Key] = set()  # some nodes are dead
        self._unsorted_buckets: set[Key] = set()
        #: live records by `id` of their proto
        self.index: dict[int, NodeRecord] = {}
        #: names several nodes read
        self.read_twice: dict[str, None] = {}
        self._keys: tuple[int, set[Key], set[str]] = -1, set(), set()

    def proto(self, record: NodeRecord) -> NodeProto:
        """The node as a NodeProto; the same object is returned until one of its edges changes."""
        if record.stale:
            self.index.pop(id(record._proto), None)
            record.refresh()
            if record.alive:
                self.index[id(record._proto)] = record
        return record._proto

    def record_of(self, proto: NodeProto) -> NodeRecord | None:
        """The record of a node this store returned, None for any other node."""
        return self.index.get(id(proto))

    def bucket(self, domain: str, op_type: str) -> list[NodeRecord]:
        """Live nodes of one operator type, in graph order."""
        key = (domain, op_type)
        if key in self._dirty_buckets:
            self._dirty_buckets.discard(key)
            self._buckets[key] = [r for r in self._buckets[key] if r.alive]
        if key in self._unsorted_buckets:
            self._unsorted_buckets.discard(key)
            self._buckets[key].sort(key=by_order)
        return self._buckets.get(key, [])

    def bucket_keys(self) -> set[Key]:
        """Keys `(domain, op_type)` of the nodes. Cost: O(1), O(keys) after a change and, once
        for each of them, the nodes that died."""
        if self._keys[0] != self.generation:
            for key in self._dirty_buckets:
                rows = self._buckets[key]
                while rows and not rows[-1].alive:  # the rest waits for a reader of the bucket
                    rows.pop()
            keys = {key for key, rows in self._buckets.items() if rows}
            types = {op_type for domain, op_type in keys if not domain}
            self._keys = self.generation, keys, types
        return self._keys[1]

    def main_types(self) -> set[str]:
        """Types of the nodes of the main domain. Cost: as :meth:`bucket_keys`."""
        self.bucket_keys()
        return self._keys[2]

    def possible_owners(self) -> list[NodeRecord]:
        """Nodes whose type may own a subgraph, in graph order. Cost: O(number of these nodes)."""
        keys = [key for key in self._buckets if may_own_graph(key[1], key[0])]
        return sorted((r for key in keys for r in self.bucket(*key)), key=by_order)

    def is_used(self, name: str) -> bool:
        """Whether a node or a subgraph reads a result, or it is an output. Cost: O(1)."""
        return name in self.consumers or name in self.outputs

    def is_used_more_than_once(self, name: str) -> bool:
        """Whether a result has other uses than one: an input, a subgraph, an output.

        Cost: O(1), O(inputs of the reader) if there is only one.
        """
        readers = self.consumers.get(name)
        if not readers:
            return False
        if len(readers) > 1 or name in self.outputs or name in self.captures:
            return True
        (reader,) = readers
        return reader.inputs.count(name) > 1

    def readers(self, name: str) -> Readers:
        """Nodes that read a name, in the order they came."""
        return self.consumers.get(name, NO_READERS)

    def can_redirect(self, old: str, new: str) -> bool:
        """Whether no subgraph that reads *old* hides *new* behind a name of its own."""
        return old not in self.captures or not any(
            old in record.captured and record.hides(new) for record in self.readers(old)
        )

    # -- bookkeeping

    def _register(self, record: NodeRecord) -> None:
        for name in record.outputs:
            if name:
                self.producers[name] = record
        consumers, names = self.consumers, record.inputs
        for name in record.reads() if record.captured or "" in names else names:
            if name not in consumers:
                consumers[name] = (record,)
                continue
            consumers[name] = readers = with_reader(consumers[name], record)
            if len(readers) > 1:
                self.read_twice[name] = None
        for name in record.captured:
            self.captures[name] = self.captures.get(name, 0) + 1
        key = record.key
        if key not in self._buckets:
            self._buckets[key] = [record]
        else:
            rows = self._buckets[key]
            if rows and rows[-1].order > record.order:
                self._unsorted_buckets.add(key)
            rows.append(record)
        self.index[id(record._proto)] = record

    def _unregister(self, records: Sequence[NodeRecord]) -> None:
        producers, consumers = self.producers, self.consumers
        index, dirty = self.index, self._dirty_buckets
        self._dead += len(records)
        for record in records:
            record.alive = False
            for name in record.outputs:
                if name:
                    del producers[name]
            captured = record.captured
            for name in (*record.inputs, *captured) if captured else record.inputs:
                if name not in consumers:  # no name, or the node reads it twice
                    continue
                readers = consumers[name]
                if len(readers) > 1:
                    consumers[name] = left = without_reader(readers, record)
                    if len(left) == 1:
                        del self.read_twice[name]
                elif record in readers:
                    del consumers[name]
            for name in captured:
                self._release_capture(name)
            dirty.add(record.key)
            del index[id(record._proto)]

    def _remove(self, records: Sequence[NodeRecord]) -> Sequence[str]:
        """Removes nodes. Returns the names of their results."""
        self._unregister(records)
        lost = tuple([name for record in records for name in record.outputs if name])
        if self.pinned:
            self.pinned.difference_update(lost)
        return lost

    def _move_readers(self, old: str, new: str) -> Readers:
        """Makes the readers of a name read another one."""
        readers = self.consumers.pop(old, None)
        if not readers:
            return NO_READERS
        self.read_twice.pop(old, None)
        known = self.consumers.get(new)
        if known is None:
            found = readers
        elif len(readers) == 1:
            found = with_reader(known, *readers)
        else:
            found = as_readers((*known, *readers))
        self.consumers[new] = found
        if len(found) > 1:
            self.read_twice[new] = None
        producer = self.producers.get(new)
        order = None if producer is None else producer.order
        for record in readers:
            if record.captured:
                self._rename_captured(record, old, new)
            record.rename_read(old, new)
            if order is not None and record.order <= order:
                self.order_violated = True
        return readers

    def _release_capture(self, name: str) -> None:
        self.captures[name] -= 1
        if not self.captures[name]:
            del self.captures[name]

    def _rename_captured(self, record: NodeRecord, old: str, new: str) -> None:
        if old in record.captured:
            if new not in record.captured:
                self.captures[new] = self.captures.get(new, 0) + 1
            self._release_capture(old)
