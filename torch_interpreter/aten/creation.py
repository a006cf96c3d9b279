"""New tensors, copies and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper

from xbuilder.operators.op_traits import HALF_FLOATS

from ..common.types import (
    default_float,
    is_float,
    promote,
    to_numpy_type,
    to_onnx_type,
    to_torch_type,
)
from ..writing.graph_writer import GraphWriter, Tensor, constant, op_named
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table, curried
from ..writing.symbols import Operand, Size, SymScalar, dims_of, scalar0d, shape_tensor, vector1d
from .operands import FLOAT, INT64, cast, const, f64, sample, shape_tensor_of

# torch gives the device, the layout and other properties that ONNX does not have
Ignored = Any
#: types ConstantOfShape only accepts since opset 20
_FILLED_BY_A_CAST = frozenset(
    {TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2}
)


@aten(
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.cpu.default",
    "aten._to_copy.default",
    *(f"aten.to.{o}" for o in ("device", "dtype", "dtype_layout", "other", "prim_Device")),
    "aten.type_as.default",
)
def copy_or_cast(g: GraphWriter, x: str, *args: Ignored, **kwargs: Ignored) -> str:
    """A cast when an argument is a type or the tensor that has it, the tensor itself otherwise."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.dtype):
            return cast(g, x, to_onnx_type(value))
        if isinstance(value, str):
            return cast(g, x, g.get_type(value))
    return x


@aten("prims.convert_element_type.default")
def convert_element_type(g: GraphWriter, x: str, dtype: torch.dtype) -> str:
    """Cast."""
    return cast(g, x, to_onnx_type(dtype))


def constant_of_shape(
    g: GraphWriter, sizes: Sequence[Size] | Tensor, value: Operand, itype: int
) -> str:
    """A tensor filled with one value; a known small shape gives a constant, folded later.

    A Cast follows for types that ConstantOfShape lacks in old opsets.
    """
    shape = sizes if isinstance(sizes, str | np.ndarray) else shape_tensor(g, sizes)
    if isinstance(value, str):
        return g.op.Expand(scalar0d(g, value, itype), shape)
    if itype in _FILLED_BY_A_CAST:
        return cast(g, constant_of_shape(g, shape, value, TensorProto.FLOAT), itype)
    array = np.array([value], dtype=to_numpy_type(itype))
    tensor = helper.make_tensor("value", itype, [1], array.tobytes(), raw=True)
    return g.op.ConstantOfShape(shape, value=tensor)


def _dtype(dtype: torch.dtype | None, expected: OutputFacts, value: Operand | None = None) -> int:
    """The requested type, the one torch found, or the default one."""
    if dtype is not None:
        return to_onnx_type(dtype)
    if expected.type:
        return expected.type
    return default_float() if value is None or isinstance(value, str) else promote(value)


def _dtype_like(g: GraphWriter, x: str, dtype: torch.dtype | None) -> int:
    """The requested type, or the one of another tensor."""
    return g.get_type(x) if dtype is None else to_onnx_type(dtype)


