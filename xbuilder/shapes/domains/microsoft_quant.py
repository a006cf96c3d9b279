"""Quantized operators of domain com.microsoft."""

from __future__ import annotations

from ...dims import Dim, mul, normalize_axes, normalize_axis, total
from ...facts.facts import ResultFacts
from ...operators.domains import MICROSOFT
from ..arithmetic.elementwise import broadcast_all, broadcast_facts
from ..arithmetic.matmul import gemm_facts, matmul_facts
from ..arithmetic.reduction import reduced_shape
from ..common import (
    FLOAT,
    INT8,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    facts_like,
    first_type,
    int_content,
    merge_dim,
    merge_shapes,
    refuses_negative,
    replace_dim,
    same_as_first,
    several,
)
from ..context import ShapeContext
from ..layers.conv import conv_facts
from ..layers.pooling import pool_facts
from ..layers.rnn import recurrent
from ..shipped import shipped_function, shipped_table
from .microsoft import embed_facts, nhwc_window
from .quantization import dequantize_linear, quantize_linear

shipped_table(
    (
        (op, same_as_first)
        for op in (
            "QLinearLeakyRelu",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "QMoE",
            "QOrderedGelu",
            "QOrderedLayerNormalization",
        )
    ),
    MICROSOFT,
)
shipped_table(
    [("QuantizeLinear", quantize_linear), ("DequantizeLinear", dequantize_linear)], MICROSOFT
)


# --- products ------------------------------------------------------------------------------


def _projected(ctx: ShapeContext, columns: Dim | None, inner: Dim | None = None) -> ResultFacts:
    """Result of `(..., K) x (K, N)` when only `N` is given.

    :param ctx: context
    :param columns: N
    :param inner: K, recorded as the last dimension of the input
    """
    facts = ctx.facts(0)
    if not facts.shape or columns is None:
        return ResultFacts(facts.type, None, facts.known_rank())
    if inner is not None and merge_dim(ctx, facts.shape[-1], inner) is None:
        return ResultFacts(facts.type)
    return ResultFacts(facts.type, (*facts.shape[:-1], columns))


@shipped_function("MatMulNBits", domain=MICROSOFT)
@refuses_negative
def matmul_nbits(ctx: ShapeContext) -> ResultFacts:
    """MatMulNBits: sizes of the weights are attributes."""
    return _projected(ctx, ctx.attr("N"), ctx.attr("K"))


@shipped_function("MatMulBnb4", domain=MICROSOFT)
@refuses_negative
def matmul_bnb4(ctx: ShapeContext) -> ResultFacts:
    """MatMulBnb4: `transB` is 1 by default, otherwise the product is with `(N, K)`."""
    if ctx.attr("transB", 1):
        return _projected(ctx, ctx.attr("N"), ctx.attr("K"))
    return _projected(ctx, ctx.attr("K"), ctx.attr("N"))


@shipped_function("MatMulFpQ4", domain=MICROSOFT)
@refuses_negative
def matmul_fpq4(ctx: ShapeContext) -> ResultFacts:
    """MatMulFpQ4: the shape of the weights is an input."""
    weights = int_content(ctx, 2)
    return _projected(ctx, weights[-1] if weights else None)


@shipped_function("MatMulNBitsMlp", domain=MICROSOFT)
@refuses_negative
def matmul_nbits_mlp(ctx: ShapeContext) -> list[ResultFacts]:
    """MatMulNBitsMlp: one projection, and the sum of the inputs."""
    return several(ctx, _projected(ctx, ctx.attr("N"), ctx.attr("K")), same_as_first(ctx))


@shipped_function("MatMulNBitsQkv", domain=MICROSOFT)
@refuses_negative
def matmul_nbits_qkv(ctx: ShapeContext) -> list[ResultFacts]:
    """MatMulNBitsQkv: three projections, and the sum of the inputs."""
    inner = ctx.attr("K")
    columns = (ctx.attr("Nq"), ctx.attr("Nkv"), ctx.attr("Nkv"))
    projections = [_projected(ctx, n, inner) for n in columns]
    return several(ctx, *projections, same_as_first(ctx))


