"""One line of a profile: a graph, a pass, a phase, a rewriter or a step, with inner lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: measures of a line itself, summed over the inner lines
MEASURES = (
    "visited",
    "matches",
    "applications",
    "refused",
    "created",
    "removed",
    "sorting",
    "validation",
    "callbacks",
    "vain_calls",
    "vain_time",
)


@dataclass
class ProfileNode:
    """The measures of one line; those of :data:`MEASURES` exclude the inner lines.

    :param kind: `run`, `graph`, `pass`, `phase`, `rewriter` or `step`
    :param name: the name of the pass, of the rewriter...
    :param children: inner lines, by kind and name
    :param calls: number of times it ran
    :param time: seconds, inner lines included
    :param nodes_start: number of nodes when it began, the first time
    :param nodes_end: number of nodes when it ended, the last time
    :param nodes_max: largest number of nodes it saw
    :param visited: nodes it visited
    :param matches: matches it found
    :param applications: matches that were applied
    :param refused: matches the engine refused or undid
    :param created: nodes it added
    :param removed: nodes it removed
    :param sorting: seconds spent putting nodes in order
    :param validation: seconds spent inferring and checking its new nodes
    :param callbacks: seconds spent in subscribers of the graph
    :param vain_calls: number of times it ran and changed nothing
    :param vain_time: seconds these calls took
    """

    kind: str
    name: str
    children: dict[tuple[str, str], ProfileNode] = field(default_factory=dict)
    calls: int = 0
    time: float = 0.0
    nodes_start: int | None = None
    nodes_end: int | None = None
    nodes_max: int = 0
    visited: int = 0
    matches: int = 0
    applications: int = 0
    refused: int = 0
    created: int = 0
    removed: int = 0
    sorting: float = 0.0
    validation: float = 0.0
    callbacks: float = 0.0
    vain_calls: int = 0
    vain_time: float = 0.0

    def child(self, kind: str, name: str) -> ProfileNode:
        """The inner line of a kind and a name, created if needed."""
        key = kind, name
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = ProfileNode(kind, name)
        return found

    def saw(self, nodes: int) -> None:
        """Records the number of nodes."""
        if self.nodes_start is None:
            self.nodes_start = nodes
        self.nodes_end = nodes
        self.nodes_max = max(self.nodes_max, nodes)

    def total(self, measure: str) -> Any:
        """One of :data:`MEASURES`, inner lines included."""
        return getattr(self, measure) + sum(c.total(measure) for c in self.children.values())

    @property
    def own_time(self) -> float:
        """Seconds spent outside the inner lines."""
        return max(0.0, self.time - sum(c.time for c in self.children.values()))

    @property
    def most_nodes(self) -> int:
        """Largest number of nodes, inner lines included."""
        return max([self.nodes_max, *(c.most_nodes for c in self.children.values())])

    def sorted_children(self) -> list[ProfileNode]:
        """Inner lines, the longest first."""
        return sorted(self.children.values(), key=lambda c: -c.time)

    def walk(self, path: tuple[ProfileNode, ...] = ()) -> Iterator[tuple[ProfileNode, ...]]:
        """Each line with its ancestors, from the outermost one to itself."""
        path = (*path, self)
        yield path
        for child in self.sorted_children():
            yield from child.walk(path)
