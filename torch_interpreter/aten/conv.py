"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import Size, SymScalar, dim_of, int_vector, shape_tensor, vector1d
from .operands import integers

Ints = int | Sequence[int]


def spatial(value: Ints, n: int) -> list[int]:
    """One value for every spatial dimension."""
    listed = [value] if isinstance(value, int) else list(value)
    return listed * n if len(listed) == 1 else listed


def batched(g: GraphWriter, x: str, rank: int, fct: Callable[[str], str]) -> str:
    """Applies a function to a batch; adds the batch dimension when torch lets it out."""
    if g.get_rank(x) == rank:
        return fct(x)
    axes = int_vector([0])
    return g.op.SqueezeAnyOpset(fct(g.op.UnsqueezeAnyOpset(x, axes)), axes)


def kernel_of(g: GraphWriter, weight: str) -> list[int] | None:
    """The sizes of a kernel, None if the weight is not known before the model runs."""
    return integers(g.get_shape(weight)[2:])


def _padding(
    padding: Ints | str, dilations: Sequence[int], kernel: Sequence[int] | None
) -> dict[str, Any]:
    """The attributes of a padding: ONNX lists begins then ends; torch a number or a name."""
    n = len(dilations)
    if not isinstance(padding, str):
        return {"pads": spatial(padding, n) * 2}
    if padding == "valid":
        return {"pads": [0] * (2 * n)}
    if kernel is None:
        if max(dilations) > 1:
            raise ValueError("padding='same' with a dilation needs a kernel whose sizes are known")
        return {"auto_pad": "SAME_UPPER"}
    total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    return {"pads": [*(t // 2 for t in total), *(t - t // 2 for t in total)]}


@aten(*(f"aten.conv{n}d.{overload}" for n in (1, 2, 3) for overload in ("default", "padding")))
def conv(
    g: GraphWriter,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> str:
    """Conv."""
    rank, kernel = g.get_rank(weight), kernel_of(g, weight)
    n = rank - 2
    dilations = spatial(dilation, n)
    options = {
        "strides": spatial(stride, n),
        **_padding(padding, dilations, kernel),
        "dilations": dilations,
        "group": groups,
        "kernel_shape": kernel,
    }
    return batched(g, x, rank, lambda image: g.op.Conv(image, weight, bias, **options))


@aten("aten.conv_transpose1d.default", *(f"aten.conv_transpose{n}d.input" for n in (2, 3)))
def conv_transpose(
    g: GraphWriter,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Size | Sequence[Size] = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> str:
    """ConvTranspose, then a Slice if the output padding depends on sizes."""
    rank = g.get_rank(weight)
    n = rank - 2
    strides, dilations = spatial(stride, n), spatial(dilation, n)
    added = [output_padding] if isinstance(output_padding, Size) else list(output_padding)
    added = added * n if len(added) == 1 else added
    more = [
        m if isinstance(m, int) else max(s, d) - 1
        for m, s, d in zip(added, strides, dilations, strict=True)
    ]
    options = {
        "strides": strides,
        **_transposed_padding(spatial(padding, n), more, strides),
        "dilations": dilations,
        "group": groups,
        "kernel_shape": kernel_of(g, weight),
    }

    def converted(image: str) -> str:
        y = g.op.ConvTranspose(image, weight, bias, **options)
        return _shortened(
            g, y, {i: (m, more[i]) for i, m in enumerate(added) if not isinstance(m, int)}
        )

    return batched(g, x, rank, converted)


def _transposed_padding(
    begins: list[int], more: list[int], strides: list[int]
) -> dict[str, list[int]]:
    """The attributes of a padding and of an output padding."""
    if all(m < s for m, s in zip(more, strides, strict=True)):
        return {"pads": begins * 2, "output_padding": more}
    # the padding at the end is reduced instead: onnxruntime only adds less than the stride
    ends = [p - m for p, m in zip(begins, more, strict=True)]
    if min(ends) < 0:
        raise ValueError("output_padding is above the stride and the padding")
    return {"pads": [*begins, *ends], "output_padding": [0] * len(more)}


def _shortened(g: GraphWriter, y: str, paddings: dict[int, tuple[SymScalar, int]]) -> str:
    """A result without the end of some spatial axes: axis -> the padding asked, the one it has."""
    if not paddings:
        return y
    ends = []
    for i, (m, most) in paddings.items():
        removed = g.op.Sub(int_vector([most]), vector1d(g, m))
        ends.append(SymScalar(g.op.Sub(vector1d(g, dim_of(g, y, i + 2)), removed)))
    starts, axes = int_vector([0] * len(ends)), int_vector([i + 2 for i in paddings])
    return g.op.Slice(y, starts, shape_tensor(g, ends), axes)


@aten("aten.convolution.default")
def convolution(
    g: GraphWriter,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> str:
    """Any convolution, transposed or not."""
    if not transposed:
        return conv(g, x, weight, bias, stride, padding, dilation, groups)
    operands = (x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv_transpose(g, *operands)
