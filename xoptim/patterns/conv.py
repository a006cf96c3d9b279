"""Convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.nodes.protos import copy_with_edges, has_reference

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.arguments import optional_input
from ..reading.constants import int_values, is_filled_with
from ..reading.neighbours import producer

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Conv",), priority=0)
class ConvBiasNullPattern(PatternOptimization):
    """Conv(X, W, 0) -> Conv(X, W)."""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        bias = optional_input(node, 2)
        if not bias:
            return self.none(node, "there is no bias")
        if not is_filled_with(g, bias, 0):
            return self.none(node, "the bias is not a constant made of zeros")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [copy_with_edges(node, tuple(node.input[:2]), tuple(node.output))]


@register_pattern("default", roots=("Conv",), after=("Pad",))
class PadConvPattern(PatternOptimization):
    """Conv(Pad(X, pads), W, B) -> Conv(X, W, B, pads) when the padding is made of zeros.

    1. The padding is constant, not negative, on spatial dimensions only; the mode is `constant`.
    2. `auto_pad` is missing or is `NOTSET`: the two paddings are added.
    3. Nothing else reads the padded tensor.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        pad = producer(g, node.input[0], *self.after)
        if pad is None:
            return self.none(node, "no Pad before")
        if has_reference(pad) or has_reference(node):
            return self.none(node, "an attribute belongs to the function")
        if g.get_attribute_with_default(pad, "mode", "constant") != "constant":
            return self.none(node, "the values added are not zeros")
        if g.get_attribute_with_default(node, "auto_pad", "NOTSET") != "NOTSET":
            return self.none(node, "the padding depends on the shape")
        if g.is_used_more_than_once(pad.output[0]):
            return self.none(node, "the padded tensor is used elsewhere")
        if not self._adds_zeros(g, pad):
            return self.none(node, "the values added are not zeros")
        if self._pads(g, pad) is None:
            return self.none(node, "the padding is not known or not on spatial dimensions only")
        return MatchResult(self, [pad, node], self.apply)

    @staticmethod
    def _adds_zeros(g: GraphBuilderPatternOptimization, pad: NodeProto) -> bool:
        value = optional_input(pad, 2)
        if value:
            return g.is_constant_scalar(value, 0)
        return g.get_attribute_with_default(pad, "value", 0.0) == 0

    @staticmethod
    def _pads(g: GraphBuilderPatternOptimization, pad: NodeProto) -> list[int] | None:
        """Padding of the spatial dimensions, beginnings then ends, None if there is another one."""
        pads = g.get_attribute_with_default(pad, "pads", None)
        if pads is None and len(pad.input) > 1:
            pads = int_values(g, pad.input[1])
        if pads is None or any(p < 0 for p in pads):
            return None
        axes: tuple[int, ...] | None = tuple(range(len(pads) // 2))
        rank = len(axes)
        if optional_input(pad, 3):
            if not g.has_rank(pad.input[0]):
                return None
            rank = g.get_rank(pad.input[0])
            given = int_values(g, pad.input[3])
            axes = None if given is None else normalize_axes(given, rank)
        if axes is None or len(pads) != 2 * len(axes) or rank < 3:
            return None
        full = np.zeros((2, rank), dtype=np.int64)
        full[:, list(axes)] = np.array(pads).reshape((2, -1))
        return None if full[:, :2].any() else full[:, 2:].ravel().tolist()

    def apply(
        self, g: GraphBuilderPatternOptimization, pad: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        added = self._pads(g, pad)
        known = g.get_attribute_with_default(node, "pads", [0] * len(added))
        attributes = [a for a in node.attribute if a.name not in ("pads", "auto_pad")]
        return [
            g.make_node(
                "Conv",
                [pad.input[0], *node.input[1:]],
                node.output[:],
                attributes=attributes,
                name=node.name,
                pads=[a + b for a, b in zip(known, added, strict=True)],
            )
        ]
