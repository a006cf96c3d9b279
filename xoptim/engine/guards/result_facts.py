"""Checks that a rewrite keeps the type, the rank and the shape of the results it replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from xbuilder.errors import FactError
from xbuilder.facts.facts import ResultFacts, SavedFacts
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_record
from xbuilder.nodes.record import NodeRecord

from .dimensions import equal_on_samples, only_runs_for_some_sizes

#: called with the facts inferred for a node before they are recorded
FactCheck: TypeAlias = "Callable[[NodeRecord, Sequence[ResultFacts | None] | None], None]"


class UnprovenShapeError(Exception):
    """A rewrite may change a shape: it is only proven right for some sizes."""


class ResultFactsGuard:
    """Compares the facts of the new nodes with those known before the rewrite."""

    def __init__(self, graph: Graph):
        self.graph = graph

    @cached_property
    def free_names(self) -> frozenset[str]:
        """Dimensions of the inputs of the model, which may have any size."""
        return frozenset(self.graph.root.input_symbols)

    def check_of(self, removed: Sequence[NodeRecord], known: Sequence[SavedFacts]) -> FactCheck:
        """Makes the check of the new nodes of one rewrite.

        The check raises FactError if a kept result gets another type or another shape,
        :class:`UnprovenShapeError` if it may for some sizes.

        :param removed: nodes the rewrite removed
        :param known: saved facts of their results
        """
        facts_of = self.graph.facts

        def check(record: NodeRecord, answer: Sequence[ResultFacts | None] | None) -> None:
            for name, new in zip(record.outputs, answer or (), strict=False):
                if new is None or not name:
                    continue
                old = facts_of[name]
                if old.type == new.type and old.shape == new.shape:
                    continue
                before = next((r for r in removed if name in r.outputs), None)
                if before is None:
                    continue
                reason = facts_of.contradicts(name, new)
                doubt = "" if reason else self.unproven(name, new)
                if not reason and not doubt:
                    continue
                with facts_of.recalled(known):  # facts of the inputs of the removed nodes
                    if reason and not self._was_declared_wrong(before, name, new):
                        raise FactError(f"{name!r} had {reason}")
                    if doubt and not only_runs_for_some_sizes(self.graph, removed):
                        raise UnprovenShapeError(doubt)

        return check

    def unproven(self, name: str, new: ResultFacts) -> str:
        """The dimension that became another function of the inputs, as text; empty if none did.

        Two facts that only agree for some sizes do not contradict each other, but a rewrite giving
        the second one is wrong for all other sizes.
        """
        old = self.graph.facts[name]
        if old.shape is None or new.shape is None or old.shape == new.shape:
            return ""
        constraints = self.graph.facts.constraints
        for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)):
            if not equal_on_samples(a, b, self.free_names, constraints):
                return f"dimension {axis} of {name!r} would be {b} instead of {a}"
        return ""

    def _was_declared_wrong(self, before: NodeRecord, name: str, new: ResultFacts) -> bool:
        """Whether the former producer of a result already contradicted its declared shape."""
        graph = self.graph
        for known, facts in zip(before.outputs, infer_record(graph, before) or (), strict=False):
            if known == name and facts is not None and facts.type == new.type:
                return facts.shape is not None and facts.shape == new.shape
        return False
