"""Sequences and optionals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dims import Dim, Shape, normalize_axis
from ...facts.facts import ResultFacts
from ..common import BOOL, FLOAT, INT64, facts_like, int_content, replace_dim
from ..context import ShapeContext
from ..shipped import shipped_function


def join_facts(a: ResultFacts, b: ResultFacts) -> ResultFacts:
    """Facts two elements of one sequence have in common; the shape is unknown if they differ.

    >>> join_facts(ResultFacts(1, ("a", 3)), ResultFacts(1, ("b", 3))).rank
    2
    """
    elem_type = a.type if a.type == b.type else (a.type or b.type)
    if a.shape is not None and a.shape == b.shape:
        return ResultFacts(elem_type, a.shape)
    rank = a.known_rank()
    return ResultFacts(elem_type, None, rank if rank == b.known_rank() else None)


def sequence_of(element: ResultFacts | None) -> ResultFacts:
    """Facts of a sequence; a sequence is recognised even if nothing is known of its elements."""
    return ResultFacts(sequence=element if element is not None else ResultFacts())


@shipped_function("SequenceEmpty")
def sequence_empty(ctx: ShapeContext) -> ResultFacts:
    """SequenceEmpty: only the type of the elements is known."""
    return sequence_of(ResultFacts(ctx.attr("dtype") or FLOAT))


@shipped_function("SequenceConstruct")
def sequence_construct(ctx: ShapeContext) -> ResultFacts:
    """SequenceConstruct: the elements are the inputs."""
    element = facts_like(ctx.facts(0))
    for i in range(1, ctx.n_inputs):
        element = join_facts(element, ctx.facts(i))
    return sequence_of(element)


@shipped_function("SequenceInsert")
def sequence_insert(ctx: ShapeContext) -> ResultFacts:
    """SequenceInsert: the new element may be unlike the others."""
    element, new = ctx.facts(0).sequence, ctx.facts(1)
    if element is None:
        return sequence_of(ResultFacts(new.type))
    return sequence_of(join_facts(element, new))


@shipped_function("SequenceErase")
def sequence_erase(ctx: ShapeContext) -> ResultFacts:
    """SequenceErase: the facts of every element still hold."""
    return sequence_of(ctx.facts(0).sequence)


@shipped_function("SequenceAt")
def sequence_at(ctx: ShapeContext) -> ResultFacts | None:
    """SequenceAt: one of the elements, the one at a constant position if each is known."""
    parts, position = ctx.facts(0).parts, int_content(ctx, 1) or ()
    if len(position) == 1 and -len(parts) <= position[0] < len(parts):
        return facts_like(parts[position[0]])
    element = ctx.facts(0).sequence
    return None if element is None else facts_like(element)


@shipped_function("SequenceLength")
def sequence_length(ctx: ShapeContext) -> ResultFacts:
    """SequenceLength: a scalar."""
    return ResultFacts(INT64, ())


@shipped_function("ConcatFromSequence")
def concat_from_sequence(ctx: ShapeContext) -> ResultFacts | None:
    """ConcatFromSequence: along an axis, or a new one, of unknown length."""
    element = ctx.facts(0).sequence
    if element is None:
        return None
    new_axis = ctx.attr("new_axis", 0)
    if element.shape is None:
        rank = element.rank
        return ResultFacts(element.type, None, None if rank is None else rank + new_axis)
    axis = normalize_axis(ctx.attr("axis"), len(element.shape) + new_axis)
    if axis is None:
        return None
    joined = ctx.new_dim("concat")
    if new_axis:
        return ResultFacts(element.type, (*element.shape[:axis], joined, *element.shape[axis:]))
    return ResultFacts(element.type, replace_dim(element.shape, axis, joined))


def _part_length(ctx: ShapeContext, dim: Dim) -> Dim | None:
    """Length shared by every part of SplitToSequence, None if they may differ."""
    sizes = int_content(ctx, 1) if ctx.has_input(1) else (1,)
    if not sizes:
        return None
    scalar = not ctx.has_input(1) or ctx.rank(1) == 0
    if not scalar:
        return sizes[0] if len(set(sizes)) == 1 else None
    exact = isinstance(dim, int) and dim % sizes[0] == 0 if sizes[0] > 1 else sizes[0] == 1
    return sizes[0] if exact else None


@shipped_function("SplitToSequence")
def split_to_sequence(ctx: ShapeContext) -> ResultFacts | None:
    """SplitToSequence: parts of one length, or of given lengths, the last may be smaller.

    With given lengths, only onnxruntime reads `keepdims`; the facts are then unknown.
    """
    facts = ctx.facts(0)
    if facts.shape is None:
        return sequence_of(ResultFacts(facts.type))
    axis = normalize_axis(ctx.attr("axis", 0), len(facts.shape))
    if axis is None:
        return None
    if not ctx.has_input(1) and not ctx.attr("keepdims", 1):
        shape: Shape = (*facts.shape[:axis], *facts.shape[axis + 1 :])
        return sequence_of(ResultFacts(facts.type, shape))
    if not ctx.attr("keepdims", 1):
        return sequence_of(ResultFacts(facts.type))
    size = _part_length(ctx, facts.shape[axis])
    if size is None:
        found = sequence_of(ResultFacts(facts.type, None, len(facts.shape)))
        sizes = int_content(ctx, 1) if ctx.has_input(1) and ctx.rank(1) == 1 else None
        shapes = [replace_dim(facts.shape, axis, size) for size in sizes or ()]
        found.parts = tuple(ResultFacts(facts.type, shape) for shape in shapes)
        return found
    return sequence_of(ResultFacts(facts.type, replace_dim(facts.shape, axis, size)))


def facts_of_type_proto(proto: Any, new_dim: Callable[[str], str] | None = None) -> ResultFacts:
    """Facts stored in a `TypeProto`, for sequences and optionals as well.

    :param proto: the type
    :param new_dim: makes a symbol for a dimension without size, whose name proves nothing; without
        it, only the rank is kept
    """
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return sequence_of(facts_of_type_proto(proto.sequence_type.elem_type, new_dim))
    if kind == "optional_type":
        return ResultFacts(optional=facts_of_type_proto(proto.optional_type.elem_type, new_dim))
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return ResultFacts()
    tensor = getattr(proto, kind)
    result = ResultFacts(tensor.elem_type)
    if tensor.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else "" for d in tensor.shape.dim]
        if new_dim is not None:
            dims = [new_dim("unknown") if d == "" else d for d in dims]
        if all(d != "" for d in dims):
            result.shape = tuple(dims)
        else:
            result.rank = len(dims)
    return result


@shipped_function("Optional")
def optional(ctx: ShapeContext) -> ResultFacts:
    """Optional: wraps the input, or an empty value of the type of an attribute."""
    if ctx.has_input(0):
        facts = ctx.facts(0)
        return ResultFacts(optional=facts_like(facts) if facts.sequence is None else facts)
    proto = ctx.attr("type")
    element = ResultFacts()
    if hasattr(proto, "WhichOneof"):
        element = facts_of_type_proto(proto, ctx.new_dim)
    return ResultFacts(optional=element)


@shipped_function("OptionalGetElement")
def optional_get_element(ctx: ShapeContext) -> ResultFacts:
    """OptionalGetElement: the element; since opset 18 the input may be the element itself."""
    facts = ctx.facts(0)
    element = facts.optional if facts.optional is not None else facts
    return ResultFacts(element.type, element.shape, element.rank, element.value, element.sequence)


@shipped_function("OptionalHasElement")
def optional_has_element(ctx: ShapeContext) -> ResultFacts:
    """OptionalHasElement: a boolean scalar."""
    return ResultFacts(BOOL, ())
