"""What matching and applying did: what the engine, its detectors and its observers share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from xbuilder.facts.facts import SavedFacts
from xbuilder.nodes.record import NodeRecord

from ..authoring.members import Member
from ..authoring.patterns import MatchResult, PatternOptimization

#: a match that is not tried again: the pattern and what the nodes give
RefusalKey = tuple[Member, tuple[str, ...]]


@dataclass(slots=True)
class PatternRun:
    """What one pattern did while matching.

    :param pattern: the pattern
    :param visited: number of its roots
    :param time_in: seconds
    :param found: its matches, those that overlap others left out
    :param failures: number of calls that failed
    """

    pattern: PatternOptimization
    visited: int = 0
    time_in: float = 0.0
    found: list[MatchResult] = field(default_factory=list)
    failures: int = 0


@dataclass(slots=True)
class Application:
    """What applying one match did.

    :param match: the match
    :param removed: nodes it took away
    :param added: nodes it wrote
    :param known: what was known before of the results of the removed nodes
    :param time_in: seconds
    :param time_checking: seconds spent inferring and checking what was written, a part of them
    :param refusal: why nothing happened, empty if it was applied
    :param is_final: the same match is not tried again
    :param redirected: a result, and the one its readers will read: it is done last, once the order
        of the nodes is checked
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

    def written(self) -> Sequence[NodeRecord]:
        """What replaces the removed nodes, for reports: an Identity stands for a redirection."""
        if self.redirected is None:
            return self.added
        result, source = self.redirected
        return [NodeRecord(NodeProto(op_type="Identity", input=[source], output=[result]), 0, 0)]


def refusal_key(match: MatchResult) -> RefusalKey:
    """What makes a match the same one in a later iteration."""
    return match.pattern, tuple(n.output[0] for n in match.nodes if n is not None and n.output)


def refuse(refused: set[RefusalKey], application: Application) -> None:
    """Notes a match that is not tried again, and says why.

    :param refused: receives it
    :param application: what applying the match did
    """
    if application.is_final:
        refused.add(refusal_key(application.match))
        warnings.warn(
            f"A match of pattern {application.match.pattern.name} was not applied: "
            f"{application.refusal}.",
            stacklevel=3,
        )
