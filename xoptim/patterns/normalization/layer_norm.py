"""LayerNormalization recognized in elementary operators, then merged with its scale and bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Shape
from xbuilder.operators.op_traits import FLOATS

from ...analysis.arguments import other_input
from ...analysis.axes import axis_of, reduced_axes
from ...analysis.constants import Ints, dtype_of, is_filled_with, scalar_constant
from ...analysis.kernels import require_fast
from ...analysis.permutations import inverse
from ...analysis.shapes import positive, proven_equal
from ...analysis.weights.norm_scales import moved_after, multiplied
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ...declarative import rule

_NOT_LAST = "axes are not the last ones"
#: fewest elements of a row that LayerNormalization and two Transpose normalize faster on CPU than
#: its elementary operators: 0.67 of their time for 16, 1.47 for 8
_LEAST = 16
#: types that lose no precision when a normalization computes in float
STASH_IN_FLOAT = FLOATS - {TensorProto.DOUBLE}


def over_root(name: str) -> str:
    """`name / sqrt(v + epsilon)` in every form, as the end of an equation."""
    return f"""e = v + epsilon; s = Sqrt(e) | e ** 0.5;
        y = {name} / s | {name} * (Reciprocal(s) | 1 / s) | {name} * e ** -0.5; y"""


def times_inverse(name: str) -> str:
    """`name * i`, i being `1 / sqrt(v + epsilon)`, which something else may read."""
    return f"""e = v + epsilon; s = Sqrt(e) | e ** 0.5;
        i = Reciprocal(s) | 1 / s | e ** -0.5; y = {name} * i"""


def mean_axes(g: RewriteContext, mean: str, rank: int) -> Ints:
    """The axes of a ReduceMean that keeps them as dimensions 1, sorted; refuses any other node.

    :param mean: result of the reduction
    :param rank: rank of its input
    """
    node = g.producer_of(mean, reason="there is no mean")
    g.require(g.get_attribute_with_default(node, "keepdims", 1), "keepdims is 0")
    axes = g.known(reduced_axes(g, node, rank), "axes are not constant")
    g.require(axes, "nothing is reduced")
    return tuple(sorted(axes))


def trailing_axis(g: RewriteContext, mean: str, rank: int) -> int:
    """First axis of a ReduceMean over the last axes, negative; refuses any other one.

    :param mean: result of the reduction
    :param rank: rank of its input
    """
    axes = mean_axes(g, mean, rank)
    g.require(_are_last(axes, rank), _NOT_LAST)
    return axes[0] - rank


def _are_last(axes: Ints, rank: int) -> bool:
    return axes == tuple(range(rank - len(axes), rank))


def normalized_operand(g: RewriteContext, x: str, epsilon: float) -> Shape:
    """Shape of the operand of a normalization computed in float; refuses other types."""
    shape = g.shape_of(x)
    g.require(shape, "there is no dimension")
    in_float = g.type_or_none(x) in STASH_IN_FLOAT
    g.require(in_float, "the type is not float, float16 or bfloat16")
    g.require(epsilon > 0, "epsilon is not a positive constant")
    return shape


def ones_like(g: RewriteContext, x: str, dims: Sequence[object]) -> np.ndarray:
    """A scale of ones in the type of a result; refuses dimensions that are not known."""
    known = [d for d in dims if isinstance(d, int) and d > 0]
    g.require(len(known) == len(dims), "the normalized dimensions are not known integers")
    return np.ones(known, dtype=dtype_of(g, x))


def unit_scale(g: RewriteContext, x: str, axis: int) -> Operand:
    """A scale of ones over the last dimensions of a result; refuses dimensions that may be empty,
    because runtimes do not normalize them.

    :param x: the result
    :param axis: first normalized axis, negative
    """
    canonical = g.get_registered_constraints().canonical
    dims = [canonical(d) for d in g.shape_of(x)[axis:]]
    if g.main_opset < 15 or all(isinstance(d, int) for d in dims):
        return ones_like(g, x, dims)
    known = all(positive(g, d) for d in dims)
    g.require(known, "the normalized dimensions are not known integers, they may be empty")
    return g.op.Expand(ones_like(g, x, ()), g.op.Shape(x, start=axis))


_CENTERED = "m = ReduceMean(x, *_, **_); d = x - m; v = ReduceMean(d ** 2 | d * d, *_, **_)"
#: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)
LAYER = f"{_CENTERED}; {over_root('d')}"
#: the same, whose inverse of the deviation is multiplied by a scale first
LAYER_SCALED = f"""{_CENTERED}; e = v + epsilon; s = Sqrt(e) | e ** 0.5;
    y = d * (scale * (Reciprocal(s) | 1 / s)) | d * (scale * e ** -0.5); y"""
#: the same, and the mean and the inverse of the deviation, that something else reads
LAYER_AND_STATISTICS = f"{_CENTERED}; {times_inverse('d')}; (y, m, i)"


def layer_operator(
    g: RewriteContext,
    x: str,
    m: str,
    v: str,
    y: str,
    epsilon: float,
    i: str | None,
    scale: str | None,
) -> dict[str, Replacement]:
    """The LayerNormalization that computes :data:`LAYER` or :data:`LAYER_AND_STATISTICS`.

    :param x: the operand
    :param m: its mean
    :param v: mean of the squares
    :param y: the result
    :param epsilon: its value
    :param i: the inverse of the deviation, if something else may read it
    :param scale: what multiplies the inverse of the deviation first
    """
    rank = len(normalized_operand(g, x, epsilon))
    axes = mean_axes(g, m, rank)
    g.require(mean_axes(g, v, rank) == axes, "the two means have different axes")
    if i is None and not _are_last(axes, rank):
        return {y: times_scale(g, _over_axes(g, x, axes, epsilon), scale)}
    axis = trailing_axis(g, m, rank)
    inputs, options = [x, unit_scale(g, x, axis)], {"axis": axis, "epsilon": epsilon}
    new = NewNode("LayerNormalization", inputs, options, outputs=1 if i is None else 3)
    if i is None:
        return {y: times_scale(g, new[0], scale)}
    return {y: new[0], m: as_type_of(g, x, new[1]), i: as_type_of(g, x, new[2])}


def as_type_of(g: RewriteContext, x: str, statistic: NewResult) -> NewResult:
    """A mean or the inverse of a deviation, which a normalization computes in float, in the type of
    its operand."""
    kind = g.type_of(x)
    return statistic if kind == TensorProto.FLOAT else g.op.Cast(statistic, to=kind)[0]


def times_scale(g: RewriteContext, new: NewNode | NewResult, scale: str | None) -> Replacement:
    """The normalized result, multiplied by the scale if there is one."""
    return new if scale is None else g.op.Mul(new, scale)


def _over_axes(g: RewriteContext, x: str, axes: Ints, epsilon: float) -> NewNode:
    """The normalization over axes that are moved to the end, then back to their places."""
    shape = g.shape_of(x)
    perm = (*(a for a in range(len(shape)) if a not in axes), *axes)
    scale, axis = ones_like(g, x, [shape[a] for a in axes]), -len(axes)
    short = scale.size < _LEAST and g.has_processor("CPU")
    require_fast(g, not short, "the rows are short, their normalization is slower")
    moved = g.op.Transpose(x, perm=perm)
    new = g.op.LayerNormalization(moved, scale, axis=axis, epsilon=epsilon)
    return g.op.Transpose(new, perm=inverse(perm))


@rule(
    "default",
    LAYER,
    LAYER_SCALED,
    LAYER_AND_STATISTICS,
    root="m",
    min_opset=17,
    precision="rounding",
)
def layer_normalization(
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

    1. d^2 is Pow(d, 2) or d * d;
    2. the division may be a product by Reciprocal, by 1 / sqrt or by Pow(..., -0.5), which a scale
       multiplies first (flax);
    3. both means are over the same axes, keepdims=1, whose lengths are known, or proven not to be
       null; if they are not the last ones, as for the channels of images (SAM), they are moved
       there and back;
    4. without epsilon a constant row gives NaN: not rewritten;
    5. something else may read the mean and the inverse of the deviation, as gradients do: they are
       the other results, which are float and converted to the type of x.
    """
    return layer_operator(g, x, m, v, y, epsilon, i, scale)


