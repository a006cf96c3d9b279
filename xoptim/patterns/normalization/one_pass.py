"""Means written as sums, variances as mean(x^2) - mean(x)^2, x - mean(x) multiplied out."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ...analysis.arguments import int_attribute, other_input
from ...analysis.axes import reduced_axes
from ...analysis.constants import Ints, is_filled_with, is_number
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

_AXES = "the axes are not known"


@rewrite("default", "canonicalize", root="ReduceSum", read_by=("Div", "Mul"), precision="rounding")
def sum_to_mean(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """ReduceSum(x) / n -> ReduceMean(x), n is the number of elements of a sum.

    1. The lengths of the summed dimensions are known; the division may be a product by 1 / n.
    2. The type is a float type.
    """
    x, result = node.input[0], node.output[0]
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float type")
    shape, after = g.shape_of(x), g.after(node, "Div", "Mul")
    axes = g.known(reduced_axes(g, node, len(shape)) or None, _AXES)
    sizes = [d for d in (shape[a] for a in axes) if isinstance(d, int)]
    count = prod(sizes) if len(sizes) == len(axes) else 0
    g.require(count, "the number of elements is not known")
    is_quotient = after.op_type == "Div" and after.input[0] == result
    number = count if is_quotient else 1 / count
    divided = (is_quotient or after.op_type == "Mul") and is_number(
        g, other_input(after, result), number, g.rank_or_none(result)
    )
    g.require(divided, "it is not divided by the number of elements")
    mean = g.op.ReduceMean(x, axes=axes, keepdims=int_attribute(node, "keepdims", 1))
    return {after.output[0]: mean}


class Mean(NamedTuple):
    """A ReduceMean whose axes are known."""

    x: str
    axes: Ints
    keepdims: int


def _mean_of(g: RewriteContext, name: str) -> Mean:
    node = g.before(name, "ReduceMean")
    x: str = node.input[0]
    axes = g.known(reduced_axes(g, node, g.rank_of(x)) or None, _AXES)
    return Mean(x, tuple(sorted(axes)), g.known(int_attribute(node, "keepdims", 1), "keepdims"))


def _squared(g: RewriteContext, name: str) -> str:
    """The operand of a square: x * x or x ** 2."""
    node = g.before(name, "Mul", "Pow")
    x: str = node.input[0]
    other = node.input[1]
    if node.op_type == "Mul":
        g.require(x == other, "it is not a square")
    else:
        g.require(is_number(g, other, 2, g.rank_or_none(x)), "it is not a square")
    return x


@rewrite("default", root="Sub", after="ReduceMean", precision="rounding")
def one_pass_variance(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """ReduceMean(x * x) - ReduceMean(x)^2 -> ReduceMean((x - ReduceMean(x))^2).

    1. Both means are over the same axes, which are known, with the same keepdims.
    2. A Relu or a maximum with 0 behind it goes: the new one is never negative, and loses no digit
       when the mean is large.

    The difference is the one a LayerNormalization computes, as flax writes it (magika): it makes
    one with it.
    """
    squares, square = node.input
    of_squares, of_x = _mean_of(g, squares), _mean_of(g, _squared(g, square))
    x = _squared(g, of_squares.x)
    g.require(of_x == Mean(x, *of_squares[1:]), "the means are not those of the same elements")
    axes, keepdims = of_x[1:]
    mean = g.producer_of(square).input[0]
    kept = mean if keepdims else g.op.Unsqueeze(mean, axes=axes)
    centered = g.op.Sub(x, kept)
    new = g.op.ReduceMean(g.op.Mul(centered, centered), axes=axes, keepdims=keepdims)
    return {_bounded(g, node.output[0]): new}


def _bounded(g: RewriteContext, name: str) -> str:
    """The maximum of a result and 0 if nothing else reads it, the result otherwise."""
    after = g.after_or_none(name, "Relu", "Max")
    if after is None:
        return name
    others = [other for other in after.input if other != name]
    zero = all(is_filled_with(g, other, 0) and g.rank_or_none(other) == 0 for other in others)
    return after.output[0] if zero and len(others) == len(after.input) - 1 else name


@rule(
    "default",
    "canonicalize",
    "y = x * k + (b - m * k | -m * k + b | -(m * k) + b); y -> (x - m) * k + b",
    precision="rounding",
)
def factored_mean(g: RewriteContext, x: str, m: str) -> None:
    """x * k + (b - mean(x) * k) -> (x - mean(x)) * k + b.

    Keras writes its normalizations so, and computes x - mean(x) for the variance beside: what
    follows is a LayerNormalization. The mean keeps its axes as dimensions 1.
    """
    node = g.producer_of(m, "ReduceMean", reason="it is not multiplied by a mean")
    g.require(node.input[0] == x, "it is not the mean of what is multiplied")
    g.require(g.rank_of(m) == g.rank_of(x), "the dimensions of the mean go")
