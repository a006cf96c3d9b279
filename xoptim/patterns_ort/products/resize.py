"""Resizes pictures with the channels last or with products, where onnxruntime is faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.nodes.attributes import has_reference

from ...analysis.arguments import optional_input
from ...analysis.kernels import require_fast, require_float_on_cpu
from ...analysis.neighbours import consumers_of
from ...analysis.permutations import perm_of
from ...analysis.values.infinities import may_hold_infinities
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

#: permutations that move the channels to the last axis, and back
_LAST, _SECOND = (0, 2, 3, 1), (0, 3, 1, 2)
#: fewest channels for which linear interpolation is faster, with two more Transpose and without
_CHANNELS, _ALREADY_LAST = 16, 8
#: bounds on the elements of the result, with two more Transpose: fewer do not pay for them, more
#: do not stay in the cache; the second bound is for one picture when their number is unknown
_LEAST, _MOST, _MOST_EACH = 1 << 10, 1 << 20, 1 << 18
#: most elements of a matrix of weights
_MATRIX = 1 << 19


class _Pictures(NamedTuple):
    """The interpolation of a Resize, the shapes before and after, the factor of each dimension,
    None if it is not known."""

    mode: str
    shape: Shape
    target: Shape
    scales: list[float | None]


@rewrite("onnxruntime", root="Resize", min_opset=11, priority="late", precision="rounding")
def resize_channels_last(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Transpose(Resize(Transpose(x))) -> Resize(x), the channels are last. On CPU, for pictures.

    1. One Transpose is enough, the other one moves to the other side. The first one may come before
       a Reshape: `(n, h * w, c)` -> `(n, c, h * w)` -> `(n, c, h, w)`.
    2. Cubic interpolation, when neither side shrinks: the kernel takes 0.03 to 0.4 of the time.
    3. Linear interpolation, of 8 channels at least if both Transpose are there, of 16 otherwise, to
       larger sides: 0.1 to 0.9 of the time. If a Transpose moves behind it, the result has 1,024 to
       1,048,576 elements, 262,144 for each picture of an unknown number: with more, the Transpose
       takes what the kernel saves.
    4. The nearest elements, if both Transpose are there: 0.1 to 1 of the time.

    Only the last two dimensions change, the last one does, nothing is cropped or smoothed. It is
    for the heads of Segformer and DPT, and the models of Keras. A Resize without any Transpose
    stays: onnxruntime would move two new ones together when it loads the model.
    """
    x, result = node.input[0], node.output[0]
    mode, shape, target, scales = _pictures(g, node)
    g.require(scales[3] != 1, "the last dimension may not change")
    after = g.reader_or_none(result, "Transpose")
    back = after is not None and perm_of(g, after) == _LAST
    data = _before(g, node, back)
    g.require(data is not None or back, "no Transpose would be saved")
    grows = all(s is not None and s >= 1 for s in scales)
    both = data is not None and back
    g.require(both or mode != "nearest", "one Transpose is missing")
    g.require(grows or (both and mode != "cubic"), "a side may shrink")
    if mode == "linear":
        least = _ALREADY_LAST if both else _CHANNELS
        require_fast(g, _at_least(shape[1], least), f"there are fewer than {least} channels")
        require_fast(g, back or _fits(target), "the result is too small, too large, or not known")
    moved = data if data is not None else g.op.Transpose(x, perm=list(_LAST))
    new = _channels_last(g, node, moved, target)
    if after is not None and back:
        g.look_at(after)
        return {after.output[0]: new}
    return {result: g.op.Transpose(new, perm=list(_SECOND))}