@rewrite("default", root="LayerNormalization", read_by=("Mul", "Add"), precision="rounding")
def layer_normalization_scale(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """LayerNormalization(x, s, b) * c + d -> LayerNormalization(x, s * c, b * c + d).

    1. c and d have exactly the shape of s, the one of the normalized dimensions;
    2. s is made of ones and there is no b: c and d may be any results;
    3. otherwise s * c and b * c are products of constants; d needs a b that is missing or null;
    4. the product alone, or the addition alone;
    5. c, d are scalar constants, or have the dimensions of s behind dimensions 1, s is constant.
    """
    x, scale, bias = (*g.inputs(node), "")[:3]
    result, factor = _combined(g, node, node.output[0], "Mul")
    scales: list[Operand] = [scale, bias] if bias and not is_filled_with(g, bias, 0) else [scale]
    if factor:
        scales = [multiplied(g, name, factor) for name in (scale, bias)[: len(scales)]]
        known = all(new is not None for new in scales)
        g.require(known, "the scale or the bias is not constant")
    if len(scales) == 1:
        result, term = _combined(g, node, result, "Add")
        scales += [_full(g, scale, term or bias)] if term or bias else []
    changed = result != node.output[0]
    g.require(changed, "nothing that has the shape of the scale comes after")
    return moved_after(g, node, result, x, *scales)


def _combined(g: RewriteContext, node: NodeProto, result: str, op_type: str) -> tuple[str, str]:
    """The result and the operand of the only use of a result, when the operand has the shape of the
    scale; the same result and nothing otherwise."""
    after = g.after_or_none(result, op_type)
    if after is None:
        return result, ""
    name = other_input(after, result)
    shape, found = g.shape_or_none(node.input[0]), g.shape_or_none(name)
    if not shape or found is None:
        return result, ""
    scalar = scalar_constant(g, name, len(shape)) is not None
    sizes = g.get_constant_shape(node.input[1])
    if sizes is not None and (scalar or _is_row(g, name, sizes, len(shape))):
        return after.output[0], name
    if not g.same_shape(name, node.input[1]):
        return result, ""
    axis = axis_of(g, node, len(shape), -1)
    same = axis is not None and proven_equal(g, found, shape[axis:])
    return (after.output[0], name) if same else (result, "")


def _is_row(g: RewriteContext, name: str, sizes: Ints, rank: int) -> bool:
    """Whether a constant is a scale behind dimensions 1, for an operand of this rank."""
    found = g.get_constant_shape(name) or ()
    first = len(found) - len(sizes)
    return first >= 0 and found == (1,) * first + sizes and len(found) <= rank


def _full(g: RewriteContext, scale: str, name: str) -> Operand:
    """A bias with the shape of the scale: a scalar is expanded, a row loses its dimensions 1."""
    value = g.constant_or_none(name)
    if value is None or g.same_shape(scale, name):
        return name
    sizes = g.static_shape(scale)
    return (
        np.full(sizes, value.ravel()[0], dtype=value.dtype)
        if value.size == 1
        else value.reshape(sizes)
    )
