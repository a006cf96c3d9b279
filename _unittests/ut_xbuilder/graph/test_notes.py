"""State that passes keep about a graph."""

from __future__ import annotations

from dataclasses import dataclass

from xbuilder import GraphBuilder
from xbuilder.graph.notes import Notes


@dataclass
class Visits:
    count: int = 0


def test_a_note_is_made_once() -> None:
    notes = Notes()
    assert list(notes) == []
    notes[Visits].count += 1
    assert notes[Visits].count == 1 and list(notes) == [Visits(1)]


def test_each_graph_has_its_own() -> None:
    graph = GraphBuilder(18).graph
    graph.notes[Visits].count = 3
    assert graph.child().notes[Visits].count == 0
