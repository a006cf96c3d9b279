"""Normalizations of onnxruntime: without mean, with an addition before."""

from __future__ import annotations

from typing import ClassVar

from onnx import NodeProto, TensorProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..patterns.rms_norm import RmsFormula, RmsPattern
from ..reading.arguments import optional_input
from ..reading.neighbours import producer
from ..reading.norm_scales import ScaleFoldingPattern
from ..reading.shapes import equal_dims
from .cpu_kernels import KERNEL_TYPES, has_kernel

MICROSOFT = "com.microsoft"


class _SkipPattern(PatternOptimization):
    """Add then a normalization over the last axis. A subclass gives `written`."""

    written: ClassVar[str] = ""

    def _refusal(self, g: GraphQueries, node: NodeProto, add: NodeProto) -> str:
        a, b = (g.try_infer_shape(name) for name in add.input)
        if a is None or b is None or len(a) not in (2, 3) or len(b) not in (2, 3):
            return "the operands do not have rank 2 or 3"
        if not g.same_shape(*add.input):
            return "the operands do not have the same shape"
        if g.get_axis(node, -1) % len(a) != len(a) - 1:
            return "the axis is not the last one"
        if g.get_attribute_with_default(node, "stash_type", 1) != TensorProto.FLOAT:
            return "the computation is not in float"
        parameters = [p for p in node.input[1:] if p]
        if any(not g.has_rank(p) or g.get_rank(p) != 1 for p in parameters):
            return "the scale or the bias does not have one dimension"
        # the normalizations broadcast a scale of one element, the fused kernels do not
        if not all(self._covers(g, p, add.input[0]) for p in parameters):
            return "the scale or the bias may not have the length of the last dimension"
        if any(g.is_used(o) for o in node.output[1:] if o):
            return "the mean or the deviation is used"
        if not has_kernel(g, f"{MICROSOFT}::{self.written}", node.input[0]):
            return f"onnxruntime has no {self.written} for this type"
        types = {g.try_infer_type(n) for n in (node.input[0], *parameters)}
        return "" if len(types) == 1 else "the scale has another type"

    def _covers(self, g: GraphQueries, parameter: str, x: str) -> bool:
        """Tells if a vector is proven to have one element per element of the last dimension."""
        width, shape = g.try_infer_shape(parameter), g.try_infer_shape(x)
        return bool(width and shape) and equal_dims(g)(width[-1], shape[-1])  # type: ignore[index]

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        add = producer(g, node.input[0], "Add")
        if add is None:
            return self.none(node, "no Add before")
        reason = self._refusal(g, node, add)
        if reason:
            return self.none(node, reason)
        total = add.output[0]
        outputs = [node.output[0]]
        if not g.is_used_only_by(total, node):
            outputs.extend(["", "", total])
        parameters = [node.input[1], optional_input(node, 2)]
        inputs = [*add.input, *(parameters if parameters[1] else parameters[:1])]
        epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [g.make_node(self.written, inputs, outputs, MICROSOFT, epsilon=epsilon)]

        return MatchResult(self, [add, node], apply)


@register_pattern("onnxruntime", roots=("LayerNormalization",), priority=1, precision="rounding")
class SkipLayerNormalizationPattern(_SkipPattern):
    """LayerNormalization(a + b, s, c) -> com.microsoft.SkipLayerNormalization(a, b, s, c).

    1. a and b have the same shape, of rank 2 or 3; the axis is the last one, whose length is the
       one of the scale and of the bias;
    2. the sum used elsewhere becomes the fourth output.
    """

    written = "SkipLayerNormalization"


@register_pattern(
    "onnxruntime", roots=("SimplifiedLayerNormalization",), priority=1, precision="rounding"
)
class SkipSimplifiedLayerNormalizationPattern(_SkipPattern):
    """SimplifiedLayerNormalization(a + b, s) -> SkipSimplifiedLayerNormalization(a, b, s).

    1. a and b have the same shape, of rank 2 or 3; the axis is the last one, whose length is the
       one of the scale;
    2. the sum used elsewhere becomes the fourth output.
    """

    written = "SkipSimplifiedLayerNormalization"


@register_pattern("onnxruntime", roots=("ReduceMean",), priority=1, precision="rounding")
class SimplifiedLayerNormalizationPattern(RmsPattern):
    """x / sqrt(mean(x^2) + epsilon) -> SimplifiedLayerNormalization(x, ones).

    Same cases as RMSNormalization, for opsets that do not have it. Only onnxruntime knows the
    operator, in the main domain: `onnx.checker` has no schema for it and refuses the model.
    """

    written = "SimplifiedLayerNormalization"

    def refuses(self, g: GraphQueries, found: RmsFormula) -> str:
        """See :class:`RmsPattern`."""
        known = found.elem_type in KERNEL_TYPES[self.written]
        return "" if known else "onnxruntime has no SimplifiedLayerNormalization for this type"


@register_pattern(
    "onnxruntime", roots=("SimplifiedLayerNormalization",), priority=1, precision="rounding"
)
class SimplifiedLayerNormalizationMulPattern(ScaleFoldingPattern):
    """SimplifiedLayerNormalization(x, s) * c -> SimplifiedLayerNormalization(x, s * c).

    1. c has exactly the shape of s;
    2. one of them is made of ones, or both are constant.
    """


@register_pattern(
    "onnxruntime",
    roots=("com.microsoft::SkipSimplifiedLayerNormalization",),
    priority=1,
    precision="rounding",
)
class SkipSimplifiedLayerNormalizationMulPattern(ScaleFoldingPattern):
    """SkipSimplifiedLayerNormalization(x, y, s) * c: the scale becomes s * c.

    1. c has exactly the shape of s;
    2. one of them is made of ones, or both are constant.
    """

    scale_index = 2
