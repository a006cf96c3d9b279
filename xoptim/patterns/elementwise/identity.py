"""Removes operations that change nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axis
from xbuilder.operators.op_traits import ARITHMETIC
from xbuilder.tensors.bits import is_packed

from ...analysis.arguments import int_attribute, optional_input
from ...analysis.axes import cuts_of
from ...analysis.constants import Ints, int_values, is_cheap, is_filled_with
from ...analysis.permutations import is_identity, perm_of
from ...analysis.reshapes import moved_shape, reshaped
from ...analysis.shapes import at_least
from ...analysis.values.signed_zeros import SEEN, is_negative_zero, sees_sign_of_zero
from ...authoring import Refusal, RewriteContext
from ...declarative import rule
from .cast import target_type

#: scale, bias, mean, variance of a normalization that does nothing
UNIT_NORMALIZATION = (1, 0, 0, 1)
_LAST = int(np.iinfo(np.int64).max)


def _adds_nothing(g: RewriteContext, node: NodeProto) -> Refusal | None:
    """A sum with 0, or a difference, which may change the sign of a zero."""
    a, b = node.input
    name = b if node.op_type == "Sub" or g.is_constant(b) else a
    cheap = is_cheap(g, name)
    value = g.constant_of(name) if cheap else np.asarray(g.graph.constants.uniform_value(name))
    if value.dtype.kind in "iub":
        return None
    negative = is_negative_zero(value)
    neutral = negative if node.op_type == "Add" else ~negative
    seen = not (cheap and neutral.all()) and sees_sign_of_zero(g, node.output[0])
    return g.no(SEEN) if seen else None


def _moves_nothing(g: RewriteContext, node: NodeProto) -> Refusal | None:
    perm = g.known(perm_of(g, node), "the permutation is not known")
    return None if is_identity(perm) else g.no("the permutation moves axes")


def _casts_nothing(g: RewriteContext, node: NodeProto) -> Refusal | None:
    known = g.type_or_none(node.input[0])
    g.require(known, "the type of the input is not known")
    if known != target_type(node):
        return g.no("the type changes")
    packed = g.is_output(node.output[0]) and is_packed(known)
    return g.no("no runtime has Identity for this type") if packed else None


def _drops_nothing(g: RewriteContext, node: NodeProto) -> None:
    ratio, training = optional_input(node, 1), optional_input(node, 2)
    if ratio and is_filled_with(g, ratio, 0):
        return
    g.require(not training or is_filled_with(g, training, False), "it may be training")
    tested = g.main_opset >= 7 or g.get_attribute_with_default(node, "is_test", 0)
    g.require(tested, "it is training")


def _cuts_nothing(g: RewriteContext, node: NodeProto) -> None:
    x, given = g.inputs(node)[0], optional_input(node, 4)
    one = not given or set(int_values(g, given) or (0,)) == {1} or _strides_over_ones(g, node)
    if one and g.same_shape(x, node.output[0]):
        return
    starts, ends, axes, steps, last = _bounds(g, node)
    g.require(all(s == 1 for s in steps), "a step is not 1")
    axes = axes or tuple(range(len(starts)))
    g.require(len(starts) == len(ends) == len(axes), "the bounds do not have the same length")
    pairs = zip(axes, ends, strict=True)
    everything = all(e == last or _covers(g, x, a, e) for a, e in pairs)
    g.require(everything, "an end may cut something")


def _strides_over_ones(g: RewriteContext, node: NodeProto) -> bool:
    """Whether the steps of a Slice that are not 1 are those of dimensions 1."""
    shape = g.shape_or_none(node.input[0])
    cuts = None if shape is None else cuts_of(g, node, len(shape))
    if shape is None or cuts is None:
        return False
    return all(step == 1 or shape[axis] == 1 for axis, (_, _, step) in cuts.items())


def _bounds(g: RewriteContext, node: NodeProto) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Starts (null), ends, axes, steps of a Slice, and the end that means up to the last
    element."""
    _, *names = g.inputs(node)
    if not names:
        bounds = g.get_attributes_with_default(node, starts=[], ends=[], axes=[])
        starts, ends, axes = (tuple(bounds[k]) for k in ("starts", "ends", "axes"))
        g.require(not any(starts), "a start is not 0")
        return starts, ends, axes, (), _LAST
    g.require(all(g.is_constant(n) for n in names if n), "the bounds are not constant")
    starts = _known_bounds(g, names[0])
    g.require(not any(starts), "a start is not 0")  # refuses half of the nodes
    ends, axes, steps = (_known_bounds(g, name) for name in (*names[1:], "", "")[:3])
    dtype = g.constant_of(names[1]).dtype
    return starts, ends, axes, steps, _LAST if dtype == np.int64 else np.iinfo(dtype).max


