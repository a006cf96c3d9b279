"""Operators written with those of opsets 9 to 14, which have another signature or do not exist.

The converters write the operators of opset 15. What has no equivalent is refused by the schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from xbuilder.errors import OptionError

from ..common.types import to_numpy_type
from ..writing.graph_writer import OpCall, Tensor, op_named

if TYPE_CHECKING:
    from xbuilder import GraphBuilder

#: the first opset whose operators are all known to the converters
COMPLETE_OPSET = 15
#: attributes of a Resize that repeats elements, when no scale is below 1
_FIRST_NEIGHBOUR = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def call_of(g: GraphBuilder, op_type: str) -> OpCall:
    """The call that writes an operator, in the form the opset of the graph has for it.

    :param g: receives the nodes
    :param op_type: the operator, as opset 15 knows it
    """
    since, older = _OLDER.get(op_type, (0, None))
    if older is None or g.main_opset >= since:
        return op_named(g, op_type)
    return lambda *inputs, **attributes: older(g, op_type, inputs, attributes)


def advice(opset: int) -> str:
    """The end of the message of a conversion that fails, when a newer opset may have the operator.

    :param opset: main opset of the model
    """
    if opset >= COMPLETE_OPSET:
        return ""
    return f"\n  opset: {opset} was asked, to_onnx(..., target_opset=18) has more operators"


def _constant(g: GraphBuilder, op_type: str, what: str, value: Any) -> npt.NDArray[Any]:
    """The value of an input that is an attribute in the opset of the graph."""
    found = (
        g.get_constant(value, exc=False, computed_value=True) if isinstance(value, str) else value
    )
    if found is None:
        raise OptionError(
            f"{what} of {op_type} must be constant in opset {g.main_opset}, {value!r} is not: give "
            f"a newer target_opset."
        )
    return np.asarray(found)


def _is_float(g: GraphBuilder, inputs: Sequence[Tensor | None]) -> bool:
    names = [x for x in inputs if isinstance(x, str)]
    return not names or not g.has_type(names[0]) or g.get_type(names[0]) in FLOATS


def _hard_swish(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    return g.op.Mul(inputs[0], g.op.HardSigmoid(inputs[0], alpha=1 / 6, beta=0.5), **attributes)


def _trilu(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """Keeps an element where column - row is at least k, or at most k."""
    x, k = inputs[0], inputs[1] if len(inputs) > 1 and inputs[1] is not None else np.array(0)
    upper = attributes.pop("upper", 1)
    rows, columns = (_places(g, x, axis) for axis in (-2, -1))
    distance = g.op.Sub(columns, g.op.UnsqueezeAnyOpset(rows, np.array([1])))
    dropped = (g.op.Less if upper else g.op.Greater)(distance, k)
    zero = np.zeros((), dtype=to_numpy_type(g.get_type(x)))
    return g.op.Where(dropped, zero, x, **attributes)


def _places(g: GraphBuilder, x: str, axis: int) -> Tensor:
    """0, 1, ... along an axis."""
    dim = g.get_shape(x)[axis] if g.has_shape(x) else None
    if isinstance(dim, int):
        return np.arange(dim, dtype=np.int64)
    size = g.op.Gather(g.op.Shape(x), np.array(g.get_rank(x) + axis), axis=0)
    places: str = call_of(g, "Range")(np.array(0), size, np.array(1))
    return places


def _split(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = _constant(g, op_type, "The sizes", inputs[1])
        attributes["split"] = [int(i) for i in sizes]
    return g.op.Split(inputs[0], **attributes)


def _softmax(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """Before opset 13, the normalization runs over all the axes that follow this one."""
    last = g.get_rank(inputs[0]) - 1
    axis = attributes.pop("axis", -1)
    axis += last + 1 if axis < 0 else 0
    if axis >= last:
        return op_named(g, op_type)(inputs[0], axis=axis, **attributes)
    perm = list(range(last + 1))
    perm[axis], perm[last] = last, axis
    made = op_named(g, op_type)(g.op.Transpose(inputs[0], perm=perm), axis=last)
    return g.op.Transpose(made, perm=perm, **attributes)


def _resize(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The region and the scales are inputs that cannot be left out; before opset 11, an element is
    repeated, and nothing else."""
    if g.main_opset < 11:
        return _repeated(g, inputs, attributes)
    absent = g.make_initializer("", np.empty(0, dtype=np.float32), allow_empty=True)
    given = [absent if i in (1, 2) and v is None else v for i, v in enumerate(inputs)]
    return g.op.Resize(*given, **attributes)


