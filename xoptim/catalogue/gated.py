"""Rewrites that were measured slower somewhere: data decide, see :mod:`xoptim.catalogue.gates`."""

from __future__ import annotations

from typing import Any, ClassVar

from xbuilder.runtimes.processors import processors_of

from ..authoring.context import RewriteContext
from ..authoring.rewrite import Rewrite
from .gates import find_gate


class GatedRewrite(Rewrite):
    """A rewrite with a case that is written unless it was measured slower on a processor the
    model is meant for. A subclass gives `lift`, the parameter that writes it whatever was measured.

    :param lifted: value of this parameter

    `is_closed` is for measures: the case is not written, whatever was measured.
    """

    lift: ClassVar[str]
    is_closed = False

    def __init__(self, lifted: bool = False, verbose: int = 0):
        super().__init__(verbose)
        self.is_lifted = lifted

    @property
    def gate_name(self) -> str:
        """The pattern as a selection writes it once lifted, and as the measures call it."""
        return f"{self.name}({self.lift}=True)"

    def lifted(self) -> GatedRewrite:
        """The same pattern, which asks no measure."""
        options: dict[str, Any] = {self.lift: True}
        return type(self)(**options)

    def closed(self) -> GatedRewrite:
        """The same pattern, which never writes this case."""
        made = type(self)()
        made.is_closed = True
        return made

    def require_gate(self, g: RewriteContext) -> None:
        """Refuses what was measured slower."""
        if self.is_closed:
            g.refuse("it is measured without it")
        if self.is_lifted:
            return
        for processor in processors_of(g.processor):
            gate = find_gate(self.gate_name, processor, g.processor)
            if gate is not None and not gate.kept:
                g.refuse(f"it is slower on {processor}")