def _known_bounds(g: RewriteContext, name: str) -> Ints:
    return g.known(int_values(g, name) if name else (), "the bounds are not known")


def _covers(g: RewriteContext, name: str, axis: int, end: int) -> bool:
    """Whether *end* is proven not to be below a dimension."""
    shape = g.shape_or_none(name)
    position = None if shape is None or end < 0 else normalize_axis(axis, len(shape))
    if shape is None or position is None:
        return False
    return at_least(g, end, shape[position])


def _expands_nothing(g: RewriteContext, node: NodeProto) -> None:
    x, shape = g.inputs(node)
    dims, rank = int_values(g, shape), g.rank_or_none(x)
    if dims is not None and set(dims) <= {1} and len(dims) <= (rank or 0):
        return
    g.known(moved_shape(g, x), "a shape is not known")
    g.shape_of(node.output[0], "a shape is not known")
    g.require(g.same_shape(x, node.output[0]), "the shape may change")


def _reshapes_nothing(g: RewriteContext, node: NodeProto) -> Refusal | None:
    g.require(g.main_opset >= 5, "the opset is too old")
    data, result = node.input[0], node.output[0]
    rank = g.rank_of(data)
    if g.rank_or_none(result) not in (rank, None):
        return g.no("the rank changes")
    same = g.same_shape(data, result) and reshaped(g, node) is not None
    g.require(same or _copies_every_dimension(g, node, rank), "the shape may change")
    return None


def _flattens_nothing(g: RewriteContext, node: NodeProto) -> None:
    x = node.input[0]
    g.require(g.rank_of(x) == 2, "the rank changes")
    axis = g.known(int_attribute(node, "axis", 1), "the axis is not known")
    g.require(
        normalize_axis(axis, 2) == 1 or g.same_shape(x, node.output[0]), "the shape may change"
    )


def _copies_every_dimension(g: RewriteContext, node: NodeProto, rank: int) -> bool:
    """Whether a Reshape copies every dimension, except at most one deduced from the others."""
    target = int_values(g, node.input[1])
    if target is None or len(target) != rank:
        return False
    if target == (-1,):
        return True
    if int_attribute(node, "allowzero", 0) != 0:
        return False
    return all(d in (0, -1) for d in target) and target.count(-1) <= 1


def _normalizes_nothing(g: RewriteContext, node: NodeProto) -> None:
    _, *parameters = g.inputs(node)
    g.require(g.main_opset >= 7 and len(parameters) == 4, "the opset is too old")
    epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)
    g.require(epsilon == 0, "epsilon is not null")  # refuses most nodes
    training = g.get_attribute_with_default(node, "training_mode", 0) or any(node.output[1:])
    g.require(not training, "it is training")
    pairs = zip(parameters, UNIT_NORMALIZATION, strict=True)
    unit = all(is_filled_with(g, name, value) for name, value in pairs)
    g.require(unit, "a parameter changes the values")
    g.require(not sees_sign_of_zero(g, node.output[0]), SEEN)


def _pads_nothing(g: RewriteContext, node: NodeProto) -> None:
    g.require(g.main_opset >= 2, "the opset is too old")
    _, *names = g.inputs(node)
    if names:
        pads = g.known(int_values(g, names[0]), "the pads are not known")
    else:
        pads = tuple(g.get_attribute_with_default(node, "pads", ()))
    g.require(not any(pads), "something is padded")


def _resizes_nothing(g: RewriteContext, node: NodeProto) -> None:
    x, *names = g.inputs(node)
    crops = g.get_attribute_with_default(node, "coordinate_transformation_mode", "half_pixel")
    g.require(crops != "tf_crop_and_resize", "it may crop")
    scales = names[-1] if len(names) == 1 else (*names, "", "")[1]
    if scales:
        g.require(is_filled_with(g, scales, 1), "a scale is not 1")
    else:
        g.require(g.same_shape(x, node.output[0]), "the shape may change")


def _combines_nothing(g: RewriteContext, node: NodeProto) -> None:
    g.require(len(node.input) == 1, "there are several operands")


def _repeats_nothing(g: RewriteContext, node: NodeProto) -> None:
    g.require(g.main_opset >= 6, "the opset is too old")
    repeats = g.known(int_values(g, node.input[1]), "the repeats are not known")
    g.require(set(repeats) <= {1}, "something is repeated")


