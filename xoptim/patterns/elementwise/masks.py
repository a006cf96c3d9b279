"""Simplifies masks made with Where, Cast and comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import FLOATS, INDICES
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.constants import scalar_constant
from ...analysis.values.signed_zeros import SEEN, is_negative_zero, sees_sign_of_zero
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

#: types that a boolean is cast to, and that Where chooses between, in every runtime
_MASKS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})
#: comparisons of two numbers
_COMPARED: dict[str, Callable[..., np.bool_]] = {
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}
#: types whose values are all finite once cast to float
_FINITE = frozenset(
    {
        TensorProto.BOOL,
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    }
)


@rule("default", "y = Where(c, 1, 0); y -> Cast(c, to=to)", min_opset=9)
def where_cast(g: RewriteContext, y: str) -> dict[str, int]:
    """Where(C, 1, 0) -> Cast(C).

    The numbers are constants that keep the shape of C; they are float, double, int32 or int64. The
    zero is 0.0, or nothing after may tell that it was -0.0.
    """
    other = "the type is not float, double, int32 nor int64"
    to = g.type_of(y, other)
    g.require(to in _MASKS, other)
    zero = g.constant_of(g.before(y).input[2])
    g.require(not (is_negative_zero(zero).any() and sees_sign_of_zero(g, y)), SEEN)
    return {"to": to}


@rule(
    "default",
    "Equal(Cast(b, **_), 1) -> b",
    "Greater(Cast(b, **_), 0) -> b",
    "GreaterOrEqual(Cast(b, **_), 1) -> b",
    "Equal(Cast(b, **_), 0) -> Not(b)",
    "Less(Cast(b, **_), 1) -> Not(b)",
    "LessOrEqual(Cast(b, **_), 0) -> Not(b)",
    "y = Cast(1 - Cast(b, **_), **_); y -> Not(b)",
    sole_use=False,
    aliases="CastComplement",
)
def cast_compare(g: RewriteContext, b: str, y: str | None) -> None:
    """Cast(B) == 1 -> B, Cast(B) == 0 -> Not(B), for a boolean B.

    1. The comparison may be `> 0`, `>= 1`, `< 1`, `<= 0`.
    2. Cast(1 - Cast(B)) to a boolean -> Not(B).
    3. The number is a constant that keeps the shape of B; Cast is kept if something else reads it.
    """
    g.require(y is None or g.type_or_none(y) == TensorProto.BOOL, "the result is not a boolean")
    g.require(g.type_or_none(b) == TensorProto.BOOL, "what is cast is not a boolean")


@rule(
    "default",
    "Not(Greater(a, b)) -> LessOrEqual(a, b)",
    "Not(Less(a, b)) -> GreaterOrEqual(a, b)",
    "Not(GreaterOrEqual(a, b)) -> Less(a, b)",
    "Not(LessOrEqual(a, b)) -> Greater(a, b)",
    behind="NotWhere",
    min_opset=12,
)
def not_compare(g: RewriteContext, a: str) -> None:
    """Not(A > B) -> A <= B for integers, the same for the other comparisons: NaN is not ordered."""
    g.require(g.type_or_none(a) in INDICES, "the type is not int32 nor int64")


@rewrite("default", root=("Cast", *_COMPARED), after="Where", min_opset=9)
def where_bool(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Cast(Where(C, 0, v)) to a boolean, Where(C, 0, v) < w -> Not(C), for numbers, or C.

    1. The comparison may be `<=`, `>`, `>=`, `==`; Where comes first, it gives two results;
    2. the numbers are constants that keep the shape of C.
    """
    where = g.before(node, "Where")
    condition, *branches = where.input
    rank = g.rank_of(condition)
    compare = _COMPARED.get(node.op_type)
    to = g.get_attribute_with_default(node, "to", 0)
    g.require(compare or to == TensorProto.BOOL, "the result is not a boolean")
    names = branches if compare is None else [*branches, node.input[1]]
    numbers = [n for name in names if (n := scalar_constant(g, name, rank)) is not None]
    g.require(len(numbers) == len(names), "a number is not known")
    first, second, *limit = (n.ravel()[0] for n in numbers)
    known = [bool(compare(n, *limit) if compare else n != 0) for n in (first, second)]
    g.require(known[0] != known[1], "both results are the same")
    return str(condition) if known[0] else g.op.Not(condition)


@rule("default", "stabilize", "y = (1 - Cast(b, **_)) * value; y", min_opset=9)
def sub_cast_mul(g: RewriteContext, b: str, y: str, value: float) -> dict[str, NewNode]:
    """(1 - Cast(B)) * v -> Where(B, 0, v), for a boolean B and a finite constant v.

    The result is float, double, int32 or int64.
    """
    g.require(g.type_or_none(b) == TensorProto.BOOL, "what is cast is not a boolean")
    known = g.type_or_none(y) in _MASKS
    g.require(known, "the type is not float, double, int32 nor int64")
    return {y: g.op.Where(b, g.scalar(0, y), g.scalar(value, y))}


@rule("default", "s = 1 - m; y = Where(Cast(s, **_), value, s); y", min_opset=11)
def complement_where(g: RewriteContext, m: str, value: str, y: str) -> dict[str, NewNode]:
    """Where(Cast(1 - M), v, 1 - M) -> Where(M == 1, 0, v), the cast gives a boolean.

    1. If M is cast from an integer to a float, it is compared before the cast: only 1 becomes 1;
    2. nothing is compared if M comes from a boolean;
    3. NaN is not 1, and is not false either: v is chosen both times.
    """
    source, cast = m, g.producer_or_none(m, "Cast")
    if cast is not None and g.type_or_none(cast.input[0]) in _FINITE:
        boolean = g.type_or_none(cast.input[0]) == TensorProto.BOOL
        # a cast from int64 to int32 turns 2**32 + 1 into 1
        source = cast.input[0] if boolean or g.type_or_none(m) in FLOATS else m
    elem_type = g.type_or_none(source)
    if elem_type == TensorProto.BOOL:
        return {y: g.op.Where(source, g.scalar(0, y), value)}
    known = has_kernel("Equal", elem_type, g.main_opset)
    g.require(known, "what is subtracted from 1 cannot be compared")
    return {y: g.op.Where(g.op.Equal(source, g.scalar(1, source)), g.scalar(0, y), value)}


@rule("default", "stabilize", "w = Where(m, 0, -inf); y = x + w; y", min_opset=9)
def where_add(g: RewriteContext, x: str, m: str, w: str, y: str) -> dict[str, NewNode]:
    """X + Where(M, 0, -inf) -> Where(M, X, -inf), for a result X that is finite.

    X is an integer or a boolean that is cast to float or to double: infinities and NaN would be
    lost.
    """
    g.require(g.type_or_none(y) in _MASKS, "the type is not float nor double")
    cast = g.producer_or_none(x, "Cast")
    source = None if cast is None else g.type_or_none(cast.input[0])
    g.require(source in _FINITE, "infinities and NaN are possible")
    return {y: g.op.Where(m, x, g.before(w).input[2])}
