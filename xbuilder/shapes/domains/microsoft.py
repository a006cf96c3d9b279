"""Operators of domain com.microsoft: products, activations, normalizations and others.

Attention is in :mod:`.microsoft_attention`, quantized operators in :mod:`.microsoft_quant`.
"""

from __future__ import annotations

from ...dims import Dim, Shape, add, floordiv, mul, normalize_axes, normalize_axis, prod, sub
from ...facts.facts import ResultFacts
from ...operators.domains import MICROSOFT
from ..arithmetic.elementwise import broadcast_facts
from ..arithmetic.matmul import gemm, gemm_facts, matmul, matmul_rank, matmul_shape
from ..arithmetic.reduction import reduced_shape
from ..common import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    UINT32,
    content,
    facts_like,
    first_type,
    refuses_negative,
    replace_dim,
    same_as_first,
    several,
)
from ..context import ShapeContext
from ..layers.conv import conv, window_of
from ..layers.image import grid_sample
from ..layers.norm import note_last_axis, note_scale, stash_facts
from ..layers.pooling import pool_facts
from ..moving.creation import range_length
from ..moving.rearranging import block_count
from ..moving.slicing import gather_nd, pad
from ..shipped import shipped_function, shipped_table

#: operators whose output has the type and the shape of the first input
_LIKE_FIRST = (
    "BiasAdd",
    "BiasGelu",
    "BiasSoftmax",
    "BranchwiseRMSNorm",
    "FastGelu",
    "GatedAdd",
    "GatedRMSNorm",
    "Gelu",
    "GroupNorm",
    "Inverse",
    "MoE",
    "QuickGelu",
    "SampleOp",
    "ScaledSiLU",
    "Trilu",
)

shipped_table(((op, same_as_first) for op in _LIKE_FIRST), MICROSOFT)
shipped_table(
    [
        ("FusedConv", conv),
        ("FusedGemm", gemm),
        ("GatherND", gather_nd),
        ("GemmFastGelu", matmul),
        ("GridSample", grid_sample),
        ("Pad", pad),
    ],
    MICROSOFT,
)


# --- products ------------------------------------------------------------------------------


def _moved(shape: Shape, trans: bool, trans_batch: bool) -> Shape:
    """Shape of an operand of FusedMatMul once it is transposed.

    `transBatch` moves the first axis after the batch axes, `trans` swaps the last two.
    """
    if trans_batch and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    if trans and len(shape) > 1:
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


