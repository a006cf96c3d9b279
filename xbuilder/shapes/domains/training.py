"""Optimizers and gradients."""

from __future__ import annotations

from ...facts.facts import ResultFacts
from ...operators.domains import MICROSOFT
from ..common import INT64, content, facts_like, length, new_shape, refuses_negative, several
from ..context import ShapeContext
from ..shipped import shipped_function, shipped_table

PREVIEW = "ai.onnx.preview.training"

#: number of inputs of a group after (rate, step), and those that are updated
_GROUPS = {"Adagrad": (3, (0, 2)), "Momentum": (3, (0, 2)), "Adam": (4, (0, 2, 3))}

#: gradients of com.microsoft: each output has the type and the shape of one input
_LIKE_INPUTS: dict[str, tuple[int, ...]] = {
    "AbsGrad": (0,),
    "BatchNormalizationGrad": (1, 2, 2),
    "BiasFastGeluGrad_dX": (0,),
    "BiasGeluGrad_dX": (0,),
    "DropoutGrad": (0,),
    "FastGeluGrad": (0,),
    "GeluGrad": (0,),
    "LayerNormalizationGrad": (1, 2, 2),
    "LeakyReluGrad": (0,),
    "LogSoftmaxGrad": (0,),
    "LogSoftmaxGrad_13": (0,),
    "QuickGeluGrad": (0,),
    "ReluGrad": (0,),
    "SigmoidGrad": (0,),
    "SimplifiedLayerNormalizationGrad": (1, 2),
    "SinGrad": (0,),
    "SoftmaxCrossEntropyLossGrad": (1,),
    "SoftmaxCrossEntropyLossInternalGrad": (1,),
    "SoftmaxGrad": (0,),
    "SoftmaxGrad_13": (0,),
    "TanhGrad": (0,),
}

#: gradients whose shape is the content of an input: (input with the shape, input with the type)
_SHAPED_BY: dict[str, tuple[int, int]] = {
    "GatherElementsGrad": (1, 0),
    "GatherGrad": (0, 2),
    "GatherNDGrad": (0, 2),
    "SliceGrad": (1, 0),
}


@shipped_function("Adagrad", "Adam", "Momentum", domain=PREVIEW)
def optimizer(ctx: ShapeContext) -> list[ResultFacts] | None:
    """Updated tensors and states, in the order of the inputs."""
    groups, updated = _GROUPS[ctx.op_type]
    count, rest = divmod(ctx.n_inputs - 2, groups)
    if rest or count < 1:
        return None
    inputs = (2 + g * count + i for g in updated for i in range(count))
    return several(ctx, *(facts_like(ctx.facts(i)) for i in inputs))


@shipped_function("Gradient", domain=PREVIEW)
def gradient(ctx: ShapeContext) -> list[ResultFacts]:
    """Gradients have the shapes of the first inputs, with respect to which they are taken."""
    return [facts_like(ctx.facts(i)) for i in range(ctx.n_outputs)]


def like_inputs(ctx: ShapeContext) -> list[ResultFacts]:
    """Each output is like one input."""
    return several(ctx, *(facts_like(ctx.facts(i)) for i in _LIKE_INPUTS[ctx.op_type]))


def shaped_by(ctx: ShapeContext) -> ResultFacts:
    """The shape is the content of an input."""
    i, j = _SHAPED_BY[ctx.op_type]
    shape = content(ctx, i)
    if shape is None:
        rank = length(ctx, i)
        return ResultFacts(ctx.type(j), None if rank is None else new_shape(ctx, rank))
    return ResultFacts(ctx.type(j), shape)


shipped_table(((op_type, like_inputs) for op_type in _LIKE_INPUTS), MICROSOFT)
shipped_table(((op_type, refuses_negative(shaped_by)) for op_type in _SHAPED_BY), MICROSOFT)


@shipped_function("ConvGrad", domain=MICROSOFT)
def conv_grad(ctx: ShapeContext) -> list[ResultFacts]:
    """Gradients of the data, the weights and the bias."""
    weights = ctx.facts(2)
    bias = ResultFacts(weights.type, weights.shape[:1] if weights.shape else None, 1)
    return several(ctx, facts_like(ctx.facts(1)), facts_like(weights), bias)


@shipped_function("SoftmaxCrossEntropyLossInternal", domain=MICROSOFT)
def softmax_cross_entropy_internal(ctx: ShapeContext) -> list[ResultFacts]:
    """The loss, and the logarithm of the probabilities."""
    facts = ctx.facts(0)
    if ctx.attr("reduction", "mean") == "none":
        loss = facts_like(ctx.facts(1), facts.type)
    else:
        loss = ResultFacts(facts.type, ())
    return several(ctx, loss, facts_like(facts))


@shipped_function("BroadcastGradientArgs", domain=MICROSOFT)
def broadcast_gradient_args(ctx: ShapeContext) -> list[ResultFacts]:
    """Axes that were broadcast, for both inputs."""
    return several(ctx, *(ResultFacts(INT64, (ctx.new_dim("axes"),)) for _ in range(2)))
