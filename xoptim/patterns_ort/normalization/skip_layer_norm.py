"""Normalizations of onnxruntime, without mean or fused with an addition: SkipLayerNormalization."""

from __future__ import annotations

from typing import ClassVar

from onnx import NodeProto, TensorProto

from xbuilder.dims import Shape
from xbuilder.operators.domains import MICROSOFT

from ...analysis.shapes import proven_equal
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import register_pattern
from ...catalogue.speed_gated import SpeedGatedRewrite
from ...declarative import rule
from ...patterns.normalization.layer_norm import (
    LAYER,
    LAYER_AND_STATISTICS,
    LAYER_SCALED,
    as_type_of,
    layer_operator,
    times_scale,
)
from ...patterns.normalization.rms_norm import (
    BARE,
    BARE_AND_INVERSE,
    RMS,
    RMS_AND_INVERSE,
    RMS_SCALED,
    rms_operator,
)
from ..kernels import require_kernel, runtime_has_kernel


def skip_normalization(
    g: RewriteContext, node: NodeProto, written: str, slots: int, broadcasts: bool
) -> dict[str, NewResult]:
    """Writes an Add, then a normalization over the last axis, as one operator.

    :param node: the normalization
    :param written: the operator
    :param slots: number of its inputs before a bias that is added first
    :param broadcasts: the second operand may be the same for the whole batch
    """
    add = g.before(node, "Add")
    x, skip = _operands(g, add, broadcasts)
    total = add.output[0]
    shape = g.shape_of(total)
    parameters = normalization_vectors(g, node, shape)
    require_kernel(g, written, node.input[0])
    epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)
    freed = g.is_used_only_by(total, node)
    inputs: list[Operand] = [x, skip, *parameters]
    for i, name in enumerate((x, skip)):
        biased = _biased(g, add, name, shape)
        if biased is not None:
            inputs[i], bias = biased
            inputs += [None] * (slots - len(inputs)) + [bias]
            break
    count = 1 if freed else 4
    options = {"epsilon": epsilon}
    new = NewNode(written, inputs, options, MICROSOFT, outputs=count, missing=(1, 2))
    return {node.output[0]: new[0]} if freed else {node.output[0]: new[0], total: new[3]}


def _biased(g: RewriteContext, add: NodeProto, name: str, shape: Shape) -> tuple[str, str] | None:
    """The result and the bias on the last dimension whose sum is an operand, None if it is no such
    sum."""
    inner = g.producer_or_none(name, "Add")
    if inner is None or not g.is_used_only_by(name, add):
        return None
    for x, bias in g.either_order(inner):
        widths = g.shape_or_none(bias), g.shape_or_none(x)
        vector = widths[0] is not None and proven_equal(g, widths[0], shape[-1:])
        if vector and widths[1] is not None and proven_equal(g, widths[1], shape):
            g.look_at(inner)
            return x, bias
    return None


def normalization_vectors(g: RewriteContext, node: NodeProto, shape: Shape) -> list[str]:
    """The scale, and the bias if there is one, of a normalization that fused kernels support: over
    the last axis, in float, without other used results.

    :param node: the normalization
    :param shape: shape of the normalized result
    """
    parameters = [name for name in g.inputs(node)[1:] if name]
    axis = g.get_attribute_with_default(node, "axis", -1)
    g.require(axis in (-1, len(shape) - 1), "the axis is not the last one")
    in_float = g.get_attribute_with_default(node, "stash_type", 1) == TensorProto.FLOAT
    g.require(in_float, "the computation is not in float")
    vectors = all(g.rank_or_none(name) == 1 for name in parameters)
    g.require(vectors, "the scale or the bias does not have one dimension")
    # the normalizations broadcast a scale of one element, the fused kernels do not
    covers = all(proven_equal(g, g.shape_or_none(name) or (), shape[-1:]) for name in parameters)
    g.require(covers, "the scale or the bias may not have the length of the last dimension")
    unused = not any(g.is_used(name) for name in node.output[1:])
    g.require(unused, "the mean or the deviation is used")
    types = {g.type_or_none(name) for name in (node.input[0], *parameters)}
    g.require(len(types) == 1, "the scale has another type")
    return parameters


def _operands(g: RewriteContext, add: NodeProto, broadcasts: bool) -> tuple[str, str]:
    """The operands of an addition: one with the shape of the result, then one with the same shape,
    or broadcast along the first of three dimensions, if this is accepted."""
    reason = "the operands do not have rank 2 or 3"
    pairs = [(name, g.shape_of(name, reason)) for name in add.input]
    g.require({2, 3}.issuperset(len(shape) for _, shape in pairs), reason)
    for (a, shape), (b, other) in (pairs, pairs[::-1]):
        if proven_equal(g, shape, other):
            return a, b
        batch = broadcasts and len(shape) == 3
        if batch and any(proven_equal(g, other, s) for s in ((1, *shape[1:]), shape[1:])):
            return a, b
    return g.refuse("the operands do not have the same shape")


