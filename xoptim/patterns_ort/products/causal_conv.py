"""Causal convolutions of each channel along a sequence, with a state, as CausalConvWithState."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import optional_input
from ...analysis.axes import axis_of, cuts_of
from ...analysis.neighbours import consumers_of
from ...authoring import NewNode, NewResult, RewriteContext
from ...catalogue import register_pattern
from ...catalogue.speed_gated import SpeedGatedRewrite
from ..kernels import require_kernel

_SILU = f"{MICROSOFT}::QuickGelu"


@register_pattern("onnxruntime", roots=("Conv",), rank=3, priority="late", precision="rounding")
class CausalConvWithStatePattern(SpeedGatedRewrite):
    """Conv(Concat(past, x), w, b) -> com.microsoft.CausalConvWithState(x, w, b, past), in float.

    1. one axis, one filter by channel, strides 1; past is as long as the filter minus its last
       element, dilations included;
    2. without past, as many zeros are padded before: pads=[n, 0];
    3. x * Sigmoid(x) after, written as QuickGelu, is the activation of the operator;
    4. the last elements of Concat, cut by a Slice, are the second result;
    5. x has one element, or the kernel was not measured slower, or `any_length=True`.

    :param any_length: writes it for any length whatever was measured
    """

    lift = "any_length"

    def __init__(self, any_length: bool = False, verbose: int = 0):
        super().__init__(any_length, verbose)

    def rewrite(self, g: RewriteContext, conv: NodeProto) -> dict[str, NewNode | NewResult]:
        """Checks the convolution and its neighbours, then writes the operator."""
        options, before = _filters(g, conv)
        result = conv.output[0]
        silu = g.after_or_none(conv, _SILU)
        if silu is not None and g.get_attribute_with_default(silu, "alpha", 1.702) == 1:
            options, result = {**options, "activation": "silu"}, silu.output[0]
        pads = tuple(g.get_attribute_with_default(conv, "pads", [0, 0]))
        if pads == (before, 0):
            self._require_length(g, conv.input[0])
            return {result: NewNode("CausalConvWithState", conv.input, options, MICROSOFT, 2)[0]}
        g.require(pads == (0, 0), "the padding is not the one of a causal convolution")
        concat = g.before(conv, "Concat")
        joined = len(concat.input) == 2 and axis_of(g, concat, 3, None) == 2
        g.require(joined, "nothing is joined on the last axis")
        past, x = concat.input
        g.require(g.shape_of(past)[2] == before, "the past does not have the length of the filter")
        self._require_length(g, x)
        inputs = [x, conv.input[1], optional_input(conv, 2) or None, past]
        new = NewNode("CausalConvWithState", inputs, options, MICROSOFT, 2)
        states = [n for n in consumers_of(g, concat.output[0], "Slice") if _is_state(g, n, before)]
        g.look_at(*states)
        return {result: new[0], **{node.output[0]: new[1] for node in states}}

    def _require_length(self, g: RewriteContext, x: str) -> None:
        require_kernel(g, "CausalConvWithState", x)
        if g.shape_of(x)[2] != 1:
            self.require_open_gate(g)


def _filters(g: RewriteContext, conv: NodeProto) -> tuple[dict[str, Any], int]:
    """Attributes of the operator, and the number of past elements it reads."""
    weights = g.static_shape(conv.input[1], "the filters are not known")
    shape = g.shape_of(conv.input[0])
    one_axis = len(weights) == len(shape) == 3
    g.require(one_axis, "there is not one axis")
    group = g.get_attribute_with_default(conv, "group", 1)
    depthwise = weights[1] == 1 and group == weights[0] == shape[1]
    g.require(depthwise, "there is not one filter by channel")
    g.require(g.get_attribute_with_default(conv, "strides", [1]) == [1], "the strides are not 1")
    (dilation,) = g.get_attribute_with_default(conv, "dilations", [1])
    before = (weights[2] - 1) * dilation
    g.require(before > 0, "the filters have one element")
    auto = g.get_attribute_with_default(conv, "auto_pad", "NOTSET")
    g.require(auto == "NOTSET", "the padding is computed")
    return {"dilation": dilation} if dilation != 1 else {}, before


def _is_state(g: RewriteContext, node: NodeProto, length: int) -> bool:
    """Whether a Slice keeps the last elements of the last axis."""
    cuts = cuts_of(g, node, 3) or {}
    start, end, step = cuts.get(2, (0, 0, 0))
    return len(cuts) == 1 and (start, step) == (-length, 1) and end >= 2**31 - 1