def _splits_nothing(g: RewriteContext, node: NodeProto) -> None:
    g.require(len(node.output) == 1, "there are several parts")


def _inserts_nothing(g: RewriteContext, node: NodeProto) -> None:
    """Unsqueeze without axes. Squeeze without axes removes every dimension 1."""
    axes = optional_input(node, 1)
    none = axes and int_values(g, axes) == ()
    g.require(none, "the axes are not an empty constant")


def _blocks_nothing(g: RewriteContext, node: NodeProto) -> None:
    g.require(int_attribute(node, "blocksize", 0) == 1, "the blocks are not of size 1")


#: operator -> function that refuses a node that is not the identity
_CONDITIONS: dict[str, Callable[[RewriteContext, NodeProto], Refusal | None]] = {
    "Add": _adds_nothing,
    "Sub": _adds_nothing,
    "Transpose": _moves_nothing,
    "Slice": _cuts_nothing,
    "Expand": _expands_nothing,
    "Reshape": _reshapes_nothing,
    "Flatten": _flattens_nothing,
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _combines_nothing),
    "Tile": _repeats_nothing,
    "Split": _splits_nothing,
    "Unsqueeze": _inserts_nothing,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks_nothing),
    "Cast": _casts_nothing,
    "Dropout": _drops_nothing,
    "BatchNormalization": _normalizes_nothing,
    "Pad": _pads_nothing,
    "Resize": _resizes_nothing,
}


@rule(
    "default",
    "x * 1 | x / 1 | And(x, True) | Or(x, False) | Xor(x, False) -> x",
    "y = x + 0 | x - 0; y -> x",
    *(f"y = {op_type}(x, *_, **_); y -> x" for op_type in _CONDITIONS if op_type not in ARITHMETIC),
    priority="first",
    aliases=(
        *("BatchNormalization", "Cast", "Dropout", "Expand"),
        *("Reshape", "ShapeBasedIdentity", "ShapedBasedReshape"),
    ),
)
def identity(g: RewriteContext, y: str | None) -> Refusal | None:
    """op(X, neutral) -> Identity(X).

    1. `X + 0`, `0 + X`, `X - 0`, `X * 1`, `1 * X`, `X / 1`, `X and True`, `X or False`,
       `X xor False`, where the constant does not change the shape of X: its rank is at most the
       rank of X, each of its dimensions is 1 or the one of X. `X + 0.0` turns -0.0 into 0.0, as
       `X - -0.0` does: nothing after it may tell one from the other.
    2. `Transpose(X)` with an identity permutation, or of rank 0 or 1 without permutation.
    3. `Slice(X)` taking everything: starts 0, ends not below the dimension, steps 1; or a result
       proven to have the shape of X, where only dimensions 1 have a step that is not 1.
    4. `Expand(X)` to a shape made of ones, not longer than the rank of X, or to the shape of X:
       dimensions, symbols included, are proven equal.
    5. `BatchNormalization(X)` in inference, with unit scale and variance, null bias, mean and
       epsilon. The default epsilon, 1e-5, is not null, even for float16. It turns -0.0 into 0.0.
    6. `Pad(X)` whose pads are all null.
    7. `Resize(X)` whose scales are all 1, or whose sizes are those of X, and which does not crop.
    8. `Reshape(X)` to (0, ..., -1, ..., 0), of the rank of X, at most one -1, without `allowzero`,
       or to dimensions, symbols included, proven equal to those of X.
    9. `Cast(X)` to the type of X.
    10. `Dropout(X)` when nothing reads the mask and nothing is dropped: the ratio is a constant
        equal to 0, `training_mode` is missing or is a constant equal to False, the opset is 7 to
        11, or `is_test` is 1 before.
    11. `Flatten(X)` of a matrix at axis 1, or to the shape of X; `Tile(X)` whose repeats are all
        1; `Split(X)` in one part; `Unsqueeze(X)` without axes; `DepthToSpace(X)` and
        `SpaceToDepth(X)` in blocks of size 1; `Max`, `Mean`, `Min`, `Sum` of X alone. `Clip(X)`
        without bounds is not one of them: its default bounds are finite.

    Cost: O(1), or O(n) when a constant of n elements (2^18 at most) is read.
    """
    node = None if y is None else g.producer_or_none(y)
    return None if node is None else _CONDITIONS[node.op_type](g, node)
