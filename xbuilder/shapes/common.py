"""Helpers shared by the families of shape functions: contents, broadcasting, merged shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar

import numpy as np
from onnx import TensorProto

from ..dims import Dim, DimensionError, Shape, broadcast_shapes, is_plain, is_static
from ..facts.facts import MAX_RANK, ResultFacts
from .context import ShapeContext
from .registry import RewriteResult

#: the result of a shape function
A = TypeVar("A", bound=RewriteResult)

FLOAT = TensorProto.FLOAT
UINT8 = TensorProto.UINT8
INT8 = TensorProto.INT8
UINT32 = TensorProto.UINT32
UINT16 = TensorProto.UINT16
INT32 = TensorProto.INT32
INT64 = TensorProto.INT64
STRING = TensorProto.STRING
BOOL = TensorProto.BOOL
FLOAT16 = TensorProto.FLOAT16

#: values of `end` by which exporters mean "up to the end"
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

#: longer lists of sizes, starts or axes are not read
MAX_CONTENT = 1 << 16


def facts_like(facts: ResultFacts, elem_type: int | None = None) -> ResultFacts:
    """Facts of a result with the same shape, and the same type unless another is given.

    >>> facts_like(ResultFacts(type=1, shape=("a", 3)), 7).shape
    ('a', 3)
    """
    return ResultFacts(facts.type if elem_type is None else elem_type, facts.shape, facts.rank)


def same_as_first(ctx: ShapeContext) -> ResultFacts:
    """Output of the type and shape of the first input."""
    facts = ctx.facts(0)
    return ResultFacts(facts.type, facts.shape, facts.rank)


def several(ctx: ShapeContext, *facts: ResultFacts) -> list[ResultFacts]:
    """List of facts, limited to the outputs the node has."""
    return list(facts[: ctx.n_outputs])


def content(ctx: ShapeContext, i: int) -> tuple[Dim, ...] | None:
    """Content of a shape-like input as a tuple, of one element for a scalar, None if unknown."""
    value = ctx.value(i)
    if value is not None:
        return value if isinstance(value, tuple) else (value,)
    array = ctx.constant(i)
    if array is None or array.ndim > 1 or array.dtype.kind not in "iub":
        return None
    return tuple(array.reshape(-1).tolist()) if array.size <= MAX_CONTENT else None


def int_content(ctx: ShapeContext, i: int) -> tuple[int, ...] | None:
    """Content of a shape-like input of which every element is a known integer, else None."""
    values = content(ctx, i)
    return values if values is not None and is_static(values) else None


def float_content(ctx: ShapeContext, i: int) -> np.ndarray | None:
    """Flat constant content of a float input, None if it is not a constant."""
    array = ctx.constant(i)
    return None if array is None else np.asarray(array).reshape(-1)


def argument(ctx: ShapeContext, i: int, name: str) -> tuple[bool, tuple[Dim, ...] | None]:
    """Integers of an attribute in old opsets, of an input in new ones.

    :param ctx: the node
    :param i: index of the input
    :param name: name of the attribute
    :return: whether they are present, and their content, None if unknown
    """
    if ctx.has_input(i):
        return True, content(ctx, i)
    attribute = ctx.attr(name)
    if attribute is None:
        return False, None
    return True, tuple(attribute) if isinstance(attribute, (list, tuple)) else (attribute,)


def length(ctx: ShapeContext, i: int) -> int | None:
    """Number of elements of a 1-D input, None if it is unknown, symbolic or not a possible rank."""
    shape = ctx.shape(i)
    if shape is None or len(shape) > 1:
        return None
    if not shape:
        return 1
    return shape[0] if isinstance(shape[0], int) and shape[0] <= MAX_RANK else None


def broadcast_shape(ctx: ShapeContext, *shapes: Shape) -> Shape | None:
    """Numpy's broadcasting, None if the shapes are proven incompatible."""
    try:
        return broadcast_shapes(*shapes, constraints=ctx.constraints)
    except DimensionError:
        return None


def merge_dim(ctx: ShapeContext, a: Dim, b: Dim) -> Dim | None:
    """The more precise of two dimensions a valid model makes equal, None if contradictory."""
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return None
    try:
        ctx.constraints.add_equal(a, b, ctx.op_type)
    except DimensionError:
        return None
    return b if isinstance(b, int) or (is_plain(b) and not is_plain(a)) else a


def merge_shapes(ctx: ShapeContext, shapes: Sequence[Shape | None]) -> Shape | None:
    """The most precise shape among those a valid model makes equal, None if unknown or
    contradictory."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    result = known[0]
    for shape in known[1:]:
        if shape == result:
            continue
        if len(shape) != len(result):
            return None
        merged: list[Dim] = []
        for a, b in zip(result, shape, strict=True):
            dim = merge_dim(ctx, a, b)
            if dim is None:
                return None
            merged.append(dim)
        result = tuple(merged)
    return result


def new_shape(ctx: ShapeContext, rank: int, hint: str = "") -> Shape:
    """A shape of fresh symbols."""
    return tuple(ctx.new_dim(hint or f"{ctx.op_type.lower()}_d{i}") for i in range(rank))


def first_type(ctx: ShapeContext, *indices: int) -> int:
    """First known type among inputs that share one, all the inputs by default."""
    for i in indices or range(ctx.n_inputs):
        elem_type = ctx.type(i)
        if elem_type:
            return elem_type
    return 0


def refuses_negative(function: Callable[[ShapeContext], A]) -> Callable[[ShapeContext], A | None]:
    """Decorator for functions that copy dimensions from attributes or compute differences.

    A negative dimension means that the node is not valid. Its results are then unknown.
    """

    @wraps(function)
    def checked(ctx: ShapeContext) -> A | None:
        answer = function(ctx)
        if answer is None:
            return None
        for facts in (answer,) if isinstance(answer, ResultFacts) else answer:
            if facts.shape is not None and any(isinstance(d, int) and d < 0 for d in facts.shape):
                return None
        return answer

    return checked


def is_one(dim: Dim) -> bool:
    """Whether a dimension is known to be 1."""
    return isinstance(dim, int) and dim == 1


def replace_dim(shape: Shape, axis: int, dim: Dim) -> Shape:
    """Shape with another dimension at position *axis*."""
    return (*shape[:axis], dim, *shape[axis + 1 :])
