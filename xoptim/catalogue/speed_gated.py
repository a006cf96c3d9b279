"""Rewrites that speed gates may close, because they were measured slower on some processors."""

from __future__ import annotations

from typing import Any, ClassVar

from xbuilder.runtimes.processors import processors_of

from ..authoring.context import RewriteContext
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

    def require_open_gate(self, g: RewriteContext) -> None:
        """Refuses the case if the gate is closed."""
        if self.is_closed:
            g.refuse("it is measured without it")
        if self.is_lifted:
            return
        for processor in processors_of(g.processor):
            gate = find_speed_gate(self.gate_name, processor, g.processor)
            if gate is not None and not gate.kept:
                g.refuse(f"it is slower on {processor}, {self.gate_name} applies it there too")
