"""Patterns that observe a model or the engine, and belong to no set."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC

from ...analysis.constants import scalar_constant
from ...authoring import NewNode, Refusal, Rewrite, RewriteContext
from ...catalogue import register_pattern, rewrite


@rewrite("investigation", root=ARITHMETIC)
def binary_investigation(g: RewriteContext, node: NodeProto) -> Refusal:
    """op(a, b) -> itself: prints the types and the shapes of the operands and of the result."""
    facts = (
        f"{n}:{g.type_or_none(n)}{g.shape_or_none(n)}" for n in (*g.inputs(node), *node.output)
    )
    print(f"[BinaryInvestigation] {node.op_type} {', '.join(facts)}")
    return g.no("it only looks")


@register_pattern(roots=("Pow",), min_opset=7)
class AlmostDoNothingPattern(Rewrite):
    """Pow(x, c) -> Pow(x, c'), where c has one element and c' no dimension.

    It is in no set. It changes almost nothing, which is useful to observe the engine.
    """

    def rewrite(self, g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
        """Removes the dimension of the exponent."""
        x, exponent = g.inputs(node)
        value = scalar_constant(g, exponent, g.rank_or_none(x))
        if value is None or value.ndim == 0:
            return g.no("the exponent is not a constant of one element with a dimension")
        return g.op.Pow(x, value.reshape(()))
