"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..registry import aten
from ..symbols import int_vector
from .operands import Outputs

Ints = int | Sequence[int]


def spatial(value: Ints, n: int) -> list[int]:
    """One value for every spatial dimension."""
    listed = [value] if isinstance(value, int) else list(value)
    return listed * n if len(listed) == 1 else listed


def batched(g: Any, x: str, rank: int, fct: Callable[[str, Outputs], str], outputs: Outputs) -> str:
    """Adds the batch dimension torch allows to forget."""
    if g.get_rank(x) == rank:
        return fct(x, outputs)
    axes = int_vector([0])
    return g.op.SqueezeAnyOpset(fct(g.op.UnsqueezeAnyOpset(x, axes), None), axes, outputs=outputs)


def convolve(
    g: Any,
    outputs: Outputs,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
) -> str:
    """Conv; *padding* is a number per dimension, "valid" or "same"."""
    rank = g.get_rank(weight)
    n = rank - 2
    dilations = spatial(dilation, n)
    if isinstance(padding, str):
        total = [
            d * (k - 1) if padding == "same" else 0
            for d, k in zip(dilations, g.get_shape(weight)[2:], strict=True)
        ]
        pads = [*(t // 2 for t in total), *(t - t // 2 for t in total)]
    else:
        pads = spatial(padding, n) * 2

    def run(image: str, names: Outputs) -> str:
        return g.op.Conv(
            image,
            weight,
            *([] if bias is None else [bias]),
            strides=spatial(stride, n),
            pads=pads,
            dilations=dilations,
            group=groups,
            kernel_shape=list(g.get_shape(weight)[2:]),
            outputs=names,
        )

    return batched(g, x, rank, run, outputs)


@aten(*(f"aten.conv{n}d.{overload}" for n in (1, 2, 3) for overload in ("default", "padding")))
def conv(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> str:
    """Conv."""
    return convolve(g, outputs, x, weight, bias, stride, padding, dilation, groups)


def transposed_convolve(
    g: Any,
    outputs: Outputs,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> str:
    """ConvTranspose."""
    rank = g.get_rank(weight)
    n = rank - 2

    def run(image: str, names: Outputs) -> str:
        return g.op.ConvTranspose(
            image,
            weight,
            *([] if bias is None else [bias]),
            strides=spatial(stride, n),
            pads=spatial(padding, n) * 2,
            dilations=spatial(dilation, n),
            output_padding=spatial(output_padding, n),
            group=groups,
            kernel_shape=list(g.get_shape(weight)[2:]),
            outputs=names,
        )

    return batched(g, x, rank, run, outputs)


@aten("aten.conv_transpose1d.default", *(f"aten.conv_transpose{n}d.input" for n in (2, 3)))
def conv_transpose(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> str:
    """ConvTranspose."""
    return transposed_convolve(
        g, outputs, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


@aten("aten.convolution.default")
def convolution(
    g: Any,
    sts: Any,
    outputs: Outputs,
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
    if transposed:
        return transposed_convolve(
            g, outputs, x, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return convolve(g, outputs, x, weight, bias, stride, padding, dilation, groups)
