"""The events a store notifies its subscribers of, one for each change of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..nodes.record import NodeRecord


class StoreEvent:
    """One change of a graph, notified once it is done.

    It holds enough to replay it on a copy of the graph. The records may change after the event, so
    that a subscriber that needs a node in its current state reads its proto at once.

    :param removed: nodes that left the graph
    :param added: new nodes, in topological order
    :param lost: results of the removed nodes that no node produces any more under the same name
    :param anchor: the new nodes take its place if it is one of the removed ones, else they follow
        it; None if they are at the end
    :param redirected: a name and the one its readers read from now on
    :param readers: the nodes that read another name because of that
    :param position: number of nodes before a node inserted at a given place
    :param renamed: old and new name of a result, whose readers follow
    :param outputs: outputs of the graph, if they changed
    :param order: all the nodes in their new order, if they were sorted
    """

    __slots__ = (
        "added",
        "anchor",
        "lost",
        "order",
        "outputs",
        "position",
        "readers",
        "redirected",
        "removed",
        "renamed",
    )

    def __init__(
        self,
        removed: Sequence[NodeRecord] = (),
        added: Sequence[NodeRecord] = (),
        lost: Sequence[str] = (),
        anchor: NodeRecord | None = None,
        redirected: tuple[str, str] | None = None,
        readers: Sequence[NodeRecord] = (),
        position: int | None = None,
        renamed: tuple[str, str] | None = None,
        outputs: Sequence[str] | None = None,
        order: Sequence[NodeRecord] | None = None,
    ):
        self.removed = removed
        self.added = added
        self.lost = lost
        self.anchor = anchor
        self.redirected = redirected
        self.readers = readers
        self.position = position
        self.renamed = renamed
        self.outputs = outputs
        self.order = order


class StoreSubscriber(Protocol):
    """Interface of a subscriber, notified of every change of a store.

    It must not change the store during a notification.

    ::

        class Counter:
            def __init__(self):
                self.removed = 0

            def store_changed(self, event):
                self.removed += len(event.removed)

        counter = Counter()
        builder.store.subscribe(counter)
    """

    def store_changed(self, event: StoreEvent) -> None:
        """Called after a change of the store, which is consistent again."""
