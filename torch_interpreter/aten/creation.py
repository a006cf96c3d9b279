"""New tensors, copies and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper

from ..registry import aten
from ..symbols import SymScalar, scalar0d, shape_tensor, vector1d
from ..types import default_float, is_float, promote, to_numpy_type, to_onnx_type
from .operands import INT64, Operand, Outputs, cast, const, sample, shape_of

Size = int | SymScalar
# torch names the device, the layout and other properties ONNX does not have
Ignored = Any


@aten(
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.cpu.default",
    "aten._to_copy.default",
    *(f"aten.to.{o}" for o in ("device", "dtype", "dtype_layout", "other", "prim_Device")),
    "aten.type_as.default",
)
def copy_or_cast(
    g: Any, sts: Any, outputs: Outputs, x: str, *args: Ignored, **kwargs: Ignored
) -> str:
    """A cast when an argument is a type, or the tensor that has it; nothing otherwise."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.dtype):
            return cast(g, x, to_onnx_type(value))
        if isinstance(value, str):
            return cast(g, x, g.get_type(value))
    return x


@aten("prims.convert_element_type.default")
def convert_element_type(g: Any, sts: Any, outputs: Outputs, x: str, dtype: Any) -> str:
    """Cast."""
    return cast(g, x, to_onnx_type(dtype))


def constant_of_shape(
    g: Any, sizes: Sequence[Size] | str | np.ndarray, value: Any, itype: int, outputs: Outputs
) -> str:
    """A tensor filled with one value; a known small shape gives a constant folded later."""
    shape = sizes if isinstance(sizes, str | np.ndarray) else shape_tensor(g, sizes)
    if isinstance(value, str):
        filled = scalar0d(g, value, itype)
        return g.op.Expand(filled, shape, outputs=outputs)
    array = np.array([value], dtype=to_numpy_type(itype))
    tensor = helper.make_tensor("value", itype, [1], array.tobytes(), raw=True)
    return g.op.ConstantOfShape(shape, value=tensor, outputs=outputs)


def _dtype(dtype: Any, sts: Any, value: Any = None) -> int:
    """The type asked, the one torch found, or the default one."""
    if dtype is not None:
        return to_onnx_type(dtype)
    if sts is not None and sts.type:
        return sts.type
    return default_float() if value is None or isinstance(value, str) else promote(value)


def _filled(value: int) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        size: Sequence[Size],
        *_: Ignored,
        dtype: Any = None,
        **__: Ignored,
    ) -> str:
        return constant_of_shape(g, size, value, _dtype(dtype, sts), outputs)

    return convert


def _filled_like(value: int) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str, dtype: Any = None, **_: Ignored) -> str:
        itype = g.get_type(x) if dtype is None else to_onnx_type(dtype)
        return constant_of_shape(g, shape_of(g, x), value, itype, outputs)

    return convert


def _new_filled(value: int) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        size: Sequence[Size],
        *,
        dtype: Any = None,
        **_: Ignored,
    ) -> str:
        itype = g.get_type(x) if dtype is None else to_onnx_type(dtype)
        return constant_of_shape(g, size, value, itype, outputs)

    return convert


# an uninitialised tensor may hold anything: zeros are as good and reproducible
for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _overload = "memory_format" if _name == "empty" else "default"
    aten(f"aten.{_name}.{_overload}")(_filled(_value))
    aten(f"aten.{_name}_like.default")(_filled_like(_value))
    aten(f"aten.new_{_name}.default")(_new_filled(_value))
aten("aten.empty_strided.default", "aten.empty_permuted.default")(_filled(0))
aten("aten.new_empty_strided.default")(
    lambda g, sts, outputs, x, size, stride, **kw: _new_filled(0)(g, sts, outputs, x, size, **kw)
)
aten("aten.zero.default")(_filled_like(0))


