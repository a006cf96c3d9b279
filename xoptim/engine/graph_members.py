"""What works on a whole graph, and the graph it is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from onnx import NodeProto

from xbuilder.graph.features import Feature, attach
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent

from ..authoring.context import RewriteContext
from ..authoring.patterns import MatchResult
from ..authoring.replacements import Removed, match_replacing
from ..authoring.rewriters import DistinctMember, Member
from ..authoring.right_side import Replacement
from ..authoring.roots import Sweep, order_of
from .outcomes import Application, PatternRun
from .state import EngineState
from .worklist import Worklist


class MemberRun(Protocol):
    """What the engine does for a :class:`GraphMember` while it runs."""

    def apply(self, match: MatchResult) -> Application:
        """Applies a match at once."""

    def note(self, applications: Sequence[Application]) -> None:
        """Adds rewrites that were applied."""

    def by_engine(self) -> AbstractContextManager[None]:
        """The engine makes the changes of the block, it knows of them."""

    def matched(self, run: PatternRun) -> None:
        """Tells the observers what a pattern did."""

    def run(self, member: GraphMember) -> None:
        """Runs another member as a part of this one."""


class GraphMember(DistinctMember):
    """Works on a whole graph, where a pattern looks at a node.

    The engine runs it before the patterns, then each time the patterns have nothing left to do,
    until nothing changes. Two instances differ.

    Attribute `follows_changes`: when it runs again, it looks near what changed, which
    :meth:`EditableGraph.to_visit` gives; the fixed point is confirmed by a run on the whole graph.
    """

    follows_changes: bool = False

    def add_requirements(self, graph: EditableGraph) -> None:
        """Prepares a graph before :meth:`apply`, attaches the features it needs for instance."""

    def apply(self, graph: EditableGraph) -> None:
        """Changes a graph.

        :param graph: answers questions, changes
        """
        raise NotImplementedError(f"{type(self).__name__} must define method apply.")


class EditableGraph(RewriteContext):
    """The graph a rewriter changes: every question of :class:`RewriteContext`, new operators with
    `graph.op`, and :meth:`replace`.

    A replacement happens at once, with the guards of the engine: the results keep their types and
    shapes, nothing that is needed loses its producer, no cycle appears, dead nodes go.

    :param state: the engine
    :param member: what changes the graph
    :param run: applies matches
    :param events: what changed since the member last ran, None if it looks everywhere
    """

    def __init__(
        self,
        state: EngineState,
        member: Member,
        run: MemberRun,
        events: Sequence[StoreEvent] | None = None,
    ):
        super().__init__(state)
        self.state = state
        self.member = member
        self.run = run
        self.events = events

    def to_visit(self) -> list[NodeRecord]:
        """The nodes a member looks at, in graph order: all of them, or those near what changed
        since it last ran."""
        if self.events is None:
            return list(self.store.nodes)
        return sorted(Worklist(self.store).neighbourhood(self.events), key=order_of)

    def attach_feature(self, feature: Feature) -> None:
        """Attaches a feature to the graph, until somebody detaches it; once, if it is asked again.

        :param feature: the feature
        """
        attach(self.graph, feature)

    def find(self, *op_types: str) -> Iterator[NodeProto]:
        """Nodes in graph order: those that are there now, and still there when their turn comes.

        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        """
        for record in list(Sweep(self.store).of(op_types or ("*",))):
            if record.alive:
                yield self.store.proto(record)

    def replace(
        self, replacements: Mapping[str, Replacement], remove: Iterable[Removed] = ()
    ) -> str:
        """Replaces results, all of them or none.

        :param replacements: what replaces each result: a name, a new operator, a constant
        :param remove: nodes, or results of nodes, that must go; refused if something needs them
        :return: why nothing was done, empty if it was
        :raises PatternError: the graph would be wrong; it is as it was before
        """
        self.looked_at = []
        match = match_replacing(self, self.member, replacements, remove)
        return match if isinstance(match, str) else self.run.apply(match).refusal
