"""Reduce* followed by what removes the dimensions it kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.nodes.protos import find_attribute

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.arguments import int_attribute, optional_input
from ..reading.constants import Ints, int_values
from ..reading.reshapes import reshaped
from ..reading.shapes import proven_equal, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def reduced_axes(g: GraphBuilderPatternOptimization, node: NodeProto, rank: int) -> Ints | None:
    """Axes a Reduce* removes, an attribute or an input, all of them if there are none.

    :param g: the optimizer
    :param node: a Reduce*
    :param rank: rank of its first input
    :return: axes in `[0, rank[`, None if they are not known
    """
    att = find_attribute(node, "axes")
    name = optional_input(node, 1)
    if att is not None:
        axes = None if att.ref_attr_name else tuple(att.ints)
    else:
        axes = int_values(g, name) if name else ()
    if axes:
        return normalize_axes(axes, rank)
    noop = int_attribute(node, "noop_with_empty_axes", 0)
    if axes is None or noop is None:
        return None
    return () if noop else tuple(range(rank))


@register_pattern("default", roots=("Reduce*",), priority=1, min_opset=1)
class ReduceReshapePattern(PatternOptimization):
    """Reshape(Reduce*(x, axes, keepdims=1), shape) -> Reduce*(x, axes, keepdims=0).

    The shape of the result is proven to be the one of x without the reduced axes, whatever they
    are: an attribute, an input, or missing (every axis).
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        reshape = g.next_node(node.output[0])
        if reshape is None or reshape.op_type != "Reshape" or reshape.domain:
            return self.none(node, "no Reshape after")
        if g.is_used_more_than_once(node.output[0]) or reshape.input[0] != node.output[0]:
            return self.none(node, "the inner result is used elsewhere")
        if int_attribute(node, "keepdims", 1) != 1:
            return self.none(node, "the dimensions are not kept")
        before, after = shape_of(g, node.input[0]), reshaped(g, reshape)
        if before is None or after is None:
            return self.none(node, "a shape is not known for every size")
        axes = reduced_axes(g, node, len(before))
        if not axes:
            return self.none(node, "the axes are not known, or there is none")
        left = tuple(d for i, d in enumerate(before) if i not in axes)
        if not proven_equal(g, left, after):
            return self.none(node, "the Reshape does more than removing the axes")
        return MatchResult(self, [node, reshape], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, reduce: NodeProto, reshape: NodeProto
    ) -> list[NodeProto]:
        given = optional_input(reduce, 1) or find_attribute(reduce, "axes") is not None
        # onnxruntime gives the wrong shape for negative axes, empty tensors and keepdims=0
        axes = reduced_axes(g, reduce, g.get_rank(reduce.input[0])) if given else None
        return [
            g.make_node_check_opset(
                reduce.op_type,
                [reduce.input[0]],
                reshape.output[:],
                axes=axes,
                name=reduce.name,
                attributes=[a for a in reduce.attribute if a.name not in ("axes", "keepdims")],
                keepdims=0,
            )
        ]
