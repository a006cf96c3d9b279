"""A rewrite asks the measures, whatever they say."""

from __future__ import annotations

from typing import Any, ClassVar

import onnx
import pytest
from onnx import NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.authoring import RewriteContext
from xoptim.catalogue import speed_gated as gated
from xoptim.catalogue.speed_gated import SpeedGatedRewrite
from xoptim.catalogue.speed_gates import SpeedGate

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[a] x) => (float[a] y) { n = Neg (x) y = Abs (n) }"""


class AbsNegPattern(SpeedGatedRewrite):
    """Abs(-x) -> Abs(x)."""

    roots: ClassVar[tuple[str, ...]] = ("Abs",)
    lift = "anyway"

    def __init__(self, anyway: bool = False, verbose: int = 0):
        super().__init__(anyway, verbose)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        """Asks, then writes."""
        self.require_open_gate(g)
        return g.op.Abs(g.before(node, "Neg").input[0])


def nodes(pattern: SpeedGatedRewrite, processor: str) -> list[str]:
    options = OptimizationOptions(patterns=[pattern], processor=processor)
    builder = GraphBuilder(onnx.parser.parse_model(MODEL), optimization_options=options)
    return [n.op_type for n in builder.to_onnx().graph.node]


@pytest.mark.parametrize(
    ("processor", "ratio", "is_written"),
    [
        ("CPU", 0.9, True),
        ("CPU", 1.2, False),
        ("CPU", None, True),
        ("CUDA", 1.2, True),
        ("CPU,CUDA", 1.2, False),
        ("CUDA,CPU", 1.2, False),
    ],
)
def test_measures_decide(monkeypatch, processor, ratio, is_written):
    def find(pattern: str, where: str, target: str) -> SpeedGate | None:
        assert target == processor
        assert pattern == "AbsNeg(anyway=True)"
        return SpeedGate(pattern, where, "1.20.0", "", ratio) if ratio and where == "CPU" else None

    monkeypatch.setattr(gated, "find_speed_gate", find)
    assert (nodes(AbsNegPattern(), processor) == ["Abs"]) is is_written
    assert nodes(AbsNegPattern(anyway=True), processor) == ["Abs"]
    assert nodes(AbsNegPattern().lifted(), processor) == ["Abs"]
    monkeypatch.setattr(AbsNegPattern, "needs_open_gate", True)
    assert (nodes(AbsNegPattern(), processor) == ["Abs"]) is is_written


@pytest.mark.parametrize("is_listened", [False, True])
def test_closed_gates_need_no_look(monkeypatch, is_listened: bool) -> None:
    """Unless a subscriber wants the reason."""
    reasons: list[str] = []
    monkeypatch.setattr(AbsNegPattern, "needs_open_gate", True)
    pattern = AbsNegPattern().closed()
    if is_listened:
        pattern.listener = lambda reason: reasons.append(reason[3])
    else:
        monkeypatch.setattr(AbsNegPattern, "rewrite", pytest.fail)
    assert nodes(pattern, "CPU") == ["Neg", "Abs"]
    assert ("it is measured without it" in reasons) is is_listened


def test_reason(monkeypatch):
    monkeypatch.setattr(
        gated, "find_speed_gate", lambda p, c, t: SpeedGate(p, c, "1.20.0", "", 1.2)
    )
    reasons = []
    pattern = AbsNegPattern()
    pattern.listener = lambda reason: reasons.append(reason[3])
    nodes(pattern, "CPU")
    assert set(reasons) == {"it is slower on CPU, AbsNeg(anyway=True) applies it there too"}
