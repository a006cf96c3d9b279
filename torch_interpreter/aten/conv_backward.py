"""The gradients of convolutions: the backward graphs of torch.compile have them."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph_writer import GraphWriter
from ..registry import aten
from ..symbols import dim_of, int_vector, shape_tensor
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
    """The gradients of the image, the weight and the bias, None for those nobody needs.

    ``y[o, t] = sum(x[i, t * stride + k * dilation - padding] * w[o, i, k])``: a sum over *t* for
    the image, which is the transposed convolution, over *t* and the batch for the weight, which
    is a convolution whose stride is the dilation.
    """
    window = (stride, padding, dilation, groups)
    of_image, of_weight, of_bias = output_mask
    results: list[str | None] = [None, None, None]
    if of_image and transposed:
        results[0] = conv(g, grad, weight, None, *window)
    elif of_image:
        results[0] = _image_gradient(g, grad, x, weight, *window)
    if of_weight:
        read, written = (grad, x) if transposed else (x, grad)
        results[1] = _weight_gradient(g, read, written, weight, *window)
    if of_bias:
        axes = [i for i in range(g.get_rank(grad)) if i != 1]
        results[2] = reduce(g, "ReduceSum", grad, axes, False)
    return results


def _image_gradient(
    g: GraphWriter,
    grad: str,
    x: str,
    weight: str,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> str:
    """The transposed convolution, as long as the image: its last elements may be in no window."""
    n = g.get_rank(weight) - 2
    strides = spatial(stride, n)
    unread = _unread(g, x, weight, strides, spatial(padding, n), spatial(dilation, n))
    more = [s - 1 for s in strides] if unread is None else unread
    operands = (grad, weight, None, stride, padding, more, groups, dilation)
    found = conv_transpose(g, *operands)
    if unread is not None or max(strides) == 1:
        return found
    begins, axes = [0] * n, range(2, n + 2)
    return g.op.Slice(found, int_vector(begins), g.op.Shape(x, start=2), int_vector([*axes]))


def _unread(
    g: GraphWriter,
    x: str,
    weight: str,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> list[int] | None:
    """How many elements no window reads, in each dimension; None if the sizes are not known."""
    sizes, kernel = integers(g.get_shape(x)[2:]), kernel_of(g, weight)
    if sizes is None or kernel is None:
        return None
    rows = zip(sizes, kernel, strides, pads, dilations, strict=True)
    return [(size + 2 * p - d * (k - 1) - 1) % s for size, k, s, p, d in rows]


def _weight_gradient(
    g: GraphWriter,
    x: str,
    grad: str,
    weight: str,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> str:
    """A convolution of the image by the gradient: the batch is summed, as channels are.

    :param x: what the windows read
    :param grad: one number for each window
    """
    n = g.get_rank(weight) - 2
    strides, pads, dilations = spatial(stride, n), spatial(padding, n), spatial(dilation, n)
    found = g.op.Conv(
        _channels_first(g, x, g.get_shape(weight)[1], groups),
        transpose(g, grad, 0, 1),
        strides=dilations,
        dilations=strides,
        pads=pads * 2,
        group=groups,
        kernel_shape=integers(g.get_shape(grad)[2:]),
    )
    unread = _unread(g, x, weight, strides, pads, dilations) or [s - 1 for s in strides]
    if any(u >= d for u, d in zip(unread, dilations, strict=True)):  # longer than the kernel
        kernel = kernel_of(g, weight)
        ends = g.op.Shape(weight, start=2) if kernel is None else int_vector(kernel)
        axes = int_vector([*range(2, n + 2)])
        found = g.op.Slice(found, int_vector([0] * n), ends, axes)
    return transpose(g, found, 0, 1)


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