@aten("aten.full.default")
def full(
    g: Any,
    sts: Any,
    outputs: Outputs,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """A tensor filled with a number."""
    itype = _dtype(dtype, sts, fill_value)
    return constant_of_shape(g, size, fill_value, itype, outputs)


@aten("aten.full_like.default")
def full_like(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    fill_value: Operand,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """A tensor of the same shape, filled with a number."""
    itype = g.get_type(x) if dtype is None else to_onnx_type(dtype)
    return constant_of_shape(g, shape_of(g, x), fill_value, itype, outputs)


@aten("aten.new_full.default")
def new_full(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """A tensor of the same type, filled with a number."""
    itype = g.get_type(x) if dtype is None else to_onnx_type(dtype)
    return constant_of_shape(g, size, fill_value, itype, outputs)


@aten("aten.fill.Scalar", "aten.fill.Tensor")
def fill(g: Any, sts: Any, outputs: Outputs, x: str, value: Operand) -> str:
    """The shape and the type of x, another content."""
    return constant_of_shape(g, shape_of(g, x), value, g.get_type(x), outputs)


@aten("aten.copy.default")
def copy(
    g: Any, sts: Any, outputs: Outputs, x: str, source: str, non_blocking: bool = False
) -> str:
    """The content of source in the shape and the type of x."""
    source = cast(g, source, g.get_type(x))
    if g.has_shape(source) and g.has_shape(x) and g.get_shape(source) == g.get_shape(x):
        return source
    return g.op.Expand(source, shape_of(g, x), outputs=outputs)


@aten("aten.scalar_tensor.default")
def scalar_tensor(
    g: Any, sts: Any, outputs: Outputs, value: Operand, *, dtype: Any = None, **_: Ignored
) -> str:
    """A tensor without dimension."""
    itype = _dtype(dtype, sts, value)
    return g.op.Identity(scalar0d(g, value, itype), outputs=outputs)


@aten("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(
    g: Any,
    sts: Any,
    outputs: Outputs,
    start: Operand,
    end: Operand | None = None,
    step: Operand = 1,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """A constant when the bounds are known, Range otherwise."""
    if end is None:
        start, end = 0, start
    bounds = (start, end, step)
    itype = _dtype(dtype, sts)
    if all(not isinstance(b, str) for b in bounds):
        values = torch.arange(start, end, step, dtype=torch.float64 if is_float(itype) else None)
        array = values.numpy().astype(to_numpy_type(itype))
        return g.op.Identity(g.make_initializer("", array, allow_empty=True), outputs=outputs)
    work = itype
    if not is_float(itype):
        work = promote(*(sample(g, b) for b in bounds))
        work = TensorProto.DOUBLE if is_float(work) else INT64
    elif itype in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        work = TensorProto.FLOAT
    values = g.op.Range(*(scalar0d(g, b, work) for b in bounds))
    return cast(g, values, itype, outputs)


@aten("prims.iota.default")
def iota(
    g: Any,
    sts: Any,
    outputs: Outputs,
    length: Size,
    *,
    start: Size,
    step: Size,
    dtype: Any,
    **_: Ignored,
) -> str:
    """start + step * [0, length)."""
    count = g.op.Range(const(0, INT64), scalar0d(g, length, INT64), const(1, INT64))
    scaled = g.op.Mul(count, vector1d(g, step))
    return cast(g, g.op.Add(scaled, vector1d(g, start)), to_onnx_type(dtype), outputs)


@aten("aten.linspace.default")
def linspace(
    g: Any,
    sts: Any,
    outputs: Outputs,
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """A constant, the bounds must be known."""
    if any(isinstance(v, str) for v in (start, end, steps)):
        raise ValueError("linspace needs known bounds and a known number of steps")
    itype = _dtype(dtype, sts)
    values = torch.linspace(start, end, steps, dtype=torch.float64).numpy()
    array = values.astype(to_numpy_type(itype))
    return g.op.Identity(g.make_initializer("", array, allow_empty=True), outputs=outputs)


@aten("aten.eye.default", "aten.eye.m")
def eye(
    g: Any,
    sts: Any,
    outputs: Outputs,
    n: Size,
    m: Size | None = None,
    *,
    dtype: Any = None,
    **_: Ignored,
) -> str:
    """The identity matrix."""
    itype = _dtype(dtype, sts)
    zeros = constant_of_shape(g, [n, n if m is None else m], 0, itype, None)
    return g.op.EyeLike(zeros, dtype=itype, outputs=outputs)


@aten("aten.tril_indices.default", "aten.triu_indices.default")
def triangle_indices(
    g: Any, sts: Any, outputs: Outputs, row: int, col: int, offset: int = 0, **_: Ignored
) -> str:
    """A constant."""
    upper = "triu" in str(sts.node.target)
    fct = torch.triu_indices if upper else torch.tril_indices
    array = fct(row, col, offset).numpy().astype(to_numpy_type(sts.type))
    return g.op.Identity(g.make_initializer("", array, allow_empty=True), outputs=outputs)


def _random(op_type: str) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        size: Sequence[Size],
        *,
        dtype: Any = None,
        **_: Ignored,
    ) -> str:
        itype = _dtype(dtype, sts)
        if all(not isinstance(d, str) for d in size) and len(size):
            return getattr(g.op, op_type)(dtype=itype, shape=list(size), outputs=outputs)
        zeros = constant_of_shape(g, size, 0, itype, None)
        return getattr(g.op, f"{op_type}Like")(zeros, dtype=itype, outputs=outputs)

    return convert


def _random_like(op_type: str) -> Callable[..., str]:
    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, *, dtype: Any = None, **_: Ignored
    ) -> str:
        itype = g.get_type(x) if dtype is None else to_onnx_type(dtype)
        return getattr(g.op, op_type)(x, dtype=itype, outputs=outputs)

    return convert


aten("aten.rand.default")(_random("RandomUniform"))
aten("aten.randn.default")(_random("RandomNormal"))
aten("aten.rand_like.default")(_random_like("RandomUniformLike"))
aten("aten.randn_like.default")(_random_like("RandomNormalLike"))