@rewrite("approximate", root="Resize", min_opset=11, priority="later", precision="approximate")
def resize_cubic_products(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Resize(x), cubic -> MatMul(rows, MatMul(x, columns)). On CPU, for pictures.

    1. The sides are known before and after, nothing else changes; the weights of each side are a
       constant matrix of 524,288 elements at most.
    2. Nothing is cropped or smoothed, the size is not rounded.
    3. x is taken for finite: a NaN or an infinity makes NaN of its row and of its column, where the
       kernel keeps it among its neighbours.

    The kernel computes 16 weights for each pixel again. The products take 0.02 to 0.2 of its time:
    super-resolution, models that resize their picture.
    """
    x = node.input[0]
    mode, shape, target, scales = _pictures(g, node)
    g.require(mode == "cubic", "it is not cubic")
    before, after = ([d for d in dims[2:] if isinstance(d, int)] for dims in (shape, target))
    g.require(len(before) == len(after) == 2 and min(before) > 0, "the sides are not known")
    g.require(not may_hold_infinities(g, x), "the picture holds infinities")
    rows, columns = (
        _weights(g, node, *sides) for sides in zip(before, after, scales[2:], strict=True)
    )
    new: str | NewNode = x
    if scales[3] != 1:
        new = g.op.MatMul(new, np.ascontiguousarray(columns.T))
    if scales[2] != 1:
        new = g.op.MatMul(rows, new)
    g.require(not isinstance(new, str), "nothing changes")
    return new


def _weights(
    g: RewriteContext, node: NodeProto, before: int, after: int, scale: float | None
) -> np.ndarray:
    """The share of each pixel of one side in each pixel of the result, `(after, before)`, as the
    definition of Resize computes it: https://onnx.ai/onnx/operators/onnx__Resize.html."""
    g.require(before * after <= _MATRIX, "the matrix would be large")
    if scale is None or abs(scale * before - after) > 1e-6 * after:
        g.refuse("the size is rounded")
    moves = "coordinate_transformation_mode"
    where = g.get_attribute_with_default(node, moves, "half_pixel")
    a = g.get_attribute_with_default(node, "cubic_coeff_a", -0.75)
    places = np.arange(after, dtype=np.float64)
    if where in ("half_pixel", "pytorch_half_pixel"):
        g.require(after > 1 or where == "half_pixel", "runtimes place a single pixel in two ways")
        places = (places + 0.5) / scale - 0.5
    elif where == "align_corners":
        places *= (before - 1) / max(after - 1, 1)
    else:
        g.require(where == "asymmetric", "the pixels are placed in another way")
        places /= scale
    first = np.floor(places).astype(np.int64)
    weights = np.zeros((after, before))
    for i in range(-1, 3):
        t = np.abs(places - first - i)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        pixels = np.clip(first + i, 0, before - 1)
        np.add.at(weights, (np.arange(after), pixels), np.where(t <= 1, near, far))
    return weights.astype(np.float32)


def _before(g: RewriteContext, node: NodeProto, back: bool) -> Operand | None:
    """The pictures with the channels last, if a Transpose has moved them; None otherwise. Nothing
    else reads its result, unless another Transpose moves the channels back."""
    x = node.input[0]
    before = g.producer_or_none(x, "Transpose", "Reshape")
    if before is None:
        return None
    alone = g.is_used_only_by(x, node, *_shapes(g, node))
    if before.op_type == "Transpose":
        g.look_at(before)
        return before.input[0] if (alone or back) and perm_of(g, before) == _SECOND else None
    rows = before.input[0]
    move = g.producer_or_none(rows, "Transpose")
    split, shape = g.shape_or_none(rows) or (), g.shape_of(x)
    same = len(split) == 3 and tuple(split[:2]) == tuple(shape[:2]) and isinstance(shape[1], int)
    if move is None or not same or perm_of(g, move) != (0, 2, 1) or not alone:
        return None
    new: NewNode = g.op.Transpose(x, perm=list(_LAST))
    return new


def _shapes(g: RewriteContext, node: NodeProto) -> list[NodeProto]:
    """The nodes that read the shape of the pictures for the sizes of the result, which are known:
    they are of no use then."""
    sides = g.shape_of(node.output[0])[2:]
    return consumers_of(g, node.input[0], "Shape") if _writes_sides(g, node, sides) else []


def _writes_sides(g: RewriteContext, node: NodeProto, sides: Sequence[Any]) -> bool:
    """Whether the sizes of a Resize are only those of both sides, which are known."""
    given = (
        bool(optional_input(node, 3)) and g.get_attribute_with_default(node, "axes", None) is None
    )
    return given and g.main_opset >= 18 and all(isinstance(d, int) for d in sides)


def _pictures(g: RewriteContext, node: NodeProto) -> _Pictures:
    """The Resize of pictures of floats whose first two dimensions do not change."""
    x = node.input[0]
    require_float_on_cpu(g, x)
    mode = _interpolation(g, node)
    shape, target = g.shape_of(x), g.shape_of(node.output[0])
    g.require(len(shape) == 4, "it is not a picture")
    scales = _scales(g, node, shape, target)
    g.require(scales[:2] == [1, 1], "the first two dimensions may change")
    return _Pictures(mode, shape, target, scales)


def _interpolation(g: RewriteContext, node: NodeProto) -> str:
    """The mode of a Resize that the kernel for channels last computes as well."""
    g.require(not has_reference(node), "an attribute belongs to the function")
    options = g.get_attributes_with_default(
        node,
        mode="nearest",
        coordinate_transformation_mode="half_pixel",
        antialias=0,
        exclude_outside=0,
        keep_aspect_ratio_policy="stretch",
    )
    mode: str = options["mode"]
    plain = not options["antialias"] and not options["exclude_outside"]
    plain &= options["keep_aspect_ratio_policy"] == "stretch"
    plain &= options["coordinate_transformation_mode"] != "tf_crop_and_resize"
    g.require(plain, "it crops, smooths or keeps the ratio of both sides")
    return mode


def _scales(
    g: RewriteContext, node: NodeProto, shape: Sequence[Any], target: Sequence[Any]
) -> list[float | None]:
    """The factor of each dimension, None if it is not known."""
    found = [
        1 if d == e else e / d if isinstance(d, int) and isinstance(e, int) and d > 0 else None
        for d, e in zip(shape, target, strict=True)
    ]
    given = optional_input(node, 2)
    if given and g.is_constant(given) and not optional_input(node, 3):
        axes = g.get_attribute_with_default(node, "axes", [0, 1, 2, 3])
        for axis, scale in zip(axes, g.constant_of(given).tolist(), strict=True):
            found[axis] = scale
    return found


def _at_least(size: object, least: int) -> bool:
    """Whether a dimension is known to have so many elements."""
    return isinstance(size, int) and size >= least


def _fits(target: Sequence[Any]) -> bool:
    """Whether the result, or each picture of an unknown number, stays in the cache."""
    known = [d for d in target if isinstance(d, int)]
    if any(not isinstance(d, int) for d in target[1:]):
        return False
    most = _MOST if len(known) == len(target) else _MOST_EACH
    return _LEAST <= math.prod(known) <= most


def _channels_last(
    g: RewriteContext, node: NodeProto, data: Operand, target: Sequence[Any]
) -> NewNode:
    """The same Resize of pictures whose channels are last."""
    roi, scales, sizes = (optional_input(node, i) for i in (1, 2, 3))
    chosen: Operand = sizes or scales
    axes = g.get_attribute_with_default(node, "axes", None)
    kept: dict[str, Any] = {}
    if axes is not None:
        kept = {"axes": [_LAST.index(axis % 4) for axis in axes]}
    elif _writes_sides(g, node, target[2:]):
        kept, chosen = {"axes": [1, 2]}, np.array(target[2:], dtype=np.int64)
    elif g.is_constant(sizes or scales):
        given = g.constant_of(sizes or scales)
        g.require(given.shape == (4,), "there is not one size for each dimension")
        chosen = DerivedConstant(given[list(_LAST)], sizes or scales)
    else:
        chosen = g.op.Gather(chosen, np.array(_LAST, dtype=np.int64))
    new: NewNode = g.like(node, data, roi, *([scales] if sizes else []), chosen, **kept)
    return new
