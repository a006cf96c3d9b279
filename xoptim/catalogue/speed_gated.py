"""Rewrites that speed gates may close, because they were measured slower on some processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from xbuilder.nodes.record import NodeRecord
from xbuilder.runtimes.processors import processors_of

from ..authoring.context import RewriteContext
from ..authoring.patterns import MatchResult, matches_nothing
from ..authoring.queries import GraphQueries
from ..authoring.rewrite import Rewrite
from .speed_gates import find_speed_gate


class SpeedGatedRewrite(Rewrite):
    """A rewrite with a case that speed gates close on a processor where it was measured slower. A
    subclass gives `lift`, the parameter that opens the gate whatever was measured.

    :param lifted: value of this parameter
    :param even_slower: see :class:`.PatternOptimization`

    `is_closed` is for measures: it closes the gate whatever was measured. See
    :mod:`xoptim.catalogue.speed_gates`.
    """

    lift: ClassVar[str]
    #: every case needs an open gate: no root is looked at when it is closed
    needs_open_gate: ClassVar[bool] = False
    is_closed = False

    def __init__(self, lifted: bool = False, verbose: int = 0, even_slower: bool = False):
        super().__init__(verbose, even_slower=even_slower)
        self.is_lifted = lifted

    def __repr__(self) -> str:
        names = (self.lift, "even_slower") if self.even_slower else (self.lift,)
        given = ", ".join(f"{name}=True" for name in names[not self.is_lifted :])
        return f"{type(self).__name__}({given})"

    @property
    def gate_name(self) -> str:
        """Name of the pattern in the measures: its text in a selection, with the gate lifted."""
        return f"{self.name}({self.lift}=True)"

    def lifted(self) -> SpeedGatedRewrite:
        """The same pattern, with its gate open whatever was measured."""
        options: dict[str, Any] = {self.lift: True}
        return type(self)(**options)

    def closed(self) -> SpeedGatedRewrite:
        """The same pattern, with its gate closed whatever was measured."""
        made = type(self)()
        made.is_closed = True
        return made

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """See :class:`.PatternOptimization`."""
        if self.needs_open_gate and self.listener is None and self._why_closed(g.processor):
            return matches_nothing
        return super().matcher(g, matched)

    def require_open_gate(self, g: RewriteContext) -> None:
        """Refuses the case if the gate is closed."""
        reason = self._why_closed(g.processor)
        if reason:
            g.refuse(reason)

    def _why_closed(self, target: str) -> str:
        """The reason why the gate is closed on a processor, empty if it is open."""
        if self.is_closed:
            return "it is measured without it"
        if self.is_lifted:
            return ""
        for processor in processors_of(target):
            gate = find_speed_gate(self.gate_name, processor, target)
            if gate is not None and not gate.kept:
                return f"it is slower on {processor}, {self.gate_name} applies it there too"
        return ""
