"""Operators that make tensors: constants, shapes, ranges, random values, one-hot..."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...dims import (
    Constraints,
    Dim,
    Shape,
    add,
    ceildiv,
    dim_max,
    mul,
    normalize_axis,
    prod,
    prove_ge,
    sub,
)
from ...facts.facts import MAX_TRACKED, ResultFacts, Value
from .. import values as V
from ..common import (
    FLOAT,
    INT32,
    INT64,
    STRING,
    content,
    facts_like,
    first_type,
    length,
    new_shape,
    refuses_negative,
)
from ..context import ShapeContext
from ..shipped import shipped_function


def type_of_array(array: np.ndarray) -> int:
    """ONNX type of an array, 0 if there is none."""
    if array.dtype.kind in "OUS":
        return STRING
    try:
        return helper.np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError, TypeError):
        return 0


def array_facts(array: np.ndarray) -> ResultFacts:
    """Facts of a constant array, its content when it is a small vector of integers.

    >>> array_facts(np.array([1, 2], dtype=np.int64)).value
    (1, 2)
    """
    result = ResultFacts(type_of_array(array), tuple(int(d) for d in array.shape))
    if result.type in V.TRACKED and array.ndim <= 1 and array.size <= MAX_TRACKED:
        items = tuple(int(v) for v in array.reshape(-1))
        result.value = items if array.ndim else items[0]
    return result


#: attributes of Constant, with the type of the tensor they give
_CONSTANTS: dict[str, tuple[int, type]] = {
    "value_float": (FLOAT, np.float32),
    "value_floats": (FLOAT, np.float32),
    "value_int": (INT64, np.int64),
    "value_ints": (INT64, np.int64),
    "value_string": (STRING, np.object_),
    "value_strings": (STRING, np.object_),
}


@shipped_function("Constant")
def constant(ctx: ShapeContext) -> ResultFacts | None:
    """Constant: any of its attributes."""
    value = ctx.attr("value")
    if isinstance(value, np.ndarray):
        return array_facts(value)
    for name, (elem_type, dtype) in _CONSTANTS.items():
        value = ctx.attr(name)
        if value is not None:
            result = array_facts(np.array(value, dtype=dtype))
            result.type = elem_type
            return result
    return _sparse(ctx.attr("sparse_value"))


def _sparse(sparse: Any) -> ResultFacts | None:
    """Facts of a sparse constant, given as a `SparseTensorProto`."""
    if sparse is None or not hasattr(sparse, "dims"):
        return None
    return ResultFacts(sparse.values.data_type, tuple(sparse.dims))


@shipped_function("Shape")
def shape_(ctx: ShapeContext) -> ResultFacts:
    """Shape: the content of the output is the shape, `start` and `end` since opset 15."""
    facts = ctx.facts(0)
    rank = facts.known_rank()
    if rank is None:
        return ResultFacts(INT64, None, 1)
    start, end = ctx.attr("start", 0), ctx.attr("end", rank)
    positions = range(rank)[start:end]
    value = None
    if facts.shape is not None:
        value = V.checked(facts.shape[start:end], INT64)
    return ResultFacts(INT64, (len(positions),), None, value)


@shipped_function("Size")
def size(ctx: ShapeContext) -> ResultFacts:
    """Size: the product of the dimensions."""
    shape = ctx.shape(0)
    value = None if shape is None else V.checked(prod(shape), INT64)
    return ResultFacts(INT64, (), None, value)


def filled(shape: Shape, item: Dim | None, elem_type: int) -> Value:
    """Content of a tensor filled with one integer, None unless it is a small vector."""
    if item is None or len(shape) > 1 or elem_type not in V.TRACKED:
        return None
    if not shape:
        return item
    if not isinstance(shape[0], int) or shape[0] > MAX_TRACKED:
        return None
    return (item,) * shape[0]


@shipped_function("ConstantOfShape")
def constant_of_shape(ctx: ShapeContext) -> ResultFacts | None:
    """ConstantOfShape: filled with attribute `value`, a float zero by default."""
    value = ctx.attr("value")
    elem_type: int = FLOAT
    item = None
    if value is not None:
        array = np.asarray(value)
        elem_type = type_of_array(array)
        item = int(array.reshape(-1)[0]) if elem_type in V.TRACKED and array.size == 1 else None
    target = content(ctx, 0)
    if target is None:
        rank = length(ctx, 0)
        return ResultFacts(elem_type, None if rank is None else new_shape(ctx, rank))
    if any(isinstance(d, int) and d < 0 for d in target):
        return None
    return ResultFacts(elem_type, target, None, filled(target, item, elem_type))


def range_length(
    start: Dim, limit: Dim, delta: Dim, constraints: Constraints | None = None
) -> Dim | None:
    """Number of elements of Range, None if the step is not a known integer.

    >>> range_length(0, "n", 1)
    'n'
    """
    if not isinstance(delta, int) or delta == 0:
        return None
    span = sub(limit, start) if delta > 0 else sub(start, limit)
    if not prove_ge(span, 0, constraints):
        span = dim_max(span, 0)
    return ceildiv(span, abs(delta))


def _single(value: Value) -> Dim | None:
    """The only element of a content, None if it is unknown or if there are several."""
    if not isinstance(value, tuple):
        return value
    return value[0] if len(value) == 1 else None


@shipped_function("Range")
def range_(ctx: ShapeContext) -> ResultFacts:
    """Range: the length depends on the content of the inputs."""
    elem_type = first_type(ctx, 0, 1, 2)
    start, limit, step = (_single(ctx.value(i)) for i in range(3))
    if start is None or limit is None or step is None:
        return _constant_range(ctx, elem_type)
    count = range_length(start, limit, step, ctx.constraints)
    if count is None:
        return ResultFacts(elem_type, (ctx.new_dim("range"),))
    result = ResultFacts(elem_type, (count,))
    if isinstance(count, int) and count <= MAX_TRACKED:
        values = tuple(add(start, mul(i, step)) for i in range(count))
        result.value = V.checked(values, elem_type)
    return result


def _constant_range(ctx: ShapeContext, elem_type: int) -> ResultFacts:
    """Range between constants whose content is not propagated, floats for example."""
    inputs = [ctx.constant(i) for i in range(3)]
    arrays = [array for array in inputs if array is not None and array.size == 1]
    if len(arrays) != 3:
        return ResultFacts(elem_type, (ctx.new_dim("range"),))
    start, limit, delta = (float(array.reshape(-1)[0]) for array in arrays)
    if delta == 0 or not np.isfinite([start, limit, delta]).all():
        return ResultFacts(elem_type, (ctx.new_dim("range"),))
    exact = (limit - start) / delta
    if not _sure_count(exact, limit - start, arrays[0].dtype):
        return ResultFacts(elem_type, (ctx.new_dim("range"),))
    return ResultFacts(elem_type, (max(int(np.ceil(exact)), 0),))


def _sure_count(count: float, span: float, dtype: np.dtype) -> bool:
    """Whether rounding, in type *dtype*, cannot change the number of elements of a range."""
    distance = abs(count - round(count))
    if distance == 0:
        return float(np.asarray(span).astype(dtype)) == span
    relative = 1e-6 if dtype.itemsize >= 4 else 2e-2
    return distance > relative * max(abs(count), 1)


@shipped_function("RandomNormal", "RandomUniform")
@refuses_negative
def random(ctx: ShapeContext) -> ResultFacts:
    """Random tensors of a given shape."""
    shape = ctx.attr("shape")
    return ResultFacts(ctx.attr("dtype") or FLOAT, None if shape is None else tuple(shape))


@shipped_function("EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli")
def created_like(ctx: ShapeContext) -> ResultFacts:
    """EyeLike and random tensors of the shape of another one."""
    facts = ctx.facts(0)
    return facts_like(facts, ctx.attr("dtype") or facts.type)


@shipped_function("Multinomial")
@refuses_negative
def multinomial(ctx: ShapeContext) -> ResultFacts:
    """Multinomial: `(batch, sample_size)`."""
    shape = ctx.shape(0)
    batch = shape[0] if shape else ctx.new_dim("batch")
    return ResultFacts(ctx.attr("dtype") or INT32, (batch, ctx.attr("sample_size", 1)))


@shipped_function("OneHot")
@refuses_negative
def one_hot(ctx: ShapeContext) -> ResultFacts | None:
    """OneHot: one more axis, of length `depth`."""
    elem_type = ctx.type(2)
    shape = ctx.shape(0)
    if shape is None:
        rank = ctx.rank(0)
        return ResultFacts(elem_type, None, None if rank is None else rank + 1)
    axis = normalize_axis(ctx.attr("axis", -1), len(shape) + 1)
    if axis is None:
        return None
    depth = content(ctx, 1)
    if depth is None or len(depth) != 1:
        array = ctx.constant(1)
        if array is None or array.size != 1:
            depth = (ctx.new_dim("depth"),)
        else:
            depth = (int(array.reshape(-1)[0]),)
    return ResultFacts(elem_type, (*shape[:axis], depth[0], *shape[axis:]))
