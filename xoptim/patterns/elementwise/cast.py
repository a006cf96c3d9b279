"""Conversions of types: removes casts, merges them, moves them around operators."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.nodes.attributes import find_attribute
from xbuilder.operators.domains import CUDA_DOMAIN
from xbuilder.operators.op_traits import ARITHMETIC, is_float_of

from ...analysis.kernels import require_cpu_kernel
from ...analysis.values.infinities import may_hold_infinities
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

#: integer type -> (number of bits, signed)
INTEGERS: dict[int, tuple[int, bool]] = {
    TensorProto.INT8: (8, True),
    TensorProto.INT16: (16, True),
    TensorProto.INT32: (32, True),
    TensorProto.INT64: (64, True),
    TensorProto.UINT8: (8, False),
    TensorProto.UINT16: (16, False),
    TensorProto.UINT32: (32, False),
    TensorProto.UINT64: (64, False),
}
#: float type -> bits of the significand: every integer of that many bits is a value of the type
SIGNIFICANDS: dict[int, int] = {
    TensorProto.FLOAT16: 11,
    TensorProto.BFLOAT16: 8,
    TensorProto.FLOAT: 24,
    TensorProto.DOUBLE: 53,
}
#: float type -> types holding all of its values
WIDER_FLOATS: dict[int, tuple[int, ...]] = {
    TensorProto.FLOAT16: (TensorProto.FLOAT, TensorProto.DOUBLE),
    TensorProto.BFLOAT16: (TensorProto.FLOAT, TensorProto.DOUBLE),
    TensorProto.FLOAT: (TensorProto.DOUBLE,),
    TensorProto.DOUBLE: (),
}


def holds(wide: int, narrow: int) -> bool:
    """Whether every value of type *narrow* is a value of type *wide*.

    It is False for float8, 4 bits, complex and string types, which are unknown.
    """
    if wide == narrow:
        return wide in INTEGERS or wide in SIGNIFICANDS or wide == TensorProto.BOOL
    if narrow == TensorProto.BOOL:
        return wide in INTEGERS or wide in SIGNIFICANDS
    if narrow in INTEGERS:
        bits, signed = INTEGERS[narrow]
        if wide in INTEGERS:
            wide_bits, wide_signed = INTEGERS[wide]
            return wide_bits > bits and (wide_signed or not signed)
        return wide in SIGNIFICANDS and SIGNIFICANDS[wide] >= bits - signed
    return wide in WIDER_FLOATS.get(narrow, ())


def casts_directly(source: int, middle: int, target: int) -> bool:
    """Whether converting *source* to *middle* then *target* is the same as a direct conversion.

    Every value counts: NaN, infinities, integers out of range (their high bits are dropped).
    """
    if source == middle:
        return True
    if source in INTEGERS and middle in INTEGERS and target in INTEGERS:
        return INTEGERS[middle][0] >= INTEGERS[target][0] or holds(middle, source)
    if not holds(middle, source):
        return False
    if source == target or target == TensorProto.BOOL:
        return True
    if target in INTEGERS:  # a float out of range has no defined conversion into an integer
        return source == TensorProto.BOOL or (source in INTEGERS and holds(target, source))
    if target == TensorProto.BFLOAT16:  # runtimes go through float, which rounds big integers once
        return holds(TensorProto.FLOAT, source)
    return target in SIGNIFICANDS


def target_type(node: NodeProto) -> int:
    """Type a Cast converts to, 0 if it is not known. Before opset 6, the attribute is a name."""
    att = find_attribute(node, "to")
    if att is None or att.ref_attr_name:
        return 0
    if att.s:
        name = att.s.decode("utf-8", errors="replace").upper()
        return int(dict(TensorProto.DataType.items()).get(name, 0))
    return int(att.i)


@rule(
    "default",
    "z = Cast(x, **_); y = Cast(z, **_); y",
    priority="first",
    sole_use=False,
)
def cast_cast(g: RewriteContext, x: str, y: str, z: str) -> str | NewNode:
    """Cast(Cast(X: A, B), C) -> Cast(X, C), or Identity(X) when A is C.

    1. B holds every value of A: float16 -> float -> float16 is Identity, int32 -> int64 -> float is
       one Cast.
    2. A, B, C are integers and B has at least the bits of C: high bits are dropped once or twice.
    3. If the inner result is used elsewhere, the inner Cast is kept for the others.

    Refused: a B that loses values (float -> float16 -> float, float -> int32 -> bool), a float
    converted to an integer because the result is not defined out of range, float8 because
    conversions saturate.
    """
    outer = g.before(y)
    unknown = "a type is not known"
    source, middle, target = g.type_of(x, unknown), target_type(g.before(z)), target_type(outer)
    g.require(middle and target, unknown)
    same = casts_directly(source, middle, target)
    g.require(same, "the type in the middle changes the values")
    return x if source == target else g.like(outer, x)


#: operators that :func:`cast_op_cast` accepts besides those of arithmetic
_ONE_OPERAND = ("Neg", "Sigmoid", "Softmax", f"{CUDA_DOMAIN}::MulSigmoid")
_GRADIENTS = ("com.microsoft::SoftmaxGrad", "com.microsoft::SoftmaxGrad_13")


def widening_cast(g: RewriteContext, name: str) -> NodeProto | None:
    """The Cast from a narrower float that produces a result with no other use."""
    cast = None if g.is_used_more_than_once(name) else g.before_or_none(name, "Cast")
    if cast is None:
        return None
    source = g.type_or_none(cast.input[0])
    return cast if source and target_type(cast) in WIDER_FLOATS.get(source, ()) else None


def _require_finite(g: RewriteContext, *names: str, narrow: int = 0) -> None:
    """Refuses results known to hold numbers that become infinite with less precision."""
    infinite = any(may_hold_infinities(g, name, narrow) for name in names)
    g.require(not infinite, "an operand holds infinities, or huge numbers")


def _require_narrow(g: RewriteContext, node: NodeProto, narrow: int) -> None:
    """Refuses an operator that is not defined in a narrower type, or that no runtime computes."""
    g.require(is_float_of(narrow, g.main_opset), "the operator does not know bfloat16")
    if not node.domain:
        require_cpu_kernel(g, node.op_type, narrow)


@rewrite(
    "approximate",
    "uncanonicalize",
    root=ARITHMETIC,
    precision="approximate",
    min_opset=7,
    aliases="CastCastBinary",
)
def computation_cast_op_cast(g: RewriteContext, node: NodeProto) -> NewNode:
    """op(Cast(A), B) -> Cast(op(A, Cast(B))) where A has a float type narrower than B.

    1. A is the first or the second operand, nothing else reads Cast(A).
    2. Both are: op(Cast(A), Cast(B)) -> Cast(op(A, B)), A and B have the same type.
    3. A and B are not known to hold infinities, NaN, the huge numbers of a mask, nor what the
       narrower type cannot hold.

    B is rounded, then the result: products and quotients differ by 1e-3 of their value at most in
    float16, sums and differences S by 5e-4 * (|B| + |S|), the results of 2. by 5e-4 of their value,
    8 times as much in bfloat16, where float16 does not overflow and keeps its digits (above 6e-5):
    never in the default set.
    """
    pairs = [(widening_cast(g, name), name) for name in g.inputs(node)]
    casts = [cast for cast, _ in pairs if cast is not None]
    g.require(casts, "no operand is widened by its own Cast")
    narrow, *others = {g.type_of(cast.input[0]) for cast in casts}
    g.require(not others, "the operands come from different types")
    _require_narrow(g, node, narrow)
    _require_finite(g, *(name if c is None else c.input[0] for c, name in pairs), narrow=narrow)
    inputs = [c.input[0] if c is not None else g.op.Cast(name, to=narrow) for c, name in pairs]
    return g.like(casts[0], g.like(node, *inputs))


@rewrite(
    "approximate",
    "uncanonicalize",
    root=(*ARITHMETIC, *_ONE_OPERAND, *_GRADIENTS),
    precision="approximate",
    min_opset=7,
    read_by="Cast",
)
def cast_op_cast(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Cast(op(Cast(X: A, B)), A) -> op(X) where A is a float type narrower than B.

    1. op has one operand: Neg, Sigmoid, Softmax, MulSigmoid of onnx-extended.
    2. op has two, both are widened from A: Add, Sub, Mul, Div, SoftmaxGrad of onnxruntime.
    3. op has two, one is widened from A, the other one is a constant: it is converted to A, which
       can hold it.

    Add, Sub, Mul, Div and Neg give the same, unless the constant C is rounded: products and
    quotients differ by 1.5e-3 of their value at most in float16, sums and differences S by
    5e-4 * (|C| + 2 * |S|), 8 times as much in bfloat16. Sigmoid and Softmax depend on the runtime:
    computed in float16, they differ by 2e-3. Never in the default set.
    """
    after = g.known(g.after_or_none(node, "Cast"), "the result does not go to one Cast only")
    target = target_type(after)
    if target == TensorProto.BFLOAT16:
        _require_narrow(g, node, target)
    pairs = [(widening_cast(g, name), name) for name in g.inputs(node)]
    widened = [cast for cast, _ in pairs if cast is not None]
    constants = all(cast is not None or g.is_constant(name) for cast, name in pairs)
    g.require(constants, "an operand is not widened by its own Cast")
    same = all(g.type_or_none(cast.input[0]) == target for cast in widened)
    g.require(same, "the type after is not the type before")
    g.require(widened, "no operand is widened")
    _require_finite(g, *(name for cast, name in pairs if cast is None), narrow=target)
    inputs = [c.input[0] if c is not None else g.like(after, name) for c, name in pairs]
    return {after.output[0]: g.like(node, *inputs)}
