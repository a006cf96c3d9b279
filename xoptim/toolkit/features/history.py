"""Comes back to what a graph was."""

from __future__ import annotations

from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.graph.snapshot import Snapshot

from .base import GraphFeature


class History(GraphFeature):
    """Remembers what the graph is at some moments, and comes back to any of them.

    Nodes, their order, outputs, types, shapes, contents, constants: the graph that comes back is
    written byte for byte as the one that was left. Cost of both: O(nodes + results).

    ::

        history = History()
        builder.attach_feature(history)
        here = history.checkpoint()
        builder.optimize()
        history.revert(here)
    """

    def __init__(self) -> None:
        self._snapshots: list[Snapshot] = []

    def on_detach(self, graph: Graph) -> None:
        """Forgets everything."""
        self._snapshots.clear()
        super().on_detach(graph)

    def checkpoint(self) -> int:
        """Remembers the graph as it is.

        :return: what to give to :meth:`revert`
        """
        self._snapshots.append(Snapshot(self.graph))
        return len(self._snapshots) - 1

    def revert(self, checkpoint: int) -> None:
        """Comes back to a checkpoint, which stays; those made after it are forgotten.

        :param checkpoint: what :meth:`checkpoint` returned
        :raises OptionError: it was forgotten, or never made
        """
        if not 0 <= checkpoint < len(self._snapshots):
            raise OptionError(
                f"Unknown checkpoint {checkpoint!r}, the history has {len(self._snapshots)}."
            )
        del self._snapshots[checkpoint + 1 :]
        self._snapshots[checkpoint].restore()
