"""LiveNames, a set of results from which a store removes those that no longer exist."""

from __future__ import annotations

from .events import StoreEvent


class LiveNames(set[str]):
    """A set of results, kept up to date once it subscribes to their store: removed results leave
    it, renamed ones are renamed.

    ::

        names = LiveNames(["x", "y"])
        store.subscribe(names)
    """

    def store_changed(self, event: StoreEvent) -> None:
        """Forgets the results that were removed, follows the one that was renamed."""
        self.difference_update(event.lost)
        if event.renamed is not None and event.renamed[0] in self:
            old, new = event.renamed
            self.remove(old)
            self.add(new)
