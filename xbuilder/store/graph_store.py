"""GraphStore, the nodes of a graph: order, producers, consumers, buckets by operator type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from onnx import NodeProto

from ..errors import PatternError
from ..nodes.record import Key, NodeRecord
from ..nodes.subgraphs import may_own_graph
from .events import StoreEvent, StoreSubscriber
from .placement import by_order, choose_anchor, fits, is_out_of_order
from .readers import NO_READERS, Readers, as_readers, with_reader, without_reader
from .replacement_check import check_new_results, check_replacement
from .sorting import sorted_nodes
from .store_check import check_tables

_GAP = 1 << 40


class GraphStore:
    """Holds the nodes of one graph; the only place where a graph changes.

    Invariants (:meth:`check` verifies them all):

    1. a name has at most one producer; `consumers[name]` holds its readers, in the order they came,
       a name captured by a subgraph is read by the node that owns it;
    2. `bucket(domain, op_type)` gives the live nodes of a type in graph order;
    3. only :meth:`append`, :meth:`extend`, :meth:`replace`, :meth:`detach`, :meth:`redirect`,
       :meth:`rename_result`, :meth:`add_outputs`, :meth:`keep_outputs` and :meth:`sort` change the
       graph, each in O(edges touched) but the last one; each notifies the subscribers once;
    4. new nodes take the place of an anchor; the list is compacted when it is read; a stable sort
       happens only after an order violation was found.

    `pinned` holds the results whose node must be kept though nothing reads them.
    """

    def __init__(self, outputs: Iterable[str] = ()):
        self.producers: dict[str, NodeRecord] = {}
        self.consumers: dict[str, Readers] = {}
        self.captures: dict[str, int] = {}
        self.outputs: dict[str, None] = dict.fromkeys(outputs)
        self.pinned: set[str] = set()
        self._listeners: tuple[StoreSubscriber, ...] = ()
        self.generation = 0
        self.order_violated = False
        self._nodes: list[NodeRecord] = []
        self._new: list[NodeRecord] = []
        self._dead = 0
        self._buckets: dict[Key, list[NodeRecord]] = {}
        self._dirty_buckets: set[Key] = set()  # some nodes are dead
        self._unsorted_buckets: set[Key] = set()
        #: live records by `id` of their proto
        self.index: dict[int, NodeRecord] = {}
        self._last_order = 0
        #: names several nodes read
        self.read_twice: dict[str, None] = {}
        self._keys: tuple[int, set[Key]] = -1, set()

    # -- reading

    def __len__(self) -> int:
        return len(self._nodes) + len(self._new) - self._dead

    @property
    def nodes(self) -> list[NodeRecord]:
        """Live nodes in graph order. Cost: O(1), O(N) after a change."""
        if self._new or self._dead or self.order_violated:
            self.compact()
        return self._nodes

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
        """Keys `(domain, op_type)` of the nodes. Cost: O(1), O(keys) after a change."""
        if self._keys[0] != self.generation:
            for key in list(self._dirty_buckets):
                self.bucket(*key)
            self._keys = self.generation, {key for key, rows in self._buckets.items() if rows}
        return self._keys[1]

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

    # -- changing

    def append(self, proto: NodeProto, position: int | None = None) -> NodeRecord:
        """Adds a node at the end, or before the node at *position*.

        :raises InvalidModelError: one of its results has a producer already
        """
        self.generation += 1
        order, gap = self._order_at(position)
        record = NodeRecord(proto, order, gap)
        check_new_results(record, self.producers)
        self._register(record)
        if position is None and not self._new and not self._dead:
            self._nodes.append(record)
        else:
            self._new.append(record)
        self._note_order((record,))
        if self._listeners:
            self._tell(StoreEvent((), (record,), position=position))
        return record

    def extend(
        self, protos: Iterable[NodeProto], check: Callable[[NodeRecord], None] | None = None
    ) -> list[NodeRecord]:
        """Adds many nodes at the end, as :meth:`append` does. Returns their records.

        :param protos: the nodes
        :param check: checks each of them, may raise an exception
        """
        self.compact()
        self.generation += 1
        producers = self.producers
        known, read = producers.keys(), self.consumers.keys()
        records: list[NodeRecord] = []
        order = self._last_order
        for proto in protos:
            record = NodeRecord(proto, order, _GAP)
            if check is not None:
                check(record)
            order += _GAP
            outputs = record.outputs
            if len(outputs) > 1 or not known.isdisjoint(outputs):
                check_new_results(record, producers)
            self._register(record)
            if not read.isdisjoint(outputs):  # a node before this one, or itself, reads its result
                self.order_violated = True
            records.append(record)
        self._last_order = order
        self._nodes.extend(records)
        if self._listeners and records:
            self._tell(StoreEvent((), tuple(records)))
        return records

    def replace(
        self,
        removed: Sequence[NodeRecord],
        added: Sequence[NodeProto | NodeRecord],
        anchor: NodeRecord | None = None,
    ) -> list[NodeRecord]:
        """Replaces nodes by others, or refuses and leaves the graph as it was.

        :param removed: live nodes to remove
        :param added: new nodes, in topological order, as protos or as records made from them
        :param anchor: the new nodes take the place of this one, by default the best of *removed*
        :return: the new records
        :raises PatternError: a result that is still needed would have no producer, or two
        """
        records = [a if isinstance(a, NodeRecord) else NodeRecord(a, 0, 0) for a in added]
        gone = set(removed)
        lost = check_replacement(gone, records, self.producers, self.consumers, self.outputs)
        self.generation += 1
        anchor, places, in_order = self._places(gone, records, anchor)
        self._unregister(removed)
        for record, (order, gap) in zip(records, places, strict=True):
            record.order, record.gap = order, gap
            self._register(record)
        self._new.extend(records)
        if not in_order or len(records) > 1:
            self._note_order(records)
        if self.pinned:
            self.pinned.difference_update(lost)
        if self._listeners:
            self._tell(StoreEvent(removed, records, lost, anchor))
        return records

    def detach(self, record: NodeRecord) -> None:
        """Removes a node whose results nothing reads, or an initializer gives from now on."""
        self.generation += 1
        lost = self._remove((record,))
        if self._listeners:
            self._tell(StoreEvent((record,), (), lost))

    def redirect(
        self, old: str, new: str, removed: Sequence[NodeRecord] = ()
    ) -> Sequence[NodeRecord]:
        """Makes every reader of a result read another one.

        :param old: name of the result
        :param new: the result that is read from now on
        :param removed: the producer of *old* and the nodes only it needs, which are removed
        :return: the readers
        """
        readers = self._move_readers(old, new)
        if not readers and not removed:
            return ()
        lost = self._remove(removed)
        self.generation += 1
        moved = tuple(readers)
        if self._listeners:
            self._tell(StoreEvent(removed, (), lost, None, (old, new), moved))
        return moved

    def rename_result(self, old: str, new: str, instead_of: NodeRecord | None = None) -> None:
        """Renames a result, in its producer and its readers.

        :param old: name of the result
        :param new: its name from now on
        :param instead_of: the node that had this name until now, an Identity, which is removed
        :raises PatternError: the new name is the result of another node
        """
        given = self.producers.get(new)
        if given is not instead_of:
            raise PatternError(f"Result {old!r} cannot be renamed {new!r}: this name is produced.")
        self.generation += 1
        lost: Sequence[str] = ()
        if instead_of is not None:
            lost = tuple([n for n in self._remove((instead_of,)) if n != new])
        record = self.producers.pop(old)
        self.producers[new] = record
        record.outputs = tuple(new if name == old else name for name in record.outputs)
        record.stale = True
        self._move_readers(old, new)
        if old in self.pinned:
            self.pinned.remove(old)
            self.pinned.add(new)
        if self._listeners:
            removed = () if instead_of is None else (instead_of,)
            self._tell(StoreEvent(removed, (), lost, renamed=(old, new)))

    def add_outputs(self, names: Iterable[str]) -> None:
        """Adds results to the outputs of the graph."""
        self.generation += 1
        self.outputs.update(dict.fromkeys(names))
        if self._listeners:
            self._tell(StoreEvent(outputs=tuple(self.outputs)))

    def keep_outputs(self, names: Iterable[str]) -> None:
        """Keeps some outputs. The nodes only the others need become dead."""
        self.generation += 1
        self.outputs = dict.fromkeys(names)
        if self._listeners:
            self._tell(StoreEvent(outputs=tuple(self.outputs)))

    # -- subscribers

    def subscribe(self, listener: StoreSubscriber) -> None:
        """Notifies a subscriber of every change from now on, after the earlier subscribers."""
        if not any(known is listener for known in self._listeners):
            self._listeners = (*self._listeners, listener)

    def unsubscribe(self, listener: StoreSubscriber) -> None:
        """Stops notifying a subscriber."""
        self._listeners = tuple(known for known in self._listeners if known is not listener)

    def _tell(self, event: StoreEvent) -> None:
        for listener in self._listeners:
            listener.store_changed(event)

    def can_redirect(self, old: str, new: str) -> bool:
        """Whether no subgraph that reads *old* hides *new* behind a name of its own."""
        return old not in self.captures or not any(
            old in record.captured and record.hides(new) for record in self.readers(old)
        )

    # -- order

    def compact(self) -> None:
        """Drops dead nodes, merges new ones, sorts again if an order violation was found."""
        nodes = [r for r in self._nodes if r.alive] if self._dead else self._nodes
        if self._new:
            nodes = [*nodes, *(r for r in self._new if r.alive)]
            nodes.sort(key=by_order)
            self._new = []
        self._nodes, self._dead = nodes, 0
        if self.order_violated:
            self.sort()

    def sort(self, weight: Mapping[NodeRecord, int] | None = None) -> None:
        """Stable topological sort. Nodes with a lower weight come first when they can.

        :raises CycleError: the graph has a cycle
        """
        nodes = [r for r in (*self._nodes, *self._new) if r.alive]
        nodes.sort(key=by_order)
        self._nodes = sorted_nodes(nodes, self.producers, self.consumers, weight)
        self._new, self._dead = [], 0
        self.order_violated = False
        self._renumber()
        if self._listeners and self._nodes != nodes:
            self._tell(StoreEvent(order=tuple(self._nodes)))

    def _renumber(self) -> None:
        for i, record in enumerate(self._nodes):
            record.order, record.gap = i * _GAP, _GAP
        self._last_order = len(self._nodes) * _GAP
        self._unsorted_buckets.update(self._buckets)

    def _order_at(self, position: int | None) -> tuple[int, int]:
        if position is None or position >= len(self):
            order = self._last_order
            self._last_order += _GAP
            return order, _GAP
        if position < 0:
            position = max(0, position + len(self))
        if position == 0:
            first = self.nodes[0].order
            return first - _GAP, _GAP
        before = self.nodes[position - 1]
        return self._split(before, 1)[0]

    def _split(self, anchor: NodeRecord, n: int) -> list[tuple[int, int]]:
        """Orders and gaps of *n* nodes in the room after a live anchor."""
        if anchor.gap <= n + 1:
            self.compact()
            self._renumber()
        step = anchor.gap // (n + 1)
        places = [(anchor.order + step * (i + 1), step) for i in range(n)]
        anchor.gap = step
        return places

    def _places(
        self, gone: set[NodeRecord], records: list[NodeRecord], anchor: NodeRecord | None
    ) -> tuple[NodeRecord | None, list[tuple[int, int]], bool]:
        """Anchor, order and gap of new nodes, and whether they are known to be in order."""
        n, in_order = len(records), False
        if n == 0:
            return None, [], True
        if anchor is None:
            anchor = max(gone, key=by_order, default=None)
            producers, consumers = self.producers, self.consumers
            in_order = anchor is not None and fits(
                anchor.order, gone, records, producers, consumers
            )
            if not in_order:
                anchor = choose_anchor(gone, records, producers, consumers)
        if anchor is None:
            first = self._last_order
            self._last_order += n * _GAP
            return None, [(first + i * _GAP, _GAP) for i in range(n)], False
        if anchor not in gone:
            return anchor, self._split(anchor, n), False
        if anchor.gap < n:
            self.compact()
            self._renumber()
        if n == 1:
            return anchor, [(anchor.order, anchor.gap)], in_order
        step = anchor.gap // n
        return anchor, [(anchor.order + step * i, step) for i in range(n)], in_order

    def _note_order(self, records: Sequence[NodeRecord]) -> None:
        if not self.order_violated:
            self.order_violated = is_out_of_order(records, self.producers, self.consumers)

    # -- bookkeeping

    def _register(self, record: NodeRecord) -> None:
        for name in record.outputs:
            if name:
                self.producers[name] = record
        consumers, names = self.consumers, record.inputs
        for name in record.reads() if record.captured or "" in names else names:
            readers = consumers.get(name)
            if readers is None:
                consumers[name] = (record,)
                continue
            consumers[name] = readers = with_reader(readers, record)
            if len(readers) > 1:
                self.read_twice[name] = None
        for name in record.captured:
            self.captures[name] = self.captures.get(name, 0) + 1
        rows = self._buckets.get(key := record.key)
        if rows is None:
            self._buckets[key] = [record]
        else:
            rows.append(record)
            if len(rows) > 1 and rows[-2].order > record.order:
                self._unsorted_buckets.add(key)
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
                readers = consumers.get(name)
                if readers is None:  # no name, or the node reads it twice
                    continue
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

    def check(self) -> None:
        """Rebuilds every table from the nodes and compares.

        :raises PatternError: an invariant does not hold
        """
        fresh = GraphStore(self.outputs)
        for record in self.nodes:
            fresh.append(self.proto(record))
        check_tables(self, fresh)
