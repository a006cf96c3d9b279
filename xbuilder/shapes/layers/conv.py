"""Convolutions, and the arithmetic of windows shared with pooling."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...dims import Dim, Shape, add, ceildiv, dim_max, dim_min, floordiv, mul, prove_ge, sub
from ...facts.facts import ResultFacts
from ..common import INT32, merge_dim, new_shape, refuses_negative, same_as_first
from ..context import ShapeContext
from ..shipped import shipped_function


class SlidingWindow(NamedTuple):
    """A window sliding over spatial dimensions, see :func:`window_of`.

    :param kernel: size of the window along each spatial axis, None if it is unknown
    :param strides: moves along each axis
    :param dilations: distance of two positions along each axis
    :param pads: positions added before each axis, then after each of them
    :param auto_pad: how the padding is chosen
    :param ceil_mode: a window may go beyond the end
    :param is_pool: a pooling accepts a window that is larger than the padded input
    """

    kernel: tuple[Dim, ...] | None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str
    ceil_mode: bool
    is_pool: bool

    def is_valid(self, rank: int) -> bool:
        """Whether every attribute has the right length and the strides are positive."""
        lists = (self.strides, self.dilations, self.kernel)
        right = all(values is None or len(values) == rank for values in lists)
        return right and len(self.pads) == 2 * rank and all(s > 0 for s in self.strides)

    def extent(self, i: int) -> Dim | None:
        """Number of positions the window covers along spatial axis *i*, None if it is unknown."""
        if self.kernel is None:
            return None
        return add(mul(self.dilations[i], sub(self.kernel[i], 1)), 1)

    def padding(self, i: int) -> tuple[int, int]:
        """Elements added before and after spatial axis *i*, unless they depend on its dimension."""
        if self.auto_pad != "NOTSET":
            return 0, 0
        return self.pads[i], self.pads[i + len(self.pads) // 2]

    def span(self, i: int, dim: Dim) -> Dim | None:
        """Number of moves of the window by one position, None if it is unknown; it is not negative
        in a valid model."""
        extent = self.extent(i)
        return None if extent is None else sub(add(dim, sum(self.padding(i))), extent)

    def output(self, i: int, dim: Dim) -> Dim | None:
        """Dimension of the output along spatial axis *i*, None if it is unknown.

        The window fits in the padded input in a valid model, so does it in the formula: when it is
        known that it does not, runtimes disagree or fail, and the dimension is unknown.
        """
        stride = self.strides[i]
        if self.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            # onnxruntime ignores dilations in the padding, or refuses them
            is_dense = self.dilations[i] == 1 or (self.kernel is not None and self.kernel[i] == 1)
            return ceildiv(dim, stride) if is_dense else None
        span, extent = self.span(i, dim), self.extent(i)
        if span is None or extent is None or prove_ge(span, 0) is False:
            return None
        head, tail = self.padding(i)
        plain = add(floordiv(span, stride), 1)
        if not self.ceil_mode or stride == 1:
            if not self.is_pool:
                return plain
            return self._truncated(span, stride, head + tail, extent, plain)
        # a window that would start in the padding at the end is ignored
        rounded = dim_min(add(ceildiv(span, stride), 1), ceildiv(add(dim, head), stride))
        if self.auto_pad == "VALID":
            return plain if rounded == plain else None
        return rounded

    def _truncated(self, span: Dim, stride: int, padding: int, extent: Dim, plain: Dim) -> Dim:
        """Number of windows of a pooling, whose window may be larger than the padded input.

        Runtimes truncate the quotient towards 0, and fail if the result is negative: a window of 2
        with a stride of 2 gives one element on an input of size 1. The input is not empty, since
        runtimes fail otherwise, unless the batch is empty too.

        :param span: number of moves by one position, it may be negative
        :param padding: number of positions added to the input
        :param extent: number of positions the window covers
        :param plain: the number of windows if *span* is not negative
        """
        least, rounded = sub(1 + padding, extent), add(ceildiv(span, stride), 1)
        if rounded == plain or prove_ge(least, 0) or prove_ge(span, 0):
            return plain
        if prove_ge(least, 1 - stride) or prove_ge(span, 1 - stride):
            return dim_max(plain, 1)
        return dim_max(plain, dim_min(rounded, 1))

    def outputs(self, ctx: ShapeContext, dims: Shape) -> Shape:
        """Spatial dimensions of the output, fresh symbols for the unknown ones. The window of a
        convolution fits in its input, which gives lower bounds to the constraints."""
        found = _outputs(self, dims)
        if not self.is_pool and self.auto_pad in ("NOTSET", "VALID"):
            for i, dim in enumerate(dims):
                span = self.span(i, dim) if isinstance(dim, str) else None
                if span is not None:
                    ctx.constraints.add_at_least(span, 0)
        return tuple(
            [
                ctx.new_dim(f"{ctx.op_type.lower()}_d{i}") if d is None else d
                for i, d in enumerate(found)
            ]
        )


@lru_cache(maxsize=1 << 12)
def _outputs(window: SlidingWindow, dims: Shape) -> tuple[Dim | None, ...]:
    """Spatial dimensions of the output of a window, None for the unknown ones. Cached, because the
    layers of a model are often alike, and a rewrite changes few of them."""
    return tuple(window.output(i, dim) for i, dim in enumerate(dims))


def window_of(
    ctx: ShapeContext, kernel: tuple[Dim, ...] | None, rank: int, is_pool: bool = False
) -> SlidingWindow | None:
    """The window of a node, None if an attribute does not have the right length.

    :param ctx: context of the node
    :param kernel: size of the window along each spatial axis, None if it is unknown
    :param rank: number of spatial axes
    :param is_pool: a pooling accepts a window that is larger than the padded input
    """
    window = SlidingWindow(
        kernel,
        tuple(ctx.attr("strides") or (1,) * rank),
        tuple(ctx.attr("dilations") or (1,) * rank),
        tuple(ctx.attr("pads") or (0,) * (2 * rank)),
        ctx.attr("auto_pad", "NOTSET") or "NOTSET",
        bool(ctx.attr("ceil_mode", 0)),
        is_pool,
    )
    return window if window.is_valid(rank) else None


def conv_facts(ctx: ShapeContext, elem_type: int, w: int) -> ResultFacts | None:
    """Facts of a convolution of the first input, of shape `(N, C, D1, ...)`.

    :param ctx: context
    :param elem_type: type of the result
    :param w: index of the weights, of shape `(M, C/group, k1, ...)`
    """
    shape, weights = ctx.shape(0), ctx.shape(w)
    channels = _channels(ctx, weights[0] if weights else None)
    if shape is None:
        return _from_weights(ctx, elem_type, w, channels)
    window = _weights_window(ctx, shape, weights)
    if window is None:
        return None
    channels = ctx.new_dim("channels") if channels is None else channels
    if weights is not None:
        expected = mul(weights[1], ctx.attr("group", 1))
        if merge_dim(ctx, shape[1], expected) is None:
            return None
    return ResultFacts(elem_type, (shape[0], channels, *window.outputs(ctx, shape[2:])))


def _channels(ctx: ShapeContext, channels: Dim | None) -> Dim | None:
    """Number of channels of the result of Conv or ConvTranspose, None if it is unknown. The bias
    has as many elements: no runtime accepts another length.

    :param ctx: context
    :param channels: number of channels the weights give, None if their shape is unknown
    """
    bias = ctx.shape(2) if ctx.op_type in ("Conv", "ConvTranspose") else None
    if bias is None or len(bias) != 1:
        return channels
    merged = bias[0] if channels is None else merge_dim(ctx, channels, bias[0])
    return channels if merged is None else merged


def _weights_window(ctx: ShapeContext, shape: Shape, weights: Shape | None) -> SlidingWindow | None:
    """The window of a convolution, None if the node is not valid.

    :param ctx: context
    :param shape: shape of the data
    :param weights: shape of the weights, the last dimensions are those of the window
    """
    if (weights is not None and len(weights) != len(shape)) or len(shape) < 3:
        return None
    rank = len(shape) - 2
    kernel = ctx.attr("kernel_shape") or (None if weights is None else weights[2:])
    return window_of(ctx, None if kernel is None else tuple(kernel), rank)


def _from_weights(
    ctx: ShapeContext, elem_type: int, w: int, channels: Dim | None
) -> ResultFacts | None:
    """Facts of a convolution of data of unknown shape. The weights give the rank and the number of
    channels, the other dimensions are fresh symbols.

    :param ctx: context
    :param elem_type: type of the result
    :param w: index of the weights
    :param channels: number of channels of the result, None if it is unknown
    """
    ranks = {r for r in (ctx.rank(0), ctx.rank(w)) if r is not None}
    if len(ranks) > 1:
        return None
    rank = min(ranks, default=None)
    if rank is None or rank < 3 or channels is None:
        return ResultFacts(elem_type, None, rank)
    return ResultFacts(elem_type, (ctx.new_dim("batch"), channels, *new_shape(ctx, rank - 2)))


@shipped_function("Conv")
@refuses_negative
def conv(ctx: ShapeContext) -> ResultFacts | None:
    """Conv."""
    return conv_facts(ctx, ctx.type(0) or ctx.type(1), 1)


@shipped_function("ConvInteger")
@refuses_negative
def conv_integer(ctx: ShapeContext) -> ResultFacts | None:
    """ConvInteger accumulates in int32."""
    return conv_facts(ctx, INT32, 1)


@shipped_function("QLinearConv")
@refuses_negative
def qlinear_conv(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearConv: the type is the one of the output's zero point."""
    return conv_facts(ctx, ctx.type(7), 3)


