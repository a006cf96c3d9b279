"""Small patterns to test the engine: good ones, and ones that break a rule."""

from __future__ import annotations

import math
from typing import Any

from onnx import NodeProto

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization, MatchResult, PatternOptimization
from xoptim.testing import model_from_text


class Rename(PatternOptimization):
    """One operator becomes another one. Parameters are class attributes. It declares itself as wrong
    as can be: the engine is tested, not its values."""

    precision, tolerance = "approximate", math.inf
    source = "Relu"
    target = "Sigmoid"

    def __init__(self, source: str = "Relu", target: str = "Sigmoid", priority: int = 1):
        super().__init__(priority=priority)
        self.source, self.target = source, target
        self.calls = 0

    @property
    def roots(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def name(self) -> str:
        return f"{self.source}To{self.target}"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def match(self, g: Any, node: NodeProto, matched: list[MatchResult]) -> MatchResult | None:
        self.calls += 1
        return MatchResult(self, [node], self.apply)

    def apply(self, g: Any, node: NodeProto) -> list[NodeProto]:
        return [g.make_node(self.target, list(node.input), list(node.output))]


class NegNeg(PatternOptimization):
    """Neg(Neg(x)) -> Identity(x); the first one is kept if something else reads it."""

    roots = ("Neg",)

    def match(self, g: Any, node: NodeProto, matched: list[MatchResult]) -> MatchResult | None:
        before = g.node_before(node.input[0])
        if before is None or before.op_type != "Neg":
            return self.none(node, "no Neg before")
        return MatchResult(self, [before, node], self.apply, comment="a comment")

    def apply(self, g: Any, first: NodeProto, second: NodeProto) -> list[NodeProto]:
        new = [g.make_node("Identity", [first.input[0]], list(second.output))]
        return [first, *new] if g.is_used_more_than_once(first.output[0]) else new


class Silent(PatternOptimization):
    """Never matches and does not say why."""

    roots = ("Neg",)

    def match(self, g: Any, node: NodeProto, matched: list[MatchResult]) -> MatchResult | None:
        return None


class Wrong(PatternOptimization):
    """Matches Neg(Neg(x)) and returns the value it is given."""

    precision, tolerance = "approximate", math.inf

    roots = ("Neg",)

    def __init__(self, make: Any):
        super().__init__()
        self.make = make

    def match(self, g: Any, node: NodeProto, matched: list[MatchResult]) -> MatchResult | None:
        before = g.node_before(node.input[0])
        if before is None or before.op_type != "Neg":
            return self.none(node, "no Neg before")
        return MatchResult(self, [before, node], self.apply)

    def apply(self, g: Any, first: NodeProto, second: NodeProto) -> list[NodeProto]:
        return self.make(g, first, second)


class Grow(PatternOptimization):
    """Never ends: Abs(x) -> Abs(Abs(x))."""

    roots = ("Abs",)

    def match(self, g: Any, node: NodeProto, matched: list[MatchResult]) -> MatchResult | None:
        return MatchResult(self, [node], self.apply)

    def apply(self, g: Any, node: NodeProto) -> list[NodeProto]:
        name = g.unique_name("grow")
        return [
            g.make_node("Abs", [node.input[0]], [name]),
            g.make_node("Abs", [name], list(node.output)),
        ]


#: operators of two domains
TOY_MODEL = """agraph (float[a, a] X) => (float[a, a] Y) {
    r0 = Neg(X)
    r1 = toy.LocalAttention_a(r0)
    r2 = Abs(r1)
    r3 = Neg(r2)
    r4 = toy.LocalAttention(r3)
    r5 = toy.Other(r4)
    r6 = LocalAttention(r5)
    r7 = Neg(r6)
    r8 = Neg(r7)
    Y = Neg(r8)
}"""


def toy_optimizer() -> GraphBuilderPatternOptimization:
    """An optimizer on the model above."""
    builder = GraphBuilder(model_from_text(TOY_MODEL, domains=("toy",)))
    return GraphBuilderPatternOptimization(builder, None)
