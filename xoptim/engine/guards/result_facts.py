"""What a rewrite must keep: the type, the rank and the shape of the results that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from xbuilder.errors import FactError
from xbuilder.facts.facts import ResultFacts, SavedFacts
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_record
from xbuilder.nodes.record import NodeRecord

from .dimensions import not_refuted, restricts_sizes

#: is told what was inferred of a node before it is kept
FactCheck: TypeAlias = "Callable[[NodeRecord, Sequence[ResultFacts | None] | None], None]"


class UnprovenShape(Exception):
    """A rewrite may change a shape: it is right for some sizes only, as far as is known."""


class ResultFactsGuard:
    """Compares what a rewrite gives with what was known before.

    :param graph: the graph
    """

    def __init__(self, graph: Graph):
        self.graph = graph

    @cached_property
    def free_names(self) -> frozenset[str]:
        """Dimensions of the inputs of the model: any size is possible."""
        return frozenset(self.graph.root.input_symbols)

    def check_of(self, removed: Sequence[NodeRecord], known: Sequence[SavedFacts]) -> FactCheck:
        """Makes the check of the new nodes of one rewrite.

        The check raises FactError if a result that stays gets another type or another shape,
        :class:`UnprovenShape` if it may for some sizes.

        :param removed: nodes the rewrite took away
        :param known: what was known of their results
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
                with facts_of.recalled(known):  # of what the removed nodes read
                    if reason and not self._was_declared_wrong(before, name, new):
                        raise FactError(f"{name!r} had {reason}")
                    if doubt and not restricts_sizes(self.graph, removed):
                        raise UnprovenShape(doubt)

        return check

    def unproven(self, name: str, new: ResultFacts) -> str:
        """Says which dimension is another function of the inputs than before.

        Two facts that only agree for some sizes do not contradict each other, a rewrite giving
        the second one is nevertheless wrong for all other sizes.
        """
        old = self.graph.facts[name]
        if old.shape is None or new.shape is None or old.shape == new.shape:
            return ""
        constraints = self.graph.facts.constraints
        for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)):
            if not not_refuted(a, b, self.free_names, constraints):
                return f"dimension {axis} of {name!r} would be {b} instead of {a}"
        return ""

    def _was_declared_wrong(self, before: NodeRecord, name: str, new: ResultFacts) -> bool:
        """Tells if the node that gave a result already contradicted what the model declares."""
        graph = self.graph
        for known, facts in zip(before.outputs, infer_record(graph, before) or (), strict=False):
            if known == name and facts is not None and facts.type == new.type:
                return facts.shape is not None and facts.shape == new.shape
        return False
