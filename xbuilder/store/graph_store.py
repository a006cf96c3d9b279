"""GraphStore, the nodes of a graph, and the only place where they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onnx import NodeProto

from ..errors import PatternError
from ..nodes.record import NodeRecord
from .events import StoreEvent, StoreSubscriber
from .replacement_check import check_new_results, check_replacement
from .store_check import check_tables
from .store_order import GAP, StoreOrder


class GraphStore(StoreOrder):
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
        super().__init__(outputs)
        self._listeners: tuple[StoreSubscriber, ...] = ()

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
        once = dict[str, str]().setdefault  # one string for a name, protobuf makes several
        for proto in protos:
            record = NodeRecord(proto, order, GAP)
            if check is not None:
                check(record)
            order += GAP
            outputs = record.outputs = tuple(map(once, record.outputs, record.outputs))
            record.inputs = tuple(map(once, record.inputs, record.inputs))
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

    def _order_changed(self) -> None:
        if self._listeners:
            self._tell(StoreEvent(order=tuple(self._nodes)))

    def check(self) -> None:
        """Rebuilds every table from the nodes and compares.

        :raises PatternError: an invariant does not hold
        """
        fresh = GraphStore(self.outputs)
        for record in self.nodes:
            fresh.append(self.proto(record))
        check_tables(self, fresh)
