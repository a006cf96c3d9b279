"""A rule and the same rewrite written by hand give the same graph, on random graphs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto

from xoptim.analysis.constants import is_filled_with
from xoptim.analysis.shapes import keeps_shape
from xoptim.authoring import Rewrite, RewriteContext
from xoptim.declarative import equation
from xoptim.testing import canonical_graph, model_from_text, optimize_with

CONSTANTS = "float zero = {0}, float[1] one = {1}, float two = {2}, float[4] row = {0, 0, 0, 0}"
UNARY, BINARY = ("Neg", "Abs", "Relu"), ("Add", "Mul", "Sub", "Max")


class NegNeg(Rewrite):
    roots = ("Neg",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        return g.before(node, "Neg").input[0]


class AddZero(Rewrite):
    roots = ("Add",)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        for x, zero in (tuple(node.input), tuple(node.input)[::-1]):
            if is_filled_with(g, zero, 0) and keeps_shape(g, x, g.get_shape(zero)):
                return x
        g.refuse("nothing is added to 0")


class Factor(Rewrite):
    """x * y + x * z -> x * (y + z): each Mul in both orders, both operands of Add."""

    roots = ("Add",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        first, second = (g.before(node, "Mul", index=i) for i in (0, 1))
        g.require(first is not second, "one node")
        for x, y in (tuple(first.input), tuple(first.input)[::-1]):
            for u, z in (tuple(second.input), tuple(second.input)[::-1]):
                if u == x:
                    return g.op.Mul(x, g.op.Add(y, z))
        g.refuse("nothing in common")


class ReluMax(Rewrite):
    roots = ("Max",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        for i in (0, 1):
            relu = g.before_or_none(node, "Relu", index=i)
            alone = relu is not None and not g.is_used_more_than_once(relu.output[0])
            if alone and relu is not None and len(node.input) == 2:
                return g.op.Relu(g.op.Max(relu.input[0], node.input[1 - i]))
        g.refuse("no Relu before")


PAIRS = [
    (NegNeg, equation("NegNegRule", "Neg(Neg(x)) -> x")),
    (AddZero, equation("AddZeroRule", "x + 0 -> x")),
    (Factor, equation("FactorRule", "x * y + x * z -> x * (y + z)")),
    (ReluMax, equation("ReluMaxRule", "Max(Relu(x), y) -> Relu(Max(x, y))")),
]


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """A graph of unary and binary operators, its last results are outputs."""
    names = ["x", "z", "zero", "one", "two", "row"]
    lines = []
    for i in range(draw(st.integers(2, 14))):
        read = [draw(st.sampled_from(names[-7:] + names[:4])) for _ in (0, 1)]
        unary = draw(st.booleans())
        operator = draw(st.sampled_from(UNARY if unary else BINARY))
        lines.append(f"r{i} = {operator}({read[0] if unary else ', '.join(read)})")
        names.append(f"r{i}")
    outputs = draw(st.sets(st.sampled_from(names[6:]), min_size=1, max_size=2)) | {names[-1]}
    typed = ", ".join(f"float[] {n}" for n in sorted(outputs))
    header = f"g (float[a, 4] x, float[a, 4] z) => ({typed})"
    return f"{header} <{CONSTANTS}> {{ {' '.join(lines)} }}"


@settings(max_examples=60, deadline=None)
@given(text=graphs(), pair=st.sampled_from(PAIRS))
def test_same_graph(text: str, pair: Any) -> None:
    model = model_from_text(text.replace("float[] ", "float "))
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    results = [optimize_with(model, [cls()], max_iter=1)[0] for cls in pair]
    assert canonical_graph(results[0].graph) == canonical_graph(results[1].graph)
