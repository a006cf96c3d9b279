"""What changed since each member of an equilibrium last looked at the graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore

from .graph_members import GraphMember
from .schedule import SWEEP_SHARE
from .worklist import Worklist


class MemberChanges:
    """Listens to a store for the members that only have to look near what changed.

    Invariant: nothing is followed outside of :meth:`following`, every member looks everywhere the
    first time. Cost: O(1) a change for each of these members.

    :param store: the graph
    """

    def __init__(self, store: GraphStore):
        self._store = store
        self._heard: dict[GraphMember, Worklist] = {}
        self._follows = False
        #: a member did not look at the whole graph
        self.is_partial = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follows the changes for a while: members run until a fixed point, which is confirmed."""
        before, self._follows = self._follows, True
        try:
            yield
        finally:
            self._follows = before
            self.forget()

    def forget(self) -> None:
        """Members look everywhere the next time."""
        for heard in self._heard.values():
            self._store.unsubscribe(heard)
        self._heard.clear()
        self.is_partial = False

    def since_last_run(self, member: GraphMember) -> list[StoreEvent] | None:
        """What changed since a member began to look at the graph, which it does now again.

        :param member: the member
        :return: None if it has to look everywhere
        """
        if not self._follows or not member.follows_changes:
            return None
        heard = self._heard.get(member)
        if heard is None:
            heard = self._heard[member] = Worklist(self._store)
            self._store.subscribe(heard)
            return None
        events, heard.events = heard.events, []
        changes = [e for e in events if e.added or e.removed or e.readers or e.renamed]
        if len(changes) * SWEEP_SHARE > len(self._store):
            return None  # its neighbourhood would cost more
        self.is_partial = True
        return changes
