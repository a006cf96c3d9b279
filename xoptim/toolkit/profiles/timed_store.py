"""A store that measures the time it spends sorting nodes and notifying subscribers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from xbuilder.graph.features import Attachment
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent, StoreSubscriber
from xbuilder.store.graph_store import GraphStore


class StoreWatch(Protocol):
    """Receives the times and the changes of a store."""

    def spent(self, what: str, seconds: float) -> None:
        """Seconds spent in `sorting`, or in a subscriber, given by the name of its class."""

    def changed(self, store: GraphStore, event: StoreEvent) -> None:
        """The store changed."""


class TimedStore(GraphStore):
    """The class of a store while it is measured, so that other stores pay nothing.

    Invariant: notifications in the middle of a sort are not counted as sorting.
    """

    watch: StoreWatch
    _inside: list[float]

    def compact(self) -> None:
        """Same, measured."""
        with self._measured("sorting"):
            super().compact()

    def sort(self, weight: Mapping[NodeRecord, int] | None = None) -> None:
        """Same, measured."""
        with self._measured("sorting"):
            super().sort(weight)

    def _tell(self, event: StoreEvent) -> None:
        for listener in self._listeners:
            with self._measured(subscriber_name(listener)):
                listener.store_changed(event)
        self.watch.changed(self, event)

    @contextmanager
    def _measured(self, what: str) -> Iterator[None]:
        """Reports the duration of a block, without the blocks inside."""
        begin = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - begin
            self.watch.spent(what, seconds - self._inside.pop())
            if self._inside:
                self._inside[-1] += seconds


def subscriber_name(listener: StoreSubscriber) -> str:
    """Class of a subscriber, or of its feature if there is one."""
    subscriber = listener.feature if isinstance(listener, Attachment) else listener
    return type(subscriber).__name__


def start_measuring(store: GraphStore, watch: StoreWatch) -> None:
    """Starts to measure a store."""
    store.__class__ = TimedStore
    vars(store).update(watch=watch, _inside=[])


def stop_measuring(store: GraphStore) -> None:
    """Stops measuring a store."""
    store.__class__ = GraphStore
    for name in ("watch", "_inside"):
        vars(store).pop(name, None)
