"""A feature that prints every change of a graph."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO

from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord


class PrintListener(Feature):
    """Prints one line for each change: ``+`` a new node, ``-`` a removed one, ``~`` one that reads
    another result.

    :param file: where it prints, the standard output by default
    :param active: False to print nothing for a while

    ::

        builder.attach_feature(PrintListener())
    """

    def __init__(self, file: IO[str] | None = None, active: bool = True):
        self.file = file
        self.active = active

    def _print(self, text: str) -> None:
        if self.active:
            print(text, file=self.file or sys.stdout)

    def on_attach(self, graph: Graph) -> None:
        """Prints the size of the graph."""
        self._print(f"= attached, {len(graph.store)} nodes")

    def on_detach(self, graph: Graph) -> None:
        """Prints the size of the graph."""
        self._print(f"= detached, {len(graph.store)} nodes")

    def on_import(self, graph: Graph, node: NodeRecord) -> None:
        """Prints a new node."""
        self._print(f"+ {node!r}")

    def on_prune(self, graph: Graph, node: NodeRecord) -> None:
        """Prints a removed node."""
        self._print(f"- {node!r}")

    def on_change_input(self, graph: Graph, node: NodeRecord, old: str, new: str) -> None:
        """Prints the new input of a node."""
        self._print(f"~ {node!r} reads {new} instead of {old}")

    def on_rename(self, graph: Graph, old: str, new: str) -> None:
        """Prints the new name of a result."""
        self._print(f"~ {old} is {new}")

    def on_outputs(self, graph: Graph, outputs: Sequence[str]) -> None:
        """Prints the outputs."""
        self._print(f"~ outputs: {', '.join(outputs)}")

    def on_sort(self, graph: Graph, nodes: Sequence[NodeRecord]) -> None:
        """Prints that the nodes were sorted."""
        self._print(f"~ {len(nodes)} nodes sorted")
