"""One line of a profile: a graph, a pass, a phase, a rewriter or a step, and what is inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: what is counted or measured in a line itself, and added up over what is inside
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
    """What one line did; the measures of :data:`MEASURES` are its own, without what is inside.

    :param kind: `run`, `graph`, `pass`, `phase`, `rewriter` or `step`
    :param name: the name of the pass, of the rewriter...
    :param children: what is inside, by kind and name
    :param calls: number of times it ran
    :param time: seconds, what is inside included
    :param nodes_start: number of nodes when it began, the first time
    :param nodes_end: number of nodes when it ended, the last time
    :param nodes_max: largest number of nodes it saw
    :param visited: nodes it looked at
    :param matches: matches it found
    :param applications: matches that were applied
    :param refused: matches the engine refused or took back
    :param created: nodes it added
    :param removed: nodes it removed
    :param sorting: seconds spent putting nodes in order
    :param validation: seconds spent inferring and checking what it wrote
    :param callbacks: seconds spent in what listens to the graph
    :param vain_calls: number of times it ran and changed nothing
    :param vain_time: seconds these cost
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
        """The line of what is inside, made if it is not there yet."""
        key = kind, name
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = ProfileNode(kind, name)
        return found

    def saw(self, nodes: int) -> None:
        """Notes the number of nodes."""
        if self.nodes_start is None:
            self.nodes_start = nodes
        self.nodes_end = nodes
        self.nodes_max = max(self.nodes_max, nodes)

    def total(self, measure: str) -> Any:
        """One of :data:`MEASURES`, what is inside included."""
        return getattr(self, measure) + sum(c.total(measure) for c in self.children.values())

    @property
    def own_time(self) -> float:
        """Seconds spent in nothing that is inside."""
        return max(0.0, self.time - sum(c.time for c in self.children.values()))

    @property
    def most_nodes(self) -> int:
        """Largest number of nodes, inside included."""
        return max([self.nodes_max, *(c.most_nodes for c in self.children.values())])

    def sorted_children(self) -> list[ProfileNode]:
        """What is inside, the longest first."""
        return sorted(self.children.values(), key=lambda c: -c.time)

    def walk(self, path: tuple[ProfileNode, ...] = ()) -> Iterator[tuple[ProfileNode, ...]]:
        """Each line with those it is inside of, from the outermost one to itself."""
        path = (*path, self)
        yield path
        for child in self.sorted_children():
            yield from child.walk(path)
