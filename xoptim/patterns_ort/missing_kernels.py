"""Operators onnxruntime has no kernel for, on some types: they are computed in float."""

from __future__ import annotations

from typing import ClassVar

from onnx import NodeProto, TensorProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern

_HALF, _BRAIN = TensorProto.FLOAT16, TensorProto.BFLOAT16


class _ThroughFloat(PatternOptimization):
    """op(x) -> Cast(op(Cast(x to float))) for types without kernel; both casts lose nothing.

    A subclass gives `missing`, the types, and `operands`, the number of inputs to cast. The first
    result has the type of the first operand.
    """

    missing: ClassVar[frozenset[int]] = frozenset({_BRAIN})
    operands: ClassVar[int] = 1

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        if g.has_processor("CUDA"):
            return self.none(node, "another processor has the kernel")
        if g.try_infer_type(node.input[0]) not in self.missing:
            return self.none(node, "the kernel exists for this type")
        return MatchResult(self, [node], self.apply, insert_at=node)

    def apply(self, g: GraphQueries, node: NodeProto) -> list[NodeProto]:
        """See :class:`PatternOptimization`."""
        narrow = g.get_type(node.input[0])
        inputs = list(node.input)
        casts: dict[str, NodeProto] = {}
        for i in range(self.operands):
            name = inputs[i]
            if name not in casts:
                casts[name] = g.make_node("Cast", [name], to=TensorProto.FLOAT)
            inputs[i] = casts[name].output[0]
        wide = g.unique_name(f"{node.output[0]}_float")
        outputs = [wide, *node.output[1:]]
        attributes = node.attribute[:]
        computed = g.make_node(node.op_type, inputs, outputs, attributes=attributes)
        back = g.make_node("Cast", [wide], [node.output[0]], to=narrow)
        return [*casts.values(), computed, back]


@register_pattern("onnxruntime", roots=("Range",), priority=1)
class MissingRangePattern(_ThroughFloat):
    """Range(a, b, c) -> Cast(Range(Cast(a), Cast(b), Cast(c))) for float16 and bfloat16."""

    missing = frozenset({_HALF, _BRAIN})
    operands = 3


@register_pattern("onnxruntime", roots=("Cos", "Sin", "Log"), priority=1)
class MissingCosSinPattern(_ThroughFloat):
    """Cos(x) -> Cast(Cos(Cast(x))) for float16 and bfloat16. Sin and Log as well."""

    missing = frozenset({_HALF, _BRAIN})


@register_pattern("onnxruntime", roots=("ReduceMax", "ReduceMin"), priority=1)
class MissingReduceMaxPattern(_ThroughFloat):
    """ReduceMax(x) -> Cast(ReduceMax(Cast(x))) for bfloat16. ReduceMin as well."""


@register_pattern("onnxruntime", roots=("TopK",), priority=1)
class MissingTopKPattern(_ThroughFloat):
    """TopK(x, k) -> Cast(TopK(Cast(x), k)) for bfloat16; indices are the same."""