@shipped_function("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(ctx: ShapeContext) -> ResultFacts | None:
    """FusedMatMul: MatMul whose operands may be transposed."""
    elem_type = first_type(ctx, 0, 1)
    a, b = ctx.shape(0), ctx.shape(1)
    if a is None or b is None:
        return ResultFacts(elem_type, None, matmul_rank(ctx.rank(0), ctx.rank(1)))
    left = _moved(a, bool(ctx.attr("transA", 0)), bool(ctx.attr("transBatchA", 0)))
    right = _moved(b, bool(ctx.attr("transB", 0)), bool(ctx.attr("transBatchB", 0)))
    shape = matmul_shape(ctx, left, right)
    return None if shape is None else ResultFacts(elem_type, shape)


@shipped_function("GemmFloat8", domain=MICROSOFT)
def gemm_float8(ctx: ShapeContext) -> ResultFacts | None:
    """GemmFloat8: the type is an attribute."""
    return gemm_facts(ctx, ctx.attr("dtype", FLOAT))


# --- convolution, images -------------------------------------------------------------------


@shipped_function("NhwcMaxPool", domain=MICROSOFT)
@refuses_negative
def nhwc_max_pool(ctx: ShapeContext) -> ResultFacts | None:
    """NhwcMaxPool: channels are last."""
    return nhwc_window(ctx, ctx.type(0), ctx.shape(0), ctx.attr("kernel_shape"), None)


@shipped_function("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
@refuses_negative
def nhwc_conv(ctx: ShapeContext) -> ResultFacts | None:
    """NhwcConv: channels are last; weights are `(M, C/group, kH, kW)` as for Conv."""
    weights = ctx.shape(1)
    kernel = ctx.attr("kernel_shape")
    if not weights:
        return ResultFacts(ctx.type(0), None, ctx.rank(0))
    return nhwc_window(ctx, ctx.type(0), ctx.shape(0), kernel, weights[0])


def nhwc_window(
    ctx: ShapeContext,
    elem_type: int,
    shape: Shape | None,
    kernel: list[int] | None,
    channels: Dim | None,
) -> ResultFacts | None:
    """Window sliding over `(N, H, W, C)`.

    :param ctx: context
    :param elem_type: type of the result
    :param shape: shape of the data
    :param kernel: size of the window, spatial dimensions are unknown without it
    :param channels: number of channels of the result, None for a pooling: the same as the input
    """
    if shape is None:
        return ResultFacts(elem_type, None, 4 if ctx.rank(0) is None else ctx.rank(0))
    rank = len(shape) - 2
    is_pool = channels is None
    window = window_of(ctx, None if kernel is None else tuple(kernel), rank, is_pool)
    if rank < 1 or window is None:
        return None
    spatial = window.outputs(ctx, shape[1:-1])
    last = shape[-1] if channels is None else channels
    return ResultFacts(elem_type, (shape[0], *spatial, last))


@shipped_function("MaxpoolWithMask", domain=MICROSOFT)
@refuses_negative
def max_pool_with_mask(ctx: ShapeContext) -> ResultFacts | None:
    """MaxpoolWithMask: the mask does not change the shape."""
    return pool_facts(ctx, ctx.type(0))


@shipped_function("CropAndResize", domain=MICROSOFT)
@refuses_negative
def crop_and_resize(ctx: ShapeContext) -> ResultFacts:
    """CropAndResize: `(number of regions, C, crop height, crop width)`."""
    shape, regions, sizes = ctx.shape(0), ctx.shape(1), content(ctx, 3)
    if not shape or len(shape) != 4 or not regions or sizes is None or len(sizes) != 2:
        return ResultFacts(ctx.type(0), None, 4)
    return ResultFacts(ctx.type(0), (regions[0], shape[1], *sizes))


# --- normalizations ------------------------------------------------------------------------


@shipped_function("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """The output, mean and deviation kept in float, and the sum of the inputs."""
    stash = stash_facts(ctx, FLOAT)
    note_scale(ctx, -1, 2, broadcasts=True)
    facts = ctx.facts(0)
    return several(ctx, facts_like(facts), stash, facts_like(stash), facts_like(facts))


@shipped_function("SimplifiedLayerNormalization")
def simplified_layer_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """onnxruntime registers it in the main domain; the second output is the deviation."""
    note_last_axis(ctx)
    output = facts_like(ctx.facts(0), ctx.type(1) or ctx.type(0))
    return several(ctx, output, stash_facts(ctx, ctx.attr("stash_type", FLOAT)))


shipped_table([("SimplifiedLayerNormalization", simplified_layer_normalization)], MICROSOFT)


@shipped_function("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(ctx: ShapeContext) -> list[ResultFacts]:
    """The output and the sum of the inputs."""
    return several(ctx, same_as_first(ctx), same_as_first(ctx))


def embed_facts(ctx: ShapeContext, elem_type: int) -> list[ResultFacts]:
    """Facts of an embedding followed by a normalization: the sum is the third output."""
    ids, words = ctx.shape(0), ctx.shape(2)
    output = ResultFacts(elem_type, None, 3)
    mask = ResultFacts(INT32, None, 1)
    if ids is not None and words and len(ids) == 2:
        output.shape = (*ids, words[-1])
        mask.shape = ids[:1]
    return several(ctx, output, mask, facts_like(output))


@shipped_function("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """EmbedLayerNormalization: `(batch, sequence, hidden size)`."""
    return embed_facts(ctx, ctx.type(2))


# --- elementwise ---------------------------------------------------------------------------


@shipped_function("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(ctx: ShapeContext) -> ResultFacts:
    """BiasSplitGelu: the last axis is halved."""
    facts = ctx.facts(0)
    if not facts.shape:
        return facts_like(facts)
    half = block_count(facts.shape[-1], 2)
    return ResultFacts(facts.type, (*facts.shape[:-1], half))


@shipped_function("ComplexMul", "ComplexMulConj", "MulInteger", domain=MICROSOFT)
def broadcast_binary(ctx: ShapeContext) -> ResultFacts:
    """Binary operators with broadcasting."""
    integer = ctx.op_type == "MulInteger"
    other = 2 if integer else 1
    elem_type = INT32 if integer else first_type(ctx, 0, 1)
    return broadcast_facts(ctx, elem_type, ctx.facts(0), ctx.facts(other))


@shipped_function("BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", domain=MICROSOFT)
def dropout(ctx: ShapeContext) -> list[ResultFacts]:
    """Dropout whose mask is boolean, or packed in 32 bits."""
    if ctx.op_type == "BiasDropout":
        return several(ctx, same_as_first(ctx), facts_like(ctx.facts(0), BOOL))
    shape = ctx.shape(0)
    words = None if shape is None else (floordiv(add(prod(shape), 31), 32),)
    return several(ctx, same_as_first(ctx), ResultFacts(UINT32, words, 1))


@shipped_function("IsAllFinite", domain=MICROSOFT)
def is_all_finite(ctx: ShapeContext) -> ResultFacts:
    """One boolean."""
    return ResultFacts(BOOL, ())


@shipped_function("NGramRepeatBlock", domain=MICROSOFT)
def ngram_repeat_block(ctx: ShapeContext) -> ResultFacts:
    """The scores are changed, not their shape."""
    return facts_like(ctx.facts(1))


@shipped_function("MurmurHash3", domain=MICROSOFT)
def murmur_hash(ctx: ShapeContext) -> ResultFacts:
    """One hash by element, uint32 or int32."""
    return facts_like(ctx.facts(0), UINT32 if ctx.attr("positive", 1) else INT32)


# --- others --------------------------------------------------------------------------------


@shipped_function("Range", domain=MICROSOFT)
def range_(ctx: ShapeContext) -> ResultFacts:
    """Range whose step is 1 by default."""
    start, limit = content(ctx, 0), content(ctx, 1)
    step = content(ctx, 2) if ctx.has_input(2) else (1,)
    count = None
    if start and limit and step and len(start) == len(limit) == len(step) == 1:
        count = range_length(start[0], limit[0], step[0])
    return ResultFacts(first_type(ctx), (ctx.new_dim("range") if count is None else count,))


@shipped_function("Unique", domain=MICROSOFT)
def unique(ctx: ShapeContext) -> list[ResultFacts]:
    """Unique on vectors: values, index of each element, counts."""
    facts = ctx.facts(0)
    count = ctx.new_dim("unique")
    indices = ResultFacts(INT64, facts.shape, 1)
    return several(ctx, ResultFacts(facts.type, (count,)), indices, ResultFacts(INT64, (count,)))


@shipped_function("ExpandDims", domain=MICROSOFT)
def expand_dims(ctx: ShapeContext) -> ResultFacts | None:
    """ExpandDims: one more axis of length 1."""
    facts = ctx.facts(0)
    axis = content(ctx, 1)
    if facts.shape is None or axis is None or len(axis) != 1:
        rank = facts.known_rank()
        return ResultFacts(facts.type, None, None if rank is None else rank + 1)
    position = normalize_axis(axis[0], len(facts.shape) + 1)
    if position is None:
        return None
    return ResultFacts(facts.type, (*facts.shape[:position], 1, *facts.shape[position:]))


@shipped_function("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(ctx: ShapeContext) -> ResultFacts:
    """TorchEmbedding: one row of the weights for each index."""
    weights, indices = ctx.shape(0), ctx.shape(1)
    if not weights or indices is None:
        rank = ctx.rank(1)
        return ResultFacts(ctx.type(0), None, None if rank is None else rank + 1)
    return ResultFacts(ctx.type(0), (*indices, weights[-1]))


@shipped_function("CDist", domain=MICROSOFT)
def cdist(ctx: ShapeContext) -> ResultFacts:
    """CDist: distances between the rows of two matrices."""
    a, b = ctx.shape(0), ctx.shape(1)
    if not a or not b:
        return ResultFacts(first_type(ctx), None, 2)
    return ResultFacts(first_type(ctx), (a[0], b[0]))


@shipped_function("UnfoldTensor", domain=MICROSOFT)
@refuses_negative
def unfold_tensor(ctx: ShapeContext) -> ResultFacts | None:
    """UnfoldTensor: windows along one axis, their content is the last axis."""
    facts = ctx.facts(0)
    size, step = ctx.attr("size"), ctx.attr("step", 1)
    if facts.shape is None or size is None or step < 1:
        return ResultFacts(facts.type)
    axis = normalize_axis(ctx.attr("dim", -1), len(facts.shape))
    if axis is None:
        return None
    count = add(floordiv(sub(facts.shape[axis], size), step), 1)
    return ResultFacts(facts.type, (*replace_dim(facts.shape, axis, count), size))


@shipped_function("Rfft", domain=MICROSOFT)
def rfft(ctx: ShapeContext) -> ResultFacts | None:
    """Rfft: the last signal axis is halved when one-sided, complex numbers are the last axis."""
    facts = ctx.facts(0)
    if not facts.shape:
        return ResultFacts(facts.type)
    last = facts.shape[-1]
    if ctx.attr("onesided", 1):
        last = add(floordiv(last, 2), 1)
    return ResultFacts(facts.type, (*facts.shape[:-1], last, 2))


@shipped_function("Irfft", domain=MICROSOFT)
@refuses_negative
def irfft(ctx: ShapeContext) -> ResultFacts | None:
    """Irfft: the inverse of Rfft."""
    facts = ctx.facts(0)
    if not facts.shape or len(facts.shape) < 2:
        return ResultFacts(facts.type)
    last = facts.shape[-2]
    if ctx.attr("onesided", 1):
        last = mul(sub(last, 1), 2)
    return ResultFacts(facts.type, (*facts.shape[:-2], last))


@shipped_function("BeamSearch", "GreedySearch", "Sampling", domain=MICROSOFT)
@refuses_negative
def generation(ctx: ShapeContext) -> list[ResultFacts]:
    """Generated tokens; beams are `(batch, number of sequences, length)`."""
    shape = ctx.shape(0)
    batch = shape[0] if shape else ctx.new_dim("batch")
    maximum = content(ctx, 1)
    total = maximum[0] if maximum else ctx.new_dim("length")
    if ctx.op_type != "BeamSearch":
        return [ResultFacts(INT32, (batch, total))]
    sequences = content(ctx, 4)
    count = sequences[0] if sequences else ctx.new_dim("sequences")
    scores = ResultFacts(first_type(ctx, 5, 6) or 0, (batch, count))
    return several(ctx, ResultFacts(INT32, (batch, count, total)), scores)


@shipped_function("DynamicTimeWarping", domain=MICROSOFT)
def dynamic_time_warping(ctx: ShapeContext) -> ResultFacts:
    """The length of the path depends on the data."""
    return ResultFacts(INT32, (2, ctx.new_dim("path")))


@shipped_function("ReduceSumInteger", domain=MICROSOFT)
def reduce_sum_integer(ctx: ShapeContext) -> ResultFacts | None:
    """ReduceSumInteger: axes are an attribute, the type is not known before running."""
    shape = ctx.shape(0)
    if shape is None:
        return ResultFacts(0)
    axes = normalize_axes(ctx.attr("axes") or range(len(shape)), len(shape))
    if axes is None:
        return None
    return ResultFacts(0, reduced_shape(shape, axes, bool(ctx.attr("keepdims", 1))))