def _repeated(g: GraphBuilder, inputs: Any, attributes: Any) -> Any:
    """Resize to constant scales of 1 or more, each point is the first of its neighbours."""
    x, _, scales, *sizes = inputs
    named = {n: v for n, v in attributes.items() if n in _FIRST_NEIGHBOUR}
    if sizes or not isinstance(scales, np.ndarray) or scales.min() < 1 or named != _FIRST_NEIGHBOUR:
        raise OptionError(
            f"Resize only repeats elements in opset {g.main_opset}, it does the rest from opset "
            f"11: to_onnx(..., target_opset=11)."
        )
    kept = {n: v for n, v in attributes.items() if n not in _FIRST_NEIGHBOUR}
    write = g.op.Upsample if g.main_opset < 10 else g.op.Resize
    return write(x, scales, mode="nearest", **kept)


def _or_equal(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    strict = op_named(g, op_type.removesuffix("OrEqual"))
    return g.op.Or(strict(*inputs), call_of(g, "Equal")(*inputs), **attributes)


def _equal(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """Floats are equal if none is the lowest and none is NaN: their sum is NaN then, or they are
    opposite infinities."""
    if not _is_float(g, inputs):
        return g.op.Equal(*inputs, **attributes)
    other = g.op.Or(g.op.Less(*inputs), g.op.Greater(*inputs))
    return g.op.Not(g.op.Or(other, g.op.IsNaN(g.op.Add(*inputs))), **attributes)


def _extremum(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """Integers are compared two by two."""
    if len(inputs) == 1 or _is_float(g, inputs):
        return op_named(g, op_type)(*inputs, **attributes)
    compare = g.op.Greater if op_type == "Max" else g.op.Less
    result = inputs[0]
    for x in inputs[1:-1]:
        result = g.op.Where(compare(result, x), result, x)
    return g.op.Where(compare(result, inputs[-1]), result, inputs[-1], **attributes)


def _clip(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The lowest value, then the highest one: both win over the value, the highest over both."""
    if g.main_opset >= 11 and _is_float(g, inputs):
        return g.op.Clip(*inputs, **attributes)
    result = inputs[0]
    for name, bound in zip(("Max", "Min"), inputs[1:], strict=False):
        if bound is not None:
            result = _extremum(g, name, (result, bound), {})
    return g.op.Identity(result, **attributes)


def _pad(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    attributes["pads"] = [int(i) for i in _constant(g, op_type, "The widths", inputs[1])]
    if len(inputs) > 2 and inputs[2] is not None:
        attributes["value"] = float(_constant(g, op_type, "The value", inputs[2]).item())
    return g.op.Pad(inputs[0], **attributes)


def _slice(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    names = ("starts", "ends", "axes", "steps")
    for name, value in zip(names, inputs[1:], strict=False):
        if value is not None:
            found = _constant(g, op_type, f"The {name}", value)
            attributes[name] = [int(i) for i in found]
    if any(step != 1 for step in attributes.pop("steps", ())):
        raise OptionError(f"The steps of Slice are 1 in opset {g.main_opset}, 10 has others.")
    return g.op.Slice(inputs[0], **attributes)


def _reshape(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """A dimension 0 is always the one of the input: only an empty tensor may see it."""
    attributes.pop("allowzero", None)
    return g.op.Reshape(*inputs, **attributes)


def _with_axes(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    return op_named(g, f"{op_type}AnyOpset")(*inputs, **attributes)


def _shape(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The whole shape, then a part of it."""
    kept = [attributes.pop("start", 0), attributes.pop("end", None)]
    if kept == [0, None]:
        return g.op.Shape(inputs[0], **attributes)
    end = np.iinfo(np.int64).max if kept[1] is None else kept[1]
    limits = (np.array([i], dtype=np.int64) for i in (kept[0], end))
    part = (g.op.Shape(inputs[0]), *limits, np.array([0]))
    return call_of(g, "Slice")(*part, **attributes)


def _cast_like(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    return g.op.Cast(inputs[0], to=g.get_type(inputs[1]), **attributes)


def _range(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The positions of as many ones, times the step: integers with a constant step."""
    start, limit, step = inputs
    delta = int(_constant(g, op_type, "The step", step).item())
    whole = (TensorProto.INT64, TensorProto.INT32)
    kinds = {_type_of(g, bound) for bound in (start, limit)}
    if delta == 0 or len(kinds) > 1 or not kinds <= {*whole}:
        raise OptionError(f"Range of integers only in opset {g.main_opset}, 11 has others.")
    kind = to_numpy_type(kinds.pop())
    span = g.op.Sub(limit, start)
    # the division of integers rounds towards 0, the last step may be shorter
    steps = g.op.Div(g.op.Add(span, kind.type(delta - np.sign(delta))), kind.type(delta))
    count = g.op.UnsqueezeAnyOpset(_extremum(g, "Max", (steps, kind.type(0)), {}), np.array([0]))
    ones = g.op.ConstantOfShape(g.op.Cast(count, to=TensorProto.INT64))
    places = g.op.SqueezeAnyOpset(
        g.op.NonZero(g.op.Not(g.op.Cast(ones, to=TensorProto.BOOL))), np.array([0])
    )
    scaled = g.op.Mul(g.op.Cast(places, to=_type_of(g, start)), kind.type(delta))
    return g.op.Add(scaled, start, **attributes)


def _type_of(g: GraphBuilder, value: Tensor) -> int:
    if isinstance(value, str):
        return g.get_type(value)
    return int(helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype))


def _top_k(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The largest elements, sorted, of floats; the smallest ones are those of the opposites."""
    x, count = inputs
    names = attributes.pop("outputs", 2)
    smallest = not attributes.pop("largest", 1)
    attributes.pop("sorted", 1)
    if not _is_float(g, inputs[:1]):
        raise OptionError(f"TopK reads floats only in opset {g.main_opset}, 11 has other types.")
    if g.main_opset < 10:
        attributes["k"] = int(_constant(g, op_type, "The number of elements", count).item())
    kept = () if g.main_opset < 10 else (count,)
    if not smallest:
        return g.op.TopK(x, *kept, outputs=names, **attributes)
    found, places = g.op.TopK(g.op.Neg(x), *kept, outputs=2, **attributes)
    if isinstance(names, int):
        return g.op.Neg(found), places
    return g.op.Neg(found, outputs=names[:1]), g.op.Identity(places, outputs=names[1:])


def _scatter(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    if attributes.pop("reduction", "none") != "none":
        raise OptionError(f"Scatter replaces only in opset {g.main_opset}, 16 has reductions.")
    return g.op.Scatter(*inputs, **attributes)


def _mod(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The remainder of integers, which has the sign of the divisor."""
    x, y = inputs
    if attributes.pop("fmod", 0) or _is_float(g, inputs):
        raise OptionError(
            f"The remainder is that of integers in opset {g.main_opset}, 10 has that of floats."
        )
    left = g.op.Sub(x, g.op.Mul(g.op.Div(x, y), y))
    zero = np.zeros((), dtype=to_numpy_type(_type_of(g, x)))
    other = g.op.Xor(g.op.Less(left, zero), g.op.Less(y, zero))
    moved = g.op.And(other, g.op.Not(g.op.Equal(left, zero)))
    return g.op.Where(moved, g.op.Add(left, y), left, **attributes)


def _pool(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """Without the attributes that came later, if they say nothing."""
    dilations = attributes.pop("dilations", ())
    if attributes.pop("ceil_mode", 0) or any(d != 1 for d in dilations):
        raise OptionError(f"{op_type} has no ceil_mode nor dilations in opset {g.main_opset}.")
    return op_named(g, op_type)(*inputs, **attributes)


def _loop(g: GraphBuilder, op_type: str, inputs: Any, attributes: Any) -> Any:
    """The converters write a body as a proto, with the operators of opset 15."""
    raise OptionError(f"A loop of this operator needs opset {COMPLETE_OPSET}, not {g.main_opset}.")


_Older = Callable[["GraphBuilder", str, Any, Any], Any]
#: operator -> first opset with the form of opset 15, how it is written before
_OLDER: dict[str, tuple[int, _Older]] = {
    "AveragePool": (10, _pool),
    "CastLike": (15, _cast_like),
    "Clip": (12, _clip),
    "Equal": (11, _equal),
    "GreaterOrEqual": (12, _or_equal),
    "HardSwish": (14, _hard_swish),
    "LessOrEqual": (12, _or_equal),
    "Loop": (15, _loop),
    "LogSoftmax": (13, _softmax),
    "Max": (12, _extremum),
    "MaxPool": (10, _pool),
    "Min": (12, _extremum),
    "Mod": (10, _mod),
    "Pad": (11, _pad),
    "Range": (11, _range),
    "Reshape": (14, _reshape),
    "Resize": (13, _resize),
    "ScatterElements": (11, _scatter),
    "Shape": (15, _shape),
    "Slice": (10, _slice),
    "Softmax": (13, _softmax),
    "Split": (13, _split),
    "Squeeze": (13, _with_axes),
    "TopK": (11, _top_k),
    "Trilu": (14, _trilu),
    "Unsqueeze": (13, _with_axes),
}
