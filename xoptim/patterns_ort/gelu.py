"""Gelu and its relatives as operators of onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..patterns.gelu import GeluFormula, find_gelu
from ..reading.neighbours import only_inner_uses, producer, reader
from ..reading.products import product_of
from ..reading.shapes import known_rank
from .cpu_kernels import accepts_rank, has_kernel

MICROSOFT = "com.microsoft"
#: how many products may follow `1 + erf(x)` in one formula
_MAX_FOLLOWING = 3


class _FormulaPattern(PatternOptimization):
    """A formula of Gelu that becomes one operator of onnxruntime."""

    function = ""
    written = ""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = find_gelu(g, node, self.function)
        if isinstance(found, str):
            return self.none(node, found)
        if not has_kernel(g, f"{MICROSOFT}::{self.written}", found.x):
            return self.none(node, f"onnxruntime has no {self.written} for this type")
        if not accepts_rank(g, f"{MICROSOFT}::{self.written}", found.x):
            return self.none(node, f"{self.written} refuses a scalar, the rank may be 0")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [g.make_node(self.written, [found.x], node.output[:], MICROSOFT)]

        return MatchResult(self, found.nodes, apply, insert_at=node)


@register_pattern("onnxruntime", roots=("Mul",), priority=0, precision="rounding")
class GeluErfPattern(_FormulaPattern):
    """0.5 * x * (1 + Erf(x / sqrt(2))) -> com.microsoft.Gelu(x).

    1. the division by sqrt(2) may be a product by 1 / sqrt(2);
    2. constants may have been rounded to float16, factors come in any order.
    """

    function, written = "Erf", "Gelu"


@register_pattern("onnxruntime", roots=("Mul",), priority=0, precision="rounding")
class GeluOrtPattern(_FormulaPattern):
    """0.5 * x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) -> com.microsoft.FastGelu(x).

    com.microsoft.Gelu is the formula with Erf and has no attribute: FastGelu is the equivalent.
    """

    function, written = "Tanh", "FastGelu"


@register_pattern(
    "onnxruntime", roots=("Erf", "Gelu", "com.microsoft::Gelu"), priority=1, precision="rounding"
)
class BiasGeluPattern(PatternOptimization):
    """Gelu(x + b) -> com.microsoft.BiasGelu(x, b).

    1. Gelu is the formula with Erf, or Gelu(approximate=none), or com.microsoft.Gelu;
    2. b has one dimension, the last one of x; either operand of the addition may be b.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = self._formula(g, node)
        if found is None:
            return self.none(node, "the formula is not the one of Gelu")
        last = found.nodes[-1]
        add = producer(g, found.x, "Add")
        if add is None:
            return self.none(node, "no Add before")
        nodes = [add, *found.nodes]
        if not only_inner_uses(g, nodes, last):
            return self.none(node, "the sum is used elsewhere")
        x, bias = self._operands(g, add)
        if not bias:
            return self.none(node, "no operand is a bias on the last dimension")
        if not has_kernel(g, f"{MICROSOFT}::BiasGelu", x):
            return self.none(node, "onnxruntime has no BiasGelu for this type")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [g.make_node("BiasGelu", [x, bias], last.output[:], MICROSOFT)]

        return MatchResult(self, nodes, apply, insert_at=last)

    def _formula(self, g: GraphQueries, node: NodeProto) -> GeluFormula | None:
        if node.op_type == "Gelu":
            tanh = g.get_attribute_with_default(node, "approximate", "none") != "none"
            return None if tanh else GeluFormula(node.input[0], [node])
        for last in self._products_after(g, node):
            found = find_gelu(g, last, "Erf")
            if isinstance(found, GeluFormula):
                return found
        return None

    def _products_after(self, g: GraphQueries, erf: NodeProto) -> Iterator[NodeProto]:
        node = reader(g, erf.output[0], "Add")
        for _ in range(_MAX_FOLLOWING):
            node = None if node is None else reader(g, node.output[0], "Mul")
            if node is None:
                return
            yield node

    def _operands(self, g: GraphQueries, add: NodeProto) -> tuple[str, str]:
        """The tensor and the bias, empty strings if there is no bias."""
        for x, bias in (tuple(add.input), tuple(add.input)[::-1]):
            shape, width = g.try_infer_shape(x), g.try_infer_shape(bias)
            if shape and width and len(width) == 1 and shape[-1] == width[0]:
                return x, bias
        return "", ""


@register_pattern("onnxruntime", roots=("Sigmoid",), priority=1, precision="rounding")
class QuickGeluPattern(PatternOptimization):
    """x * Sigmoid(alpha * x) -> com.microsoft.QuickGelu(x, alpha).

    1. x * Sigmoid(x): alpha is 1;
    2. Sigmoid reads x multiplied or divided by a scalar constant.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        last = reader(g, node.output[0], "Mul")
        if last is None:
            return self.none(node, "Mul is not the only use")
        x = last.input[0] if last.input[1] == node.output[0] else last.input[1]
        alpha, inner = 1.0, []
        if x != node.input[0]:
            scaled = product_of(g, node.input[0])
            if scaled.names != [x] or len(scaled.scalars) != 1 or scaled.divisors:
                return self.none(node, "Sigmoid and Mul do not read the same result")
            if not scaled.keeps_shape(known_rank(g, x)):
                return self.none(node, "a constant may change the shape")
            (value, divides), inner = scaled.scalars[0], scaled.nodes
            if divides and not value.all():
                return self.none(node, "division by zero")
            alpha = 1 / float(value.item()) if divides else float(value.item())
        nodes = [*inner, node, last]
        if not only_inner_uses(g, nodes, last):
            return self.none(node, "an inner result is used elsewhere")
        if not has_kernel(g, f"{MICROSOFT}::QuickGelu", x):
            return self.none(node, "onnxruntime has no QuickGelu for this type")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [g.make_node("QuickGelu", [x], last.output[:], MICROSOFT, alpha=alpha)]

        return MatchResult(self, nodes, apply, insert_at=last)


@register_pattern(
    "approximate", roots=("Gelu", "com.microsoft::Gelu"), priority=1, precision="approximate"
)
class FastGeluPattern(PatternOptimization):
    """Gelu(x) -> com.microsoft.FastGelu(x), the formula with Tanh.

    1. com.microsoft.Gelu(x) and Gelu(x) are the formula with Erf: results differ by 5e-4 at most;
    2. Gelu(x, approximate=tanh) is the same formula.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        if not has_kernel(g, f"{MICROSOFT}::FastGelu", node.input[0]):
            return self.none(node, "onnxruntime has no FastGelu for this type")
        if not accepts_rank(g, f"{MICROSOFT}::FastGelu", node.input[0]):
            return self.none(node, "FastGelu refuses a scalar, the rank may be 0")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphQueries, node: NodeProto) -> list[NodeProto]:
        """See :class:`PatternOptimization`."""
        return [g.make_node("FastGelu", node.input[:], node.output[:], MICROSOFT)]
