"""Records of a match and of an application, shared by the engine, detectors and observers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto

from xbuilder.facts.facts import SavedFacts
from xbuilder.nodes.record import NodeRecord
from xbuilder.support.rows import Row
from xbuilder.support.user_warnings import warn_user

from ..authoring.patterns import MatchResult, PatternOptimization
from ..authoring.rewriters import Member

#: a match that is not tried again: the pattern and the first results of its nodes
RefusalKey = tuple[Member, tuple[str, ...]]


@dataclass(slots=True)
class PatternRun:
    """The run of one pattern during the matching of an iteration.

    :param pattern: the pattern
    :param visited: number of roots it visited
    :param time_in: seconds
    :param found: its matches, without those that overlap others
    :param failures: number of calls that failed
    """

    pattern: PatternOptimization
    visited: int = 0
    time_in: float = 0.0
    found: list[MatchResult] = field(default_factory=list)
    failures: int = 0


@dataclass(slots=True)
class Application:
    """The outcome of applying one match.

    :param match: the match
    :param removed: nodes it removed
    :param added: nodes it added
    :param known: facts of the results of the removed nodes, before the application
    :param time_in: seconds
    :param time_checking: part of these seconds spent inferring and checking the new nodes
    :param refusal: reason of the refusal, empty if it was applied
    :param is_final: whether the same match is not tried again
    :param redirected: a result and the one its readers will read instead; it is done last, once the
        order of the nodes is checked
    :param certificate: columns an observer that checks rewrites adds to the statistics
    """

    match: MatchResult
    removed: Sequence[NodeRecord] = ()
    added: Sequence[NodeRecord] = ()
    known: Sequence[SavedFacts] = ()
    time_in: float = 0.0
    time_checking: float = 0.0
    refusal: str = ""
    is_final: bool = False
    redirected: tuple[str, str] | None = None
    certificate: dict[str, Any] = field(default_factory=dict)

    def written(self) -> Sequence[NodeRecord]:
        """The nodes that replace the removed ones; an Identity stands for a redirection."""
        if self.redirected is None:
            return self.added
        result, source = self.redirected
        return [NodeRecord(NodeProto(op_type="Identity", input=[source], output=[result]), 0, 0)]


def refusal_key(match: MatchResult) -> RefusalKey:
    """The key of a match, equal for the same match in a later iteration."""
    return match.pattern, tuple(n.output[0] for n in match.nodes if n is not None and n.output)


def refuse(refused: set[RefusalKey], application: Application) -> None:
    """Records a match that is not tried again, and warns with the reason.

    :param refused: receives it
    :param application: outcome of the match
    """
    if application.is_final:
        refused.add(refusal_key(application.match))
        warn_user(
            f"A match of pattern {application.match.pattern.name} was not applied: "
            f"{application.refusal}."
        )


def count_instances(rows: Sequence[Row]) -> int:
    """Number of rewrites that rows of statistics count.

    :param rows: the rows of a run
    """
    return sum([r["instances"] for r in rows if r["pattern"].startswith("apply_")])


def count_applied(applications: Sequence[Application]) -> int:
    """Number of rewrites that were applied.

    :param applications: those that were tried
    """
    return len([a for a in applications if not a.refusal])


def names_of_applied(applications: Sequence[Application]) -> list[str]:
    """The rewrites that were applied, each one once, in alphabetical order.

    :param applications: those that were tried
    """
    return sorted({a.match.pattern.name for a in applications if not a.refusal})


def still_allowed(stop_after: int, applied: int) -> int:
    """Number of rewrites still allowed after some, -1 if there is no limit.

    :param stop_after: number of rewrites allowed, -1 if there is no limit
    :param applied: number of rewrites applied
    """
    return -1 if stop_after < 0 else max(0, stop_after - applied)
