"""Conversions of types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from xbuilder.nodes.protos import copy_with_edges, find_attribute, has_reference
from xbuilder.op_traits import is_float_of

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer, still_read

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

#: integer type -> (number of bits, signed)
INTEGERS = {
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
SIGNIFICANDS = {
    TensorProto.FLOAT16: 11,
    TensorProto.BFLOAT16: 8,
    TensorProto.FLOAT: 24,
    TensorProto.DOUBLE: 53,
}
#: float type -> types holding all of its values
WIDER_FLOATS = {
    TensorProto.FLOAT16: (TensorProto.FLOAT, TensorProto.DOUBLE),
    TensorProto.BFLOAT16: (TensorProto.FLOAT, TensorProto.DOUBLE),
    TensorProto.FLOAT: (TensorProto.DOUBLE,),
    TensorProto.DOUBLE: (),
}


def holds(wide: int, narrow: int) -> bool:
    """Tells if every value of type *narrow* is a value of type *wide*.

    Float8, 4 bits, complex and string types are unknown: False.
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


def same_as_direct(source: int, middle: int, target: int) -> bool:
    """Tells if converting *source* to *middle* then *target* gives what a direct conversion gives.

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
    """Type a Cast converts to, 0 if it is not known. Before opset 6 it is a name."""
    att = find_attribute(node, "to")
    if att is None or att.ref_attr_name:
        return 0
    if att.s:
        name = att.s.decode("utf-8", errors="replace").upper()
        return dict(TensorProto.DataType.items()).get(name, 0)
    return att.i


@register_pattern("default", roots=("Cast",), priority=0)
class CastPattern(PatternOptimization):
    """Cast(X, T) -> Identity(X) when the type of X is T."""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        known = g.try_infer_type(node.input[0])
        if not known:
            return self.none(node, "the type of the input is not known")
        if known != target_type(node):
            return self.none(node, "the type changes")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], [node.output[0]])]


@register_pattern("default", roots=("Cast",), priority=0, after=("Cast",))
class CastCastPattern(PatternOptimization):
    """Cast(Cast(X: A, B), C) -> Cast(X, C), or Identity(X) when A is C.

    1. B holds every value of A: float16 -> float -> float16 is Identity, int32 -> int64 -> float is
       one Cast.
    2. A, B, C are integers and B has at least the bits of C: high bits are dropped once or twice.
    3. The inner result is used elsewhere: the inner Cast stays for the others.

    Refused: a B that loses something (float -> float16 -> float, float -> int32 -> bool), a float
    that goes to an integer as the conversion is not defined out of range, float8 as conversions
    saturate.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inner = producer(g, node.input[0], *self.after)
        if inner is None:
            return self.none(node, "no Cast before")
        source = g.try_infer_type(inner.input[0])
        middle, target = target_type(inner), target_type(node)
        if not (source and middle and target):
            return self.none(node, "a type is not known")
        if not same_as_direct(source, middle, target):
            return self.none(node, "the type in the middle changes the values")
        return MatchResult(self, [inner, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, inner: NodeProto, outer: NodeProto
    ) -> list[NodeProto]:
        if g.get_type(inner.input[0]) == target_type(outer):
            new = g.make_node("Identity", [inner.input[0]], [outer.output[0]])
        else:
            new = copy_with_edges(outer, (inner.input[0],), tuple(outer.output))
        return [*still_read(g, inner), new]


def narrow_source(g: GraphBuilderPatternOptimization, name: str) -> tuple[NodeProto | None, int]:
    """The Cast from a narrower float giving a result nothing else reads, and its source type."""
    cast = producer(g, name, "Cast")
    if cast is None or g.is_used_more_than_once(name):
        return None, 0
    source, target = g.try_infer_type(cast.input[0]), target_type(cast)
    return (cast, source) if target in WIDER_FLOATS.get(source, ()) else (None, 0)


@register_pattern(roots=("Add", "Sub", "Mul", "Div"), precision="approximate", min_opset=7)
class CastCastBinaryPattern(PatternOptimization):
    """op(Cast(A), Cast(B)) -> Cast(op(A, B)) when A and B have the same narrower float type.

    The operation runs with less precision, float16 may overflow: never in the default set.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        left, left_type = narrow_source(g, node.input[0])
        right, right_type = narrow_source(g, node.input[1])
        if left is None or right is None:
            return self.none(node, "an operand is not widened by its own Cast")
        if left_type != right_type:
            return self.none(node, "the operands come from different types")
        if not is_float_of(left_type, g.main_opset):
            return self.none(node, "the operator does not know bfloat16")
        return MatchResult(self, [left, right, node], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        op = g.make_node(node.op_type, [left.input[0], right.input[0]], 1, name=node.name)
        to = find_attribute(left, "to")
        return [op, g.make_node("Cast", [op.output[0]], node.output[:], attributes=[to])]


@register_pattern(roots=("Add", "Sub", "Mul", "Div"), precision="approximate", min_opset=7)
class ComputationCastOpCastPattern(PatternOptimization):
    """op(Cast(A), B) -> Cast(op(A, Cast(B))) where A has a float type narrower than B.

    The operation runs with less precision, B is rounded: never in the default set. A is the first
    or the second operand, nothing else reads Cast(A), B is not itself a widened result.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        casts = [narrow_source(g, name) for name in node.input]
        known = [(cast, source) for cast, source in casts if cast is not None]
        if len(known) != 1:
            return self.none(node, "there is not one operand widened by its own Cast")
        if not is_float_of(known[0][1], g.main_opset):
            return self.none(node, "the operator does not know bfloat16")
        return MatchResult(self, [known[0][0], node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, cast: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        narrow = g.get_type(cast.input[0])
        position = 0 if node.input[0] == cast.output[0] else 1
        other = g.make_node("Cast", [node.input[1 - position]], 1, to=narrow)
        inputs = [cast.input[0], other.output[0]] if position == 0 else [*other.output, *cast.input]
        op = g.make_node(node.op_type, inputs, 1, name=node.name)
        to = find_attribute(cast, "to")
        return [other, op, g.make_node("Cast", [op.output[0]], node.output[:], attributes=[to])]


@register_pattern(
    roots=("Add", "Sub", "Mul", "Div", "Neg", "Sigmoid", "Softmax"),
    precision="approximate",
    min_opset=7,
)
class CastOpCastPattern(PatternOptimization):
    """Cast(op(Cast(X: A, B)), A) -> op(X) where A is a float type narrower than B.

    1. op has one operand: Neg, Sigmoid, Softmax.
    2. op has two, both are widened from A.
    3. op has two, one is widened from A, the other one is a constant: it is converted to A.

    The operation runs with less precision: never in the default set.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        after = g.next_node(node.output[0])
        if after is None or after.op_type != "Cast" or after.domain or g.is_output(node.output[0]):
            return self.none(node, "the result does not go to one Cast only")
        if g.is_used_by_subgraph(node.output[0]):
            return self.none(node, "the result is captured by a subgraph")
        if has_reference(node):
            return self.none(node, "an attribute belongs to the function")
        target = target_type(after)
        if target == TensorProto.BFLOAT16 and g.main_opset < 13:
            return self.none(node, "the operator does not know bfloat16")
        casts: list[NodeProto | None] = []
        for name in node.input:
            cast, source = narrow_source(g, name)
            if cast is None and not g.is_constant(name):
                return self.none(node, "an operand is not widened by its own Cast")
            if cast is not None and source != target:
                return self.none(node, "the type after is not the type before")
            casts.append(cast)
        if all(c is None for c in casts):
            return self.none(node, "no operand is widened")
        casts.extend([None] * (2 - len(casts)))
        return MatchResult(self, [*casts, node, after], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto | None,
        right: NodeProto | None,
        node: NodeProto,
        after: NodeProto,
    ) -> list[NodeProto]:
        rows: list[NodeProto] = []
        inputs: list[str] = []
        to = find_attribute(after, "to")
        for cast, name in zip((left, right), node.input, strict=False):
            if cast is not None:
                inputs.append(cast.input[0])
                continue
            rows.append(g.make_node("Cast", [name], 1, attributes=[to]))
            inputs.append(rows[-1].output[0])
        attributes = node.attribute[:]
        op = g.make_node(
            node.op_type, inputs, [after.output[0]], attributes=attributes, name=node.name
        )
        return [*rows, op]
