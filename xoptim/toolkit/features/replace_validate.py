"""Replaces results under checks, and reverts a replacement that breaks one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xbuilder.errors import OptionError, PatternError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord

from ...authoring.context import context_of
from ...authoring.patterns import MatchResult, PatternOptimization
from ...authoring.replacements import match_of_replacements
from ...authoring.right_side import NewNodeFactory, Replacement
from ...engine.applying import Applier
from ...engine.optimizer import GraphBuilderPatternOptimization
from .base import GraphFeature

#: the reason why a graph is wrong, empty if it is right
Check = Callable[[Graph], str]


class ReplacementError(PatternError):
    """A replacement broke a check; the graph is restored."""


@dataclass(frozen=True)
class Failure:
    """A replacement that was reverted.

    :param replaced: the results
    :param reason: purpose of the replacement
    :param refusal: reason why it was reverted
    """

    replaced: tuple[str, ...]
    reason: str
    refusal: str


class _Asked(PatternOptimization):
    """Stands for the author of a replacement in the messages of the engine."""

    def __init__(self, reason: str):
        super().__init__()
        self.reason = reason
        self.name = reason or "replace_all_validate"


class ReplaceValidate(GraphFeature):
    """Replaces results of a graph, all or none, and reverts a replacement that breaks a check.

    The checks are those of the engine (results keep their types and shapes, no cycle, no needed
    result loses its producer), those of this feature, and method `validate` of every feature
    attached to the graph. While it is attached, its checks hold for the rewrites of a run as well.
    Cost of a replacement: that of a rewrite, and of the checks; O(nodes) if it is reverted.

    :param checks: functions of a graph, each returns the reason why it is wrong, empty if it is
        right
    :param verbose: prints the reverted replacements

    ::

        replacer = ReplaceValidate()
        builder.attach_feature(replacer)
        replacer.replace_validate("y", replacer.op.Mul("x", "x"), reason="pow")
    """

    def __init__(self, checks: Sequence[Check] = (), verbose: int = 0):
        self.checks = tuple(checks)
        self.verbose = verbose
        self.failures: list[Failure] = []

    @property
    def op(self) -> NewNodeFactory:
        """Makes new operators, `op.Mul("x", "x")`. They join the graph if they are accepted."""
        return NewNodeFactory(self.graph.main_opset)

    def validate(self, graph: Graph) -> str:
        """Runs the checks of this feature."""
        return next(filter(None, (check(graph) for check in self.checks)), "")

    def replace_validate(self, old: str, new: Replacement, reason: str = "") -> None:
        """Replaces one result, see :meth:`replace_all_validate`."""
        self.replace_all_validate({old: new}, reason)

    def replace_all_validate(
        self, replacements: Mapping[str, Replacement], reason: str = ""
    ) -> None:
        """Replaces results, all of them or none.

        :param replacements: replacement of each result: a name, a new operator, a constant
        :param reason: purpose of the replacement, shown in messages
        :raises ReplacementError: the graph would be wrong, it is restored
        :raises OptionError: one of these results has no producer
        """
        try:
            refusal = self._replace(replacements, _Asked(reason))
        except PatternError as e:
            self._note(replacements, reason, str(e))
            raise ReplacementError(str(e)) from e
        if refusal:
            self._note(replacements, reason, refusal)
            raise ReplacementError(f"{', '.join(replacements)} cannot be replaced: {refusal}.")

    def _note(self, replacements: Mapping[str, Replacement], reason: str, refusal: str) -> None:
        self.failures.append(Failure(tuple(replacements), reason, refusal))
        if self.verbose:
            print(f"[ReplaceValidate] {reason or ', '.join(replacements)} reverted: {refusal}")

    def _replace(self, replacements: Mapping[str, Replacement], asked: _Asked) -> str:
        """Replaces results. Returns the reason of a refusal, empty if it is done."""
        engine = GraphBuilderPatternOptimization(self.graph, [])
        context = context_of(engine)
        producers = self.graph.store.producers
        for name in replacements:
            if name not in producers:
                raise OptionError(f"No node gives {name!r}, only results of nodes are replaced.")
        match = match_of_replacements(context, asked, replacements)
        if not isinstance(match, MatchResult):
            return match
        applier = Applier(engine)
        refused = True
        try:
            done = applier.apply(match)
            applier.check_order([done])
            refused = bool(done.refusal)
        finally:
            if refused:
                _restore_places(self.graph, match.records or ())
        if not refused:
            engine.cleaning.after(self.graph, [done])
        return done.refusal


def _restore_places(graph: Graph, before: Sequence[NodeRecord]) -> None:
    """Moves restored nodes to their first places. Cost: O(nodes) if there are several.

    :param before: their former records
    """
    if len(before) < 2:
        return
    store = graph.store
    places = {record: record.order for record in store.nodes}
    for record in before:
        places.update({store.producers[name]: record.order for name in record.outputs if name})
    if sorted(places, key=places.__getitem__) != store.nodes:
        store.sort(places)
