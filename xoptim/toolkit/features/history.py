"""A feature that restores earlier states of a graph."""

from __future__ import annotations

from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.graph.snapshot import Snapshot

from .base import GraphFeature


class History(GraphFeature):
    """Saves the state of a graph at checkpoints and restores any of them.

    The state is nodes, their order, outputs, types, shapes, contents and constants. A restored
    graph is written byte for byte as it was. Cost of both: O(nodes + results).

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
        """Drops all checkpoints."""
        self._snapshots.clear()
        super().on_detach(graph)

    def checkpoint(self) -> int:
        """Saves the current state of the graph.

        :return: the argument of :meth:`revert`
        """
        self._snapshots.append(Snapshot(self.graph))
        return len(self._snapshots) - 1

    def revert(self, checkpoint: int) -> None:
        """Restores a checkpoint, which is kept; later ones are dropped.

        :param checkpoint: what :meth:`checkpoint` returned
        :raises OptionError: it was dropped, or never made
        """
        if not 0 <= checkpoint < len(self._snapshots):
            raise OptionError(
                f"Unknown checkpoint {checkpoint!r}, the history has {len(self._snapshots)}."
            )
        del self._snapshots[checkpoint + 1 :]
        self._snapshots[checkpoint].restore()