@shipped_function("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(ctx: ShapeContext) -> ResultFacts | None:
    """DynamicQuantizeMatMul: float data, quantized weights."""
    return matmul_facts(ctx, ctx.type(0), 1)


@shipped_function("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(ctx: ShapeContext) -> ResultFacts | None:
    """MatMulIntegerToFloat: the type is the one of the scales."""
    return matmul_facts(ctx, first_type(ctx, 2, 3), 1)


@shipped_function("MatMulInteger16", domain=MICROSOFT)
def matmul_integer16(ctx: ShapeContext) -> ResultFacts | None:
    """MatMulInteger16 accumulates in int32 (uint32 when both inputs are unsigned)."""
    a, b = ctx.type(0), ctx.type(1)
    elem_type = UINT32 if a == b == UINT16 else INT32
    return matmul_facts(ctx, elem_type if a and b else 0, 1)


@shipped_function("QOrderedMatMul", domain=MICROSOFT)
def qordered_matmul(ctx: ShapeContext) -> ResultFacts | None:
    """QOrderedMatMul: scales are between the operands."""
    return matmul_facts(ctx, ctx.type(0), 2)


@shipped_function("QGemm", domain=MICROSOFT)
def qgemm(ctx: ShapeContext) -> ResultFacts | None:
    """QGemm: float without a zero point for the output."""
    elem_type = ctx.type(8) if ctx.has_input(8) else FLOAT
    return gemm_facts(ctx, elem_type, 3)


# --- elementwise ---------------------------------------------------------------------------


@shipped_function("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(ctx: ShapeContext) -> ResultFacts:
    """QLinearAdd, QLinearMul: the operands are inputs 0 and 3."""
    return broadcast_facts(ctx, first_type(ctx, 0, 3), ctx.facts(0), ctx.facts(3))


@shipped_function("QLinearWhere", domain=MICROSOFT)
def qlinear_where(ctx: ShapeContext) -> ResultFacts:
    """QLinearWhere: the condition and inputs 1 and 4 are broadcast."""
    facts = [ctx.facts(i) for i in (0, 1, 4)]
    return broadcast_all(ctx, first_type(ctx, 1, 4), facts)


# --- convolution, pooling, reduction, concatenation ----------------------------------------


@shipped_function("QLinearConv", domain=MICROSOFT)
@refuses_negative
def qlinear_conv(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearConv: channels may be last."""
    if not ctx.attr("channels_last", 0):
        return conv_facts(ctx, ctx.type(7), 3)
    weights = ctx.shape(3)
    if not weights:
        return ResultFacts(ctx.type(7), None, ctx.rank(0))
    # the layout of the weights is the usual one
    kernel = ctx.attr("kernel_shape")
    return nhwc_window(ctx, ctx.type(7), ctx.shape(0), kernel, weights[0])


@shipped_function("QLinearAveragePool", domain=MICROSOFT)
@refuses_negative
def qlinear_average_pool(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearAveragePool: channels may be last."""
    if not ctx.attr("channels_last", 0):
        return pool_facts(ctx, ctx.type(0))
    return nhwc_window(ctx, ctx.type(0), ctx.shape(0), ctx.attr("kernel_shape"), None)


@shipped_function("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(ctx: ShapeContext) -> ResultFacts:
    """QLinearGlobalAveragePool: spatial dimensions become 1."""
    shape = ctx.shape(0)
    if shape is None or len(shape) < 2:
        return ResultFacts(ctx.type(0), None, ctx.rank(0))
    last = bool(ctx.attr("channels_last", 0))
    ones = [1] * (len(shape) - 2)
    new = (shape[0], *ones, shape[-1]) if last else (*shape[:2], *ones)
    return ResultFacts(ctx.type(0), new)


@shipped_function("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearReduceMean: axes are an attribute."""
    shape = ctx.shape(0)
    if shape is None:
        return ResultFacts(ctx.type(0))
    axes = normalize_axes(ctx.attr("axes") or range(len(shape)), len(shape))
    if axes is None:
        return None
    keepdims = bool(ctx.attr("keepdims", 1))
    return ResultFacts(ctx.type(0), reduced_shape(shape, axes, keepdims))


@shipped_function("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearConcat: inputs are triples (data, scale, zero point) after those of the output."""
    positions = range(2, ctx.n_inputs, 3)
    shapes = [ctx.shape(i) for i in positions]
    elem_type = ctx.type(1) or first_type(ctx, *positions)
    given = [shape for shape in shapes if shape is not None]
    if len(given) < len(shapes) or not given or len({len(s) for s in given}) > 1:
        return ResultFacts(elem_type)
    axis = normalize_axis(ctx.attr("axis", 0), len(given[0]))
    if axis is None:
        return None
    merged = merge_shapes(ctx, [replace_dim(shape, axis, 0) for shape in given])
    if merged is None:
        return None
    joined = total(shape[axis] for shape in given)
    return ResultFacts(elem_type, replace_dim(merged, axis, joined))


# --- others --------------------------------------------------------------------------------


@shipped_function("QEmbedLayerNormalization", domain=MICROSOFT)
def qembed_layer_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """QEmbedLayerNormalization: the type is the one of the scales."""
    return embed_facts(ctx, ctx.type(8))


@shipped_function("AttnLSTM", "DynamicQuantizeLSTM", domain=MICROSOFT)
@refuses_negative
def dynamic_quantize_lstm(ctx: ShapeContext) -> list[ResultFacts] | None:
    """LSTM whose recurrence weights have another layout: the hidden size is an attribute."""
    if ctx.attr("hidden_size") is None:
        ranks = (4, 3, 3)
        return several(ctx, *(ResultFacts(ctx.type(0), None, rank) for rank in ranks))
    return recurrent(ctx)


@shipped_function("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(ctx: ShapeContext) -> ResultFacts | None:
    """GatherBlockQuantized: Gather then dequantize; bytes hold several elements."""
    shape, indices = ctx.shape(0), ctx.shape(1)
    elem_type = ctx.type(2)
    if shape is None or indices is None:
        return ResultFacts(elem_type)
    axis = normalize_axis(ctx.attr("gather_axis", 0), len(shape))
    if axis is None:
        return None
    if ctx.type(0) == UINT8:
        bits = ctx.attr("bits", 4)
        packed = 8 // bits if bits in (2, 4, 8) else 1
        shape = (*shape[:-1], mul(shape[-1], packed))
    elif not ctx.type(0):
        return ResultFacts(elem_type, None, len(shape) + len(indices) - 1)
    return ResultFacts(elem_type, (*shape[:axis], *indices, *shape[axis + 1 :]))


@shipped_function("QuantizeWithOrder", "DequantizeWithOrder", domain=MICROSOFT)
def with_order(ctx: ShapeContext) -> ResultFacts:
    """Quantization with a layout: the shape is kept."""
    if ctx.op_type == "QuantizeWithOrder":
        return facts_like(ctx.facts(0), INT8)
    return facts_like(ctx.facts(0), ctx.attr("to", FLOAT))