@aten("aten.full.default")
def full(
    g: GraphWriter,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """A tensor filled with a number."""
    return constant_of_shape(g, size, fill_value, _dtype(dtype, expected, fill_value))


@aten("aten.full_like.default")
def full_like(
    g: GraphWriter,
    x: str,
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    **_: Ignored,
) -> str:
    """A tensor of the same shape, filled with a number."""
    return constant_of_shape(g, shape_tensor_of(g, x), fill_value, _dtype_like(g, x, dtype))


@aten("aten.new_full.default")
def new_full(
    g: GraphWriter,
    x: str,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    **_: Ignored,
) -> str:
    """A tensor of the same type, filled with a number."""
    return constant_of_shape(g, size, fill_value, _dtype_like(g, x, dtype))


@curried
def _filled(
    value: int,
    g: GraphWriter,
    size: Sequence[Size],
    *_: Ignored,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **kwargs: Any,
) -> str:
    return full(g, size, value, expected=expected, **kwargs)


@curried
def _filled_like(value: int, g: GraphWriter, x: str, **kwargs: Any) -> str:
    return full_like(g, x, value, **kwargs)


@curried
def _new_filled(
    value: int, g: GraphWriter, x: str, size: Sequence[Size], *_: Ignored, **kwargs: Any
) -> str:
    return new_full(g, x, size, value, **kwargs)


# an uninitialised tensor may hold anything: zeros are as good and reproducible
_VALUES = {"zeros": 0, "ones": 1, "empty": 0}
aten_table(_filled_like, _VALUES, "aten.{}_like.default")
aten_table(_new_filled, _VALUES, "aten.new_{}.default")
aten("aten.zeros.default")(_filled(0))
aten("aten.ones.default")(_filled(1))
aten("aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_permuted.default")(
    _filled(0)
)
aten("aten.new_empty_strided.default")(_new_filled(0))
aten("aten.zero.default")(_filled_like(0))


@aten("aten.fill.Scalar", "aten.fill.Tensor")
def fill(g: GraphWriter, x: str, value: Operand) -> str:
    """A tensor with the shape and the type of x, filled with one value."""
    return constant_of_shape(g, shape_tensor_of(g, x), value, g.get_type(x))


@aten("aten.copy.default")
def copy(g: GraphWriter, x: str, source: str, non_blocking: bool = False) -> str:
    """The content of source in the shape and the type of x."""
    source = cast(g, source, g.get_type(x))
    if g.has_shape(source) and g.has_shape(x) and g.get_shape(source) == g.get_shape(x):
        return source
    return g.op.Expand(source, shape_tensor_of(g, x))


@aten("aten.scalar_tensor.default")
def scalar_tensor(
    g: GraphWriter,
    value: Operand,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """A tensor without dimension."""
    scalar = scalar0d(g, value, _dtype(dtype, expected, value))
    return scalar if isinstance(scalar, str) else constant(g, scalar)


@aten("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(
    g: GraphWriter,
    start: Operand,
    end: Operand | None = None,
    step: Operand = 1,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """A constant when the bounds are known, Range otherwise."""
    if end is None:
        start, end = 0, start
    bounds = (start, end, step)
    itype = _dtype(dtype, expected)
    known = [b for b in bounds if not isinstance(b, str)]
    if len(known) == len(bounds):
        wide = torch.float64 if is_float(itype) else to_torch_type(itype)
        numbers = torch.arange(*known, dtype=wide)
        return constant(g, numbers.numpy().astype(to_numpy_type(itype)))
    work = itype
    if not is_float(itype) and not (itype == INT64 and _casts_bounds()):
        work = promote(*(sample(g, b) for b in bounds))
        work = TensorProto.DOUBLE if is_float(work) else INT64
    elif itype in HALF_FLOATS:
        work = TensorProto.FLOAT
    values = g.op.Range(*(scalar0d(g, b, work) for b in bounds))
    return cast(g, values, itype)


@cache
def _casts_bounds() -> bool:
    """Whether torch casts bounds to int64 before it counts, as 2.13 does; 2.15 counts with doubles
    first, as all do for the other integers."""
    return torch.arange(0.0, 0.5, dtype=torch.int64).numel() == 0


@aten("prims.iota.default")
def iota(
    g: GraphWriter, length: Size, *, start: Size, step: Size, dtype: torch.dtype, **_: Ignored
) -> str:
    """start + step * [0, length)."""
    count = g.op.Range(const(0, INT64), scalar0d(g, length, INT64), const(1, INT64))
    scaled = g.op.Mul(count, vector1d(g, step))
    return cast(g, g.op.Add(scaled, vector1d(g, start)), to_onnx_type(dtype))


@aten("aten.linspace.default")
def linspace(
    g: GraphWriter,
    start: Operand,
    end: Operand,
    steps: Size,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """A constant for known bounds; otherwise half of it is counted from the end, as torch does."""
    itype = _dtype(dtype, expected)
    if not isinstance(start, str) and not isinstance(end, str) and not isinstance(steps, str):
        wide = torch.float64 if is_float(itype) else to_torch_type(itype)
        values = torch.linspace(start, end, steps, dtype=wide).numpy()
        return constant(g, values.astype(to_numpy_type(itype)))
    double = TensorProto.DOUBLE
    bounds: Sequence[Operand] = (start, end)
    if not is_float(itype):
        # torch truncates the bounds
        bounds = [SymScalar(vector1d(g, v)) if isinstance(v, str) else int(v) for v in bounds]
    first, last = (vector1d(g, v, double) for v in bounds)
    count, one = vector1d(g, steps, double), f64([1.0])
    numbers = g.op.Range(f64(0.0), scalar0d(g, steps, double), f64(1.0))
    gaps = g.op.Sub(count, one)
    step = g.op.Div(g.op.Sub(last, first), g.op.Max(gaps, one))
    up = g.op.Add(first, g.op.Mul(numbers, step))
    down = g.op.Sub(last, g.op.Mul(g.op.Sub(gaps, numbers), step))
    half = g.op.Max(g.op.Floor(g.op.Mul(count, f64([0.5]))), one)
    return cast(g, g.op.Where(g.op.Less(numbers, half), up, down), itype)


@aten("aten.eye.default", "aten.eye.m")
def eye(
    g: GraphWriter,
    n: Size,
    m: Size | None = None,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """The identity matrix, cast from a type onnxruntime has a kernel of EyeLike for."""
    itype = _dtype(dtype, expected)
    made = itype if itype in (FLOAT, TensorProto.DOUBLE, INT64, TensorProto.INT32) else FLOAT
    zeros = constant_of_shape(g, [n, n if m is None else m], 0, made)
    return cast(g, g.op.EyeLike(zeros, dtype=made), itype)


@curried
def _triangle_indices(
    fct: Callable[[int, int, int], torch.Tensor],
    g: GraphWriter,
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: torch.dtype = torch.int64,
    **_: Ignored,
) -> str:
    """A converter whose result is a constant, for known sizes."""
    itype = to_onnx_type(dtype)
    return constant(g, fct(row, col, offset).numpy().astype(to_numpy_type(itype)))


aten("aten.tril_indices.default")(_triangle_indices(torch.tril_indices))
aten("aten.triu_indices.default")(_triangle_indices(torch.triu_indices))


@curried
def _random(
    op_type: str,
    g: GraphWriter,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    return drawn(g, op_type, size, _dtype(dtype, expected))


def drawn(g: GraphWriter, op_type: str, size: Sequence[Size], itype: int, **bounds: float) -> str:
    """Random numbers of a shape which may be dynamic."""
    if all(not isinstance(d, str) for d in size) and len(size):
        return op_named(g, op_type)(dtype=itype, shape=list(size), **bounds)
    zeros = constant_of_shape(g, size, 0, itype)
    return op_named(g, f"{op_type}Like")(zeros, dtype=itype, **bounds)


@curried
def _random_like(
    op_type: str, g: GraphWriter, x: str, *, dtype: torch.dtype | None = None, **_: Ignored
) -> str:
    return op_named(g, op_type)(x, dtype=_dtype_like(g, x, dtype))


aten("aten.rand.default")(_random("RandomUniform"))
aten("aten.randn.default")(_random("RandomNormal"))
aten("aten.rand_like.default")(_random_like("RandomUniformLike"))
aten("aten.randn_like.default")(_random_like("RandomNormalLike"))


@aten("prims.uniform.default")
def uniform(
    g: GraphWriter,
    size: Sequence[Size],
    *,
    low: float,
    high: float,
    dtype: torch.dtype,
    **_: Ignored,
) -> str:
    """RandomUniform."""
    return drawn(g, "RandomUniform", size, to_onnx_type(dtype), low=low, high=high)


@aten("prims.normal.default")
def normal(
    g: GraphWriter,
    size: Sequence[Size],
    *,
    mean: float,
    std: float,
    dtype: torch.dtype,
    **_: Ignored,
) -> str:
    """RandomNormal."""
    return drawn(g, "RandomNormal", size, to_onnx_type(dtype), mean=mean, scale=std)


@aten("aten.randint.low")
def randint_between(
    g: GraphWriter,
    low: int,
    high: int,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = torch.int64,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **_: Ignored,
) -> str:
    """The floor of a RandomUniform of doubles; every integer below 2**53 is a double."""
    bounds = {"low": float(low), "high": float(high)}
    numbers = drawn(g, "RandomUniform", size, TensorProto.DOUBLE, **bounds)
    return g.op.Cast(g.op.Floor(numbers), to=_dtype(dtype, expected))


@aten("aten.randint.default")
def randint(g: GraphWriter, high: int, size: Sequence[Size], **options: Any) -> str:
    """From 0."""
    return randint_between(g, 0, high, size, **options)


@aten("aten.randint_like.low_dtype")
def randint_like_between(
    g: GraphWriter, x: str, low: int, high: int, *, dtype: torch.dtype | None = None, **_: Ignored
) -> str:
    """randint of the shape of a tensor."""
    wanted = dtype or to_torch_type(g.get_type(x))
    return randint_between(g, low, high, dims_of(g, x), dtype=wanted)


@aten("aten.randint_like.default")
def randint_like(g: GraphWriter, x: str, high: int, **options: Any) -> str:
    """From 0."""
    return randint_like_between(g, x, 0, high, **options)
