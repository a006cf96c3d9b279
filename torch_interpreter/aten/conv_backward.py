"""Gradients of convolutions, found in the backward graphs of torch.compile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, int_vector, shape_tensor
from .conv import Ints, conv, conv_transpose, kernel_of, spatial
from .operands import integers
from .reduce import reduce
from .view import transpose


@aten("aten.convolution_backward.default")
def convolution_backward(
    g: GraphWriter,
    grad: str,
    x: str,
    weight: str,
    bias_sizes: Sequence[int] | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> list[str | None]:
    """The gradients of the image, the weight and the bias, None for those not needed.

    ``y[o, t] = sum(x[i, t * stride + k * dilation - padding] * w[o, i, k])``: a sum over *t* for
    the image, which is the transposed convolution, over *t* and the batch for the weight, which
    is a convolution whose stride is the dilation.
    """
    n = g.get_rank(weight) - 2
    window = _Window(spatial(stride, n), spatial(padding, n), spatial(dilation, n), groups)
    of_image, of_weight, of_bias = output_mask
    results: list[str | None] = [None, None, None]
    if of_image and transposed:
        results[0] = conv(g, grad, weight, None, *window)
    elif of_image:
        results[0] = _image_gradient(g, grad, x, weight, window)
    if of_weight:
        read, written = (grad, x) if transposed else (x, grad)
        results[1] = _weight_gradient(g, read, written, weight, window)
    if of_bias:
        axes = [i for i in range(g.get_rank(grad)) if i != 1]
        results[2] = reduce(g, "ReduceSum", grad, axes, False)
    return results


class _Window(NamedTuple):
    """The steps of a kernel, one number for each spatial dimension but for the groups."""

    strides: list[int]
    pads: list[int]
    dilations: list[int]
    groups: int


def _image_gradient(g: GraphWriter, grad: str, x: str, weight: str, window: _Window) -> str:
    """The transposed convolution, padded to the size of the image, whose end may be unread."""
    strides, pads, dilations, groups = window
    unread = _unread(g, x, weight, window)
    more = [s - 1 for s in strides] if unread is None else unread
    found = conv_transpose(g, grad, weight, None, strides, pads, more, groups, dilations)
    return found if unread is not None or max(strides) == 1 else _cut(g, found, x)


def _unread(g: GraphWriter, x: str, weight: str, window: _Window) -> list[int] | None:
    """The number of elements no window reads in each dimension, None if sizes are not known."""
    sizes, kernel = integers(g.get_shape(x)[2:]), kernel_of(g, weight)
    if sizes is None or kernel is None:
        return None
    rows = zip(sizes, kernel, *window[:3], strict=True)
    return [(size + 2 * p - d * (k - 1) - 1) % s for size, k, s, p, d in rows]


def _weight_gradient(g: GraphWriter, x: str, grad: str, weight: str, window: _Window) -> str:
    """A convolution of the image by the gradient; it sums over the batch as over channels.

    :param x: the tensor that the windows read
    :param grad: one number for each window
    """
    strides, pads, dilations, groups = window
    found = g.op.Conv(
        _channels_first(g, x, g.get_shape(weight)[1], groups),
        transpose(g, grad, 0, 1),
        strides=dilations,
        dilations=strides,
        pads=pads * 2,
        group=groups,
        kernel_shape=integers(g.get_shape(grad)[2:]),
    )
    unread = _unread(g, x, weight, window) or [s - 1 for s in strides]
    if any(u >= d for u, d in zip(unread, dilations, strict=True)):  # longer than the kernel
        found = _cut(g, found, weight)
    return transpose(g, found, 0, 1)


def _cut(g: GraphWriter, x: str, model: str) -> str:
    """Cuts the spatial dimensions of a result to the sizes of another one."""
    axes = [*range(2, g.get_rank(model))]
    sizes = integers(g.get_shape(model)[2:])
    ends = g.op.Shape(model, start=2) if sizes is None else int_vector(sizes)
    return g.op.Slice(x, int_vector([0] * len(axes)), ends, int_vector(axes))


def _channels_first(g: GraphWriter, x: str, channels: int | str, groups: int) -> str:
    """(batch, groups * channels, ...) -> (channels, groups * batch, ...)."""
    if groups == 1:
        return transpose(g, x, 0, 1)
    if isinstance(channels, str):
        raise ValueError("the gradient of a weight with groups needs its number of channels")
    sizes = [dim_of(g, x, axis) for axis in range(2, g.get_rank(x))]
    split = g.op.Reshape(x, shape_tensor(g, [-1, groups, channels, *sizes]))
    turned = g.op.Transpose(split, perm=[2, 1, 0, *range(3, len(sizes) + 3)])
    return g.op.Reshape(turned, shape_tensor(g, [channels, -1, *sizes]))
