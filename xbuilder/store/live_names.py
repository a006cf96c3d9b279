"""Names of results that are remembered as long as a node gives them."""

from __future__ import annotations

from .events import StoreEvent


class LiveNames(set[str]):
    """A set of results, once it listens to their store: one that goes leaves it, one that is
    renamed keeps its place.

    ::

        names = LiveNames(["x", "y"])
        store.subscribe(names)
    """

    def store_changed(self, event: StoreEvent) -> None:
        """Forgets results that went, follows one that was renamed."""
        self.difference_update(event.lost)
        if event.renamed is not None and event.renamed[0] in self:
            old, new = event.renamed
            self.remove(old)
            self.add(new)
