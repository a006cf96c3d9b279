"""The nodes of a graph: order, producers, consumers, buckets by operator type."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from onnx import NodeProto

from ..errors import InvalidModelError, PatternError
from ..nodes.protos import may_own_graph
from ..nodes.record import Key, NodeRecord
from .cycles import CycleError, find_cycle
from .readers import NO_READERS, Readers, as_readers, with_reader, without_reader

_GAP = 1 << 40
#: key to sort records as the nodes of the graph
by_order = attrgetter("order")


class GraphStore:
    """Holds the nodes of one graph; the only place where a graph changes.

    Invariants (:meth:`check` verifies them all):

    1. a name has at most one producer; `consumers[name]` holds its readers, in the order they came,
       a name captured by a subgraph is read by the node owning it;
    2. `bucket(domain, op_type)` gives the live nodes of a type in graph order;
    3. only :meth:`append`, :meth:`replace`, :meth:`redirect` and :meth:`rename_result` change the
       graph, each in O(edges touched);
    4. new nodes take the place of an anchor; the list is compacted when it is read; a stable sort
       happens only after an order violation was seen.
    """

    def __init__(self, outputs: Iterable[str] = ()):
        self.producers: dict[str, NodeRecord] = {}
        self.consumers: dict[str, Readers] = {}
        self.captures: dict[str, int] = {}
        self.outputs: dict[str, None] = dict.fromkeys(outputs)
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
        """The record of a node given by this store, None for any other node."""
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

    def bucket_keys(self) -> list[Key]:
        """Keys `(domain, op_type)` met so far."""
        return list(self._buckets)

    def possible_owners(self) -> list[NodeRecord]:
        """Nodes whose type may own a subgraph, in graph order. Cost: O(number of these nodes)."""
        keys = [key for key in self._buckets if may_own_graph(key[1], key[0])]
        return sorted((r for key in keys for r in self.bucket(*key)), key=by_order)

    def is_used(self, name: str) -> bool:
        """Tells if a node or a subgraph reads a result, or if it is an output. Cost: O(1)."""
        return name in self.consumers or name in self.outputs

    def is_used_more_than_once(self, name: str) -> bool:
        """Tells if taking one use away leaves others: an input, a subgraph, an output. Cost:
        O(1)."""
        readers = self.consumers.get(name)
        if not readers:
            return False
        if len(readers) > 1 or name in self.outputs or name in self.captures:
            return True
        (reader,) = readers
        return reader.inputs.count(name) > 1

    def readers(self, name: str) -> Readers:
        """Nodes reading a name, in the order they came."""
        return self.consumers.get(name, NO_READERS)

    # -- changing

    def append(self, proto: NodeProto, position: int | None = None) -> NodeRecord:
        """Adds a node at the end, or before the node at *position*."""
        self.generation += 1
        order, gap = self._order_at(position)
        record = NodeRecord(proto, order, gap)
        self._check_new_results(record)
        self._register(record)
        if position is None and not self._new and not self._dead:
            self._nodes.append(record)
        else:
            self._new.append(record)
        self._note_order([record])
        return record

    def extend(
        self, protos: Iterable[NodeProto], check: Callable[[NodeRecord], None] | None = None
    ) -> list[NodeRecord]:
        """Adds many nodes at the end, as :meth:`append` does. Returns their records.

        :param protos: the nodes
        :param check: looks at each of them, may raise an exception
        """
        self.compact()
        self.generation += 1
        consumers = self.consumers
        records: list[NodeRecord] = []
        order = self._last_order
        for proto in protos:
            record = NodeRecord(proto, order, _GAP)
            if check is not None:
                check(record)
            order += _GAP
            for name in record.outputs:
                # a node before this one, or itself, reads its result
                if name in consumers or name in record.inputs or name in record.captured:
                    self.order_violated = True
            self._check_new_results(record)
            self._register(record)
            records.append(record)
        self._last_order = order
        self._nodes.extend(records)
        return records

    def _check_new_results(self, record: NodeRecord) -> None:
        outputs = record.outputs
        counts = Counter(outputs) if len(outputs) > 1 else {}
        for name in outputs:
            if name in self.producers or (name and counts.get(name, 1) > 1):
                raise InvalidModelError(
                    f"Result {name!r} is produced twice, by {self.producers.get(name, record)!r} "
                    f"and by {record!r}; every result of a graph needs its own name."
                )

    def replace(
        self,
        removed: Sequence[NodeRecord],
        added: Sequence[NodeProto | NodeRecord],
        anchor: NodeRecord | None = None,
    ) -> list[NodeRecord]:
        """Replaces nodes by others, or refuses and leaves the graph as it was.

        :param removed: live nodes to take away
        :param added: new nodes, in topological order, as protos or as records made from them
        :param anchor: the new nodes take the place of this one, by default the best of *removed*
        :return: the new records
        :raises PatternError: a result that is still needed would have no producer, or two
        """
        records = [a if isinstance(a, NodeRecord) else NodeRecord(a, 0, 0) for a in added]
        gone = set(removed)
        self._validate(gone, records)
        self.generation += 1
        places, fits = self._places(gone, records, anchor)
        for record in removed:
            self._unregister(record)
        for record, (order, gap) in zip(records, places, strict=True):
            record.order, record.gap = order, gap
            self._register(record)
        self._new.extend(records)
        if not fits or len(records) > 1:
            self._note_order(records)
        return records

    def detach(self, record: NodeRecord) -> None:
        """Removes a node whose results are given by something else: an initializer, a renaming."""
        self.generation += 1
        self._unregister(record)

    def redirect(self, old: str, new: str) -> list[NodeRecord]:
        """Makes every reader of *old* read *new*. Returns the readers."""
        readers = self.consumers.pop(old, None)
        if not readers:
            return []
        self.generation += 1
        known = self.consumers.get(new)
        if known is None:
            self.consumers[new] = readers
        elif len(readers) == 1:
            self.consumers[new] = with_reader(known, *readers)
        else:
            self.consumers[new] = as_readers((*known, *readers))
        for record in readers:
            self._rename_reads(record, old, new)
        self._check_reader_order(new, readers)
        return list(readers)

    def rename_result(self, old: str, new: str) -> None:
        """Gives another name to a result: its producer and its readers follow."""
        if new in self.producers:
            raise PatternError(f"Result {old!r} cannot be renamed {new!r}: this name is produced.")
        self.generation += 1
        record = self.producers.pop(old)
        self.producers[new] = record
        record.outputs = tuple(new if name == old else name for name in record.outputs)
        record.stale = True
        self.redirect(old, new)

    def keep_outputs(self, names: Iterable[str]) -> None:
        """Keeps some outputs, what the others need may not be needed any more."""
        self.generation += 1
        self.outputs = dict.fromkeys(names)

    def can_redirect(self, old: str, new: str) -> bool:
        """Tells if no subgraph reading *old* hides *new* behind a name of its own."""
        return old not in self.captures or not any(
            old in record.captured and record.hides(new) for record in self.readers(old)
        )

    # -- order

    def compact(self) -> None:
        """Drops dead nodes, merges new ones in, sorts again if an order violation was seen."""
        nodes = [r for r in self._nodes if r.alive] if self._dead else self._nodes
        if self._new:
            nodes = [*nodes, *(r for r in self._new if r.alive)]
            nodes.sort(key=by_order)
            self._new = []
        self._nodes, self._dead = nodes, 0
        if self.order_violated:
            self.sort()

    def sort(self, weight: dict[NodeRecord, int] | None = None) -> None:
        """Stable topological sort. Nodes with a lower weight go first when they can.

        :raises CycleError: the graph has a cycle
        """
        nodes = [r for r in (*self._nodes, *self._new) if r.alive]
        nodes.sort(key=by_order)
        rank = {r: (0 if weight is None else weight.get(r, 0), i) for i, r in enumerate(nodes)}
        missing: dict[NodeRecord, int] = {}
        for r in nodes:
            missing[r] = len({n for n in r.reads() if n in self.producers})
        heap = [(rank[r], r) for r in nodes if missing[r] == 0]
        heapq.heapify(heap)
        ordered: list[NodeRecord] = []
        while heap:
            _, r = heapq.heappop(heap)
            ordered.append(r)
            for name in r.outputs:
                for reader in self.readers(name):
                    missing[reader] -= 1
                    if missing[reader] == 0:
                        heapq.heappush(heap, (rank[reader], reader))
        if len(ordered) != len(nodes):
            done = set(ordered)
            raise CycleError(find_cycle(self.producers, set(nodes) - done))
        self._nodes, self._new, self._dead = ordered, [], 0
        self.order_violated = False
        self._renumber()

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
        if position == 0:
            first = self.nodes[0].order
            return first - _GAP, _GAP
        before = self.nodes[position - 1]
        return self._split(before, 1)[0]

    def _split(self, anchor: NodeRecord, n: int) -> list[tuple[int, int]]:
        """Places for *n* nodes in the room after a live anchor."""
        if anchor.gap <= n + 1:
            self.compact()
            self._renumber()
        step = anchor.gap // (n + 1)
        places = [(anchor.order + step * (i + 1), step) for i in range(n)]
        anchor.gap = step
        return places

    def _places(
        self, gone: set[NodeRecord], records: list[NodeRecord], anchor: NodeRecord | None
    ) -> tuple[list[tuple[int, int]], bool]:
        """Order and gap of new nodes, and whether the outer graph is in order with them."""
        n, fits = len(records), False
        if n == 0:
            return [], True
        if anchor is None:
            anchor = max(gone, key=by_order, default=None)
            fits = anchor is not None and self._fits(anchor.order, gone, records)
            if not fits:
                anchor = self._choose_anchor(gone, records)
        if anchor is None:
            places = []
            for _ in records:
                places.append((self._last_order, _GAP))
                self._last_order += _GAP
            return places, False
        if anchor not in gone:
            return self._split(anchor, n), False
        if anchor.gap < n:
            fits = False
            self.compact()
            self._renumber()
        if n == 1:
            return [(anchor.order, anchor.gap)], fits
        step = anchor.gap // n
        return [(anchor.order + step * i, step) for i in range(n)], fits

    def _fits(self, order: int, gone: set[NodeRecord], records: list[NodeRecord]) -> bool:
        """Tells if a place stands after every input of new nodes and before every reader."""
        producers, consumers = self.producers, self.consumers
        for record in records:
            for name in record.reads():
                p = producers.get(name)
                if p is not None and p.order >= order and p not in gone:
                    return False
            for name in record.outputs:
                if name in record.inputs:  # a cycle
                    return False
                for r in consumers.get(name, ()):
                    if r.order <= order and r not in gone:
                        return False
        return True

    def _choose_anchor(self, gone: set[NodeRecord], records: list[NodeRecord]) -> NodeRecord | None:
        """The last removed node that stands after every input and before every reader."""
        made = {name for r in records for name in r.outputs if name}
        low, low_record = -1, None
        for r in records:
            for name in r.reads():
                p = self.producers.get(name) if name not in made else None
                if p is not None and p not in gone and p.order > low:
                    low, low_record = p.order, p
        readers = [r for name in made for r in self.readers(name) if r not in gone]
        high = min((r.order for r in readers), default=None)
        best: NodeRecord | None = None
        for r in gone:
            inside = r.order > low and (high is None or r.order < high)
            if inside and (best is None or r.order > best.order):
                best = r
        if best is not None:
            return best
        if low_record is not None:
            return low_record
        return max(gone, key=by_order, default=None)

    def _note_order(self, records: list[NodeRecord]) -> None:
        producers, consumers = self.producers, self.consumers
        for record in records:
            order = record.order
            for name in record.reads():
                p = producers.get(name)
                if p is not None and p.order >= order:
                    self.order_violated = True
            for name in record.outputs:
                if name in consumers and any(r.order <= order for r in consumers[name]):
                    self.order_violated = True

    def _check_reader_order(self, name: str, readers: Readers) -> None:
        p = self.producers.get(name)
        if p is None:
            return
        order = p.order
        for r in readers:
            if r.order <= order:
                self.order_violated = True

    # -- bookkeeping

    def _validate(self, gone: set[NodeRecord], records: list[NodeRecord]) -> None:
        for r in gone:
            if not r.alive:
                raise PatternError(f"Node {r!r} was already removed, it cannot be replaced.")
        made: set[str] = set()
        for r in records:
            for name in r.outputs:
                if not name:
                    continue
                p = self.producers.get(name)
                if name in made or (p is not None and p not in gone):
                    raise PatternError(f"Result {name!r} of {r!r} already has a producer.")
                made.add(name)
        lost = {n for r in gone for n in r.outputs if n and n not in made}
        if lost:
            self._check_lost(lost, gone, records)

    def _check_lost(self, lost: set[str], gone: set[NodeRecord], records: list[NodeRecord]) -> None:
        for name in sorted(lost) if len(lost) > 1 else lost:
            if name in self.outputs:
                raise PatternError(
                    f"Result {name!r} is an output of the graph and has no producer."
                )
            for reader in self.consumers.get(name, ()):
                if reader not in gone:
                    raise PatternError(
                        f"Result {name!r} is still needed by {reader!r} and has no producer."
                    )
        for r in records:
            for name in r.reads():
                if name in lost:
                    raise PatternError(f"Node {r!r} reads {name!r} whose producer is removed.")

    def _register(self, record: NodeRecord) -> None:
        for name in record.outputs:
            if name:
                self.producers[name] = record
        consumers = self.consumers
        for name in record.reads():
            readers = consumers.get(name)
            consumers[name] = (record,) if readers is None else with_reader(readers, record)
        for name in record.captured:
            self.captures[name] = self.captures.get(name, 0) + 1
        key = (record.domain, record.op_type)
        rows = self._buckets.get(key)
        if rows is None:
            self._buckets[key] = [record]
        else:
            rows.append(record)
            if len(rows) > 1 and rows[-2].order > record.order:
                self._unsorted_buckets.add(key)
        self.index[id(record._proto)] = record

    def _unregister(self, record: NodeRecord) -> None:
        record.alive = False
        self._dead += 1
        for name in record.outputs:
            if name:
                del self.producers[name]
        consumers = self.consumers
        for name in record.reads():
            readers = consumers.get(name)
            if readers is None:  # the node reads it twice
                continue
            if len(readers) > 1:
                consumers[name] = without_reader(readers, record)
            elif record in readers:
                del consumers[name]
        for name in record.captured:
            self._release_capture(name)
        self._dirty_buckets.add((record.domain, record.op_type))
        del self.index[id(record._proto)]

    def _release_capture(self, name: str) -> None:
        self.captures[name] -= 1
        if not self.captures[name]:
            del self.captures[name]

    def _rename_reads(self, record: NodeRecord, old: str, new: str) -> None:
        if old in record.captured:
            if new not in record.captured:
                self.captures[new] = self.captures.get(new, 0) + 1
            self._release_capture(old)
        record.rename_read(old, new)

    def check(self) -> None:
        """Rebuilds everything from the nodes and compares.

        :raises PatternError: an invariant does not hold
        """
        from .store_check import check_store

        check_store(self)