@shipped_function("DeformConv", since=19)
@refuses_negative
def deform_conv(ctx: ShapeContext) -> ResultFacts | None:
    """DeformConv has the shape of Conv."""
    return conv_facts(ctx, ctx.type(0), 1)


@shipped_function("ConvTranspose")
@refuses_negative
def conv_transpose(ctx: ShapeContext) -> ResultFacts | None:
    """ConvTranspose: weights are `(C, M/group, k1, ...)`."""
    elem_type = ctx.type(0) or ctx.type(1)
    shape, weights = ctx.shape(0), ctx.shape(1)
    known = None if weights is None or len(weights) < 2 else weights[1]
    channels = _channels(ctx, None if known is None else mul(known, ctx.attr("group", 1)))
    if shape is None:
        return _from_weights(ctx, elem_type, 1, channels)
    window = _weights_window(ctx, shape, weights)
    if window is None:
        return None
    if weights:
        merge_dim(ctx, shape[1], weights[0])
    channels = ctx.new_dim("channels") if channels is None else channels
    wanted = ctx.attr("output_shape")
    rank = len(shape) - 2
    extra = ctx.attr("output_padding") or [0] * rank
    if len(extra) != rank:
        return None
    if wanted:
        spatial: Shape = tuple(wanted[-rank:])
    else:
        spatial = _transposed_dims(ctx, window, shape[2:], extra)
    return ResultFacts(elem_type, (shape[0], channels, *spatial))