class SkipNormalization(SpeedGatedRewrite):
    """An addition and a normalization in one operator. It is not written where its kernel was
    measured slower than both, see :mod:`xoptim.catalogue.speed_gates`.

    :param on_cpu: writes it whatever was measured
    """

    lift = "on_cpu"
    needs_open_gate = True
    written: ClassVar[str]
    #: number of inputs of the operator before a bias
    slots: ClassVar[int]
    #: whether the second operand may be the same for the whole batch
    broadcasts: ClassVar[bool] = False

    def __init__(self, on_cpu: bool = False, verbose: int = 0):
        super().__init__(on_cpu, verbose)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
        """Checks the measures, the shapes and the scale, then writes the operator."""
        self.require_open_gate(g)
        return skip_normalization(g, node, self.written, self.slots, self.broadcasts)


@register_pattern(
    "onnxruntime", roots=("LayerNormalization",), after=("Add",), precision="rounding"
)
class SkipLayerNormalizationPattern(SkipNormalization):
    """LayerNormalization(a + b, s, c) -> com.microsoft.SkipLayerNormalization(a, b, s, c).

    1. a and b have the same shape, of rank 2 or 3, or b is the same for the whole batch; the axis
       is the last one, whose length is the one of the scale and of the bias;
    2. the sum used elsewhere becomes the fourth output;
    3. a or b may be the sum of a result and a bias of one dimension, which is the fifth input;
    4. the model is not meant for a processor where the kernel was measured slower, a CPU, or
       `on_cpu=True`.
    """

    written = "SkipLayerNormalization"
    slots = 4
    broadcasts = True


@register_pattern(
    "onnxruntime", roots=("SimplifiedLayerNormalization",), after=("Add",), precision="rounding"
)
class SkipSimplifiedLayerNormalizationPattern(SkipNormalization):
    """SimplifiedLayerNormalization(a + b, s) -> SkipSimplifiedLayerNormalization(a, b, s).

    1. a and b have the same shape, of rank 2 or 3; the axis is the last one, whose length is the
       one of the scale;
    2. the sum used elsewhere becomes the fourth output;
    3. a or b may be the sum of a result and a bias of one dimension, which is the fourth input;
    4. the model is not meant for a processor where the kernel was measured slower, a CPU, or
       `on_cpu=True`.
    """

    written = "SkipSimplifiedLayerNormalization"
    slots = 3


@rule(
    "onnxruntime",
    LAYER,
    LAYER_SCALED,
    LAYER_AND_STATISTICS,
    root="m",
    priority="first",
    precision="rounding",
)
def ort_layer_normalization(
    g: RewriteContext,
    x: str,
    m: str,
    v: str,
    y: str,
    epsilon: float,
    i: str | None,
    scale: str | None,
) -> dict[str, Replacement]:
    """d = x - mean(x), d / sqrt(mean(d^2) + epsilon) -> LayerNormalization(x, ones).

    Same cases as LayerNormalization, for opsets that do not have it: onnxruntime runs the operator
    in any opset, and creates it when it loads a model. `onnx.checker` refuses the model; a row of
    statistics says so, and the option `public_operators` keeps the operators.
    """
    g.require(g.main_opset < 17, "the opset has LayerNormalization")
    is_public = g.graph.scope.options.public_operators
    g.require(not is_public, "the options keep to operators with a public schema")
    known = runtime_has_kernel(g, "LayerNormalization", x)
    g.require(known, "onnxruntime has no LayerNormalization for this type")
    return layer_operator(g, x, m, v, y, epsilon, i, scale)


@rule(
    "onnxruntime",
    RMS,
    RMS_SCALED,
    RMS_AND_INVERSE,
    BARE,
    BARE_AND_INVERSE,
    root="v",
    behind=("LayerNormalization", "RMSNormalization"),
    precision="rounding",
)
def simplified_layer_normalization(
    g: RewriteContext,
    x: str,
    v: str,
    y: str,
    epsilon: float | None,
    i: str | None,
    scale: str | None,
) -> dict[str, Replacement]:
    """x / sqrt(mean(x^2) + epsilon) -> SimplifiedLayerNormalization(x, ones).

    Same cases as RMSNormalization, for opsets that do not have it. The inverse of the deviation may
    be read elsewhere, as gradients do: it is the second result, which is float and converted to the
    type of x. Only onnxruntime
    knows the operator, in the main domain: `onnx.checker` has no schema for it and refuses the
    model; a row of statistics says so, and the option `public_operators` keeps the operators.
    """
    is_public = g.graph.scope.options.public_operators
    g.require(not is_public, "the options keep to operators with a public schema")
    answer = rms_operator(g, "SimplifiedLayerNormalization", x, v, y, epsilon, scale)
    (new,) = answer.values()
    known = runtime_has_kernel(g, "SimplifiedLayerNormalization", str(new.inputs[0]))
    g.require(known, "onnxruntime has no SimplifiedLayerNormalization for this type")
    if i is None:
        return {result: times_scale(g, new, scale) for result in answer}
    new.outputs = 2
    return {**dict.fromkeys(answer, new[0]), i: as_type_of(g, x, new[1])}