def _transposed_dims(
    ctx: ShapeContext, window: SlidingWindow, dims: Shape, extra: list[int]
) -> Shape:
    """Spatial dimensions of a transposed convolution, fresh symbols for the unknown ones.

    :param extra: elements added at the end
    """
    result: list[Dim] = []
    for i, dim in enumerate(dims):
        size = _transposed_dim(window, i, dim, extra[i])
        result.append(ctx.new_dim("convtranspose") if size is None else size)
    return tuple(result)


def _transposed_dim(window: SlidingWindow, i: int, dim: Dim, extra: int) -> Dim | None:
    """Dimension of a transposed convolution along spatial axis *i*, None if it is unknown."""
    stride = window.strides[i]
    extent = window.extent(i)
    if extent is not None:
        extent = add(extent, extra)
    if window.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        # onnxruntime gives less than onnx when windows leave holes between them
        is_full = stride == 1 or (extent is not None and prove_ge(extent, stride))
        return mul(dim, stride) if is_full else None
    if extent is None:
        return None
    total = 0
    if window.auto_pad == "NOTSET":
        total = window.pads[i] + window.pads[i + len(window.pads) // 2]
    size = add(mul(stride, sub(dim, 1)), sub(extent, total))
    return None if prove_ge(size, 1) is False else size


@shipped_function("CausalConvWithState")
@refuses_negative
def causal_conv(ctx: ShapeContext) -> list[ResultFacts]:
    """CausalConvWithState: the state keeps the `k - 1` last positions."""
    facts, weights = ctx.facts(0), ctx.shape(1)
    output = same_as_first(ctx)
    state = ResultFacts(facts.type, ctx.shape(3), 3)
    if state.shape is None and facts.shape is not None and weights:
        state.shape = (*facts.shape[:2], sub(weights[-1], 1))
    return [output, state][: ctx.n_outputs]
