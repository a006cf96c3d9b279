"""Complex tensors: converters of operators that move, copy or fill elements.

They call the converters of real tensors on both parts at once with one more axis, or on the real
parts, then on the imaginary ones.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..writing.complex_names import COMPLEX, Complex
from ..writing.graph_writer import GraphWriter, constant
from ..writing.registry import (
    UNKNOWN_OUTPUTS,
    Converter,
    OutputFacts,
    aten,
    aten_table,
    call_converter,
    curried,
)
from ..writing.symbols import SymScalar, int_vector
from . import (  # noqa: F401, converters called below
    compare,
    creation,
    index,
    pixel,
    rearrange,
    reduce,
    resize,
    scatter,
    split,
    view,
)
from .complex_tensors import as_complex, joined, part, real_converter
from .operands import axis_of, const, identity, shape_tensor_of

_SAME = """
    alias.default alias_copy.default detach.default detach_.default lift_fresh_copy.default
    resolve_conj.default resolve_neg.default view_as_complex.default view_as_complex_copy.default
    view_as_real.default view_as_real_copy.default
"""
aten(*(f"{COMPLEX}aten.{name}" for name in _SAME.split()))(identity)

#: operators whose values are tensors only
_TENSORS = """
    broadcast_tensors.default broadcast_to.default diagonal.default diagonal_copy.default
    expand_as.default expand_copy.default gather.default masked_select.default meshgrid.default
    meshgrid.indexing movedim.int movedim.intlist narrow.default narrow_copy.default
    permute_copy.default pixel_shuffle.default pixel_unshuffle.default ravel.default
    repeat_interleave.self_int reshape_as.default roll.default slice_copy.Tensor select_copy.int
    split.sizes split_copy.Tensor t.default take.default tensor_split.indices
    tensor_split.sections tile.default tril.default triu.default unbind_copy.int unflatten.int
    unsqueeze_copy.default view_as.default view_copy.default
"""
#: operator -> its parameters that are values; a real value has no imaginary part. Complex tensors
#: always are values; other arguments (indices, masks, sizes) are the same for both parts
_VALUES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TENSORS.split(), ()),
    "_unsafe_index.Tensor": (),
    "_unsafe_index_put.default": ("values",),
    "as_strided_scatter.default": ("source",),
    "constant_pad_nd.default": ("value",),
    "copy.default": ("source",),
    "diagonal_scatter.default": ("source",),
    "fill.Scalar": ("value",),
    "fill.Tensor": ("value",),
    "full.default": ("fill_value",),
    "full_like.default": ("fill_value",),
    "index_add.default": ("source",),
    "index_copy.default": ("source",),
    "index_fill.int_Scalar": ("value",),
    "index_fill.int_Tensor": ("value",),
    "index_put.default": ("values",),
    "linspace.default": ("start", "end"),
    "masked_fill.Scalar": ("value",),
    "masked_fill.Tensor": ("value",),
    "masked_scatter.default": ("source",),
    "new_full.default": ("fill_value",),
    "put.default": ("source",),
    "scalar_tensor.default": ("value",),
    "scatter.src": ("src",),
    "scatter.value": ("value",),
    "scatter_add.default": ("src",),
    "select_scatter.default": ("src",),
    "slice_scatter.default": ("src",),
    "where.self": ("x", "y"),
    "where.Scalar": ("x", "y"),
    "where.ScalarOther": ("x", "y"),
    "where.ScalarSelf": ("x", "y"),
}
#: operators whose results are real
_REAL = (
    *(f"{kind}_like.default" for kind in ("zeros", "ones", "empty")),
    *(f"new_{kind}.default" for kind in ("zeros", "ones", "empty", "empty_strided")),
    "empty.memory_format",
    "empty_permuted.default",
    "empty_strided.default",
    "eye.default",
    "eye.m",
    "ones.default",
    "zero.default",
    "zeros.default",
)


def _of_part(g: GraphWriter, which: int, x: Any, is_value: bool) -> Any:
    """The argument to pass when one part is computed, 0 or 1."""
    if isinstance(x, list | tuple):
        return [_of_part(g, which, v, is_value) for v in x]
    if isinstance(x, Complex):
        return part(g, x, which)
    if isinstance(x, torch.dtype):
        return x.to_real() if x.is_complex else x
    if not is_value:
        return x
    if isinstance(x, complex | float | int):
        return complex(x).imag if which else complex(x).real
    return _nothing_like(g, x) if which and isinstance(x, str) else x


def _nothing_like(g: GraphWriter, x: str) -> Any:
    """Zeros, of the shape of a tensor."""
    if isinstance(x, SymScalar):
        return 0.0
    zero = const(0, g.get_type(x))
    return constant(g, zero) if g.get_rank(x) == 0 else g.op.Expand(zero, shape_tensor_of(g, x))


def _real_facts(expected: OutputFacts) -> OutputFacts:
    """The facts known about each part of the results."""
    shapes = [None if shape is None else shape[:-1] for shape in expected.shapes]
    return dataclasses.replace(expected, shapes=shapes)


def _joined(g: GraphWriter, real: Any, imaginary: Any) -> Any:
    if isinstance(real, list | tuple):
        pairs = zip(real, imaginary, strict=True)
        return [_joined(g, *pair) for pair in pairs]
    return joined(g, real, imaginary)


@curried
def _each_part(
    row: tuple[str, tuple[str, ...]],
    g: GraphWriter,
    *args: Any,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **kwargs: Any,
) -> Any:
    """A converter of complex tensors that calls the one of real tensors twice."""
    name, values = row
    real = real_converter(name)
    signature = inspect.signature(real)
    facts = _real_facts(expected)
    results = []
    for which in range(2):
        bound = signature.bind(g, *args, **kwargs)
        for key, value in bound.arguments.items():
            if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
                changed: Any = {k: _of_part(g, which, v, k in values) for k, v in value.items()}
            else:
                changed = value if key == "g" else _of_part(g, which, value, key in values)
            bound.arguments[key] = changed
        results.append(call_converter(real, g, facts, bound.args[1:], bound.kwargs))
    return _joined(g, *results)


@aten("complex.aten.as_strided.default", "complex.aten.as_strided_copy.default")
def as_strided(g: GraphWriter, x: str, *args: Any, **kwargs: Any) -> Any:
    """as_strided of both parts; the storage of a real tensor is read as pairs of neighbours."""
    if not isinstance(x, Complex):
        x = Complex(g.op.Reshape(x, int_vector([-1, 2])))
    return _each_part(("as_strided.default", ()))(g, x, *args, **kwargs)


@curried
def _only_real(
    name: str, g: GraphWriter, *args: Any, expected: OutputFacts = UNKNOWN_OUTPUTS, **kwargs: Any
) -> str:
    """A converter whose results are real parts, the imaginary ones are zeros."""
    real = real_converter(name)
    given = [_of_part(g, 0, a, False) for a in args]
    named = {k: _of_part(g, 0, v, False) for k, v in kwargs.items()}
    made = call_converter(real, g, _real_facts(expected), given, named)
    return joined(g, made, _nothing_like(g, made))


#: converter of real tensors -> its parameters that are axes
_AXES = {
    "cat.default": ("dim",),
    "chunk.default": ("dim",),
    "cumsum.default": ("dim",),
    "flatten.using_ints": ("start_dim", "end_dim"),
    "flip.default": ("dims",),
    "index.Tensor": (),
    "index_select.default": ("dim",),
    "mean.default": ("dim",),
    "mean.dim": ("dim",),
    "select.int": ("dim",),
    "slice.Tensor": ("dim",),
    "split.Tensor": ("dim",),
    "split_with_sizes.default": ("dim",),
    "squeeze.default": (),
    "squeeze.dim": ("dim",),
    "squeeze.dims": ("dim",),
    "stack.default": ("dim",),
    "sum.default": ("dim",),
    "sum.dim_IntList": ("dim",),
    "transpose.int": ("dim0", "dim1"),
    "unbind.int": ("dim",),
    "unsqueeze.default": ("dim",),
}
#: converter of real tensors -> its parameter with one value for each dimension, and the value
#: for the dimension of the parts
_SIZES = {
    "_unsafe_view.default": ("size", 2),
    "expand.default": ("size", 2),
    "repeat.default": ("repeats", 1),
    "reshape.default": ("size", 2),
    "view.default": ("size", 2),
}


#: an empty list of axes means none of them, not all
_NO_AXES = ("flip.default", "squeeze.dims")


def _shifted(axes: int | Sequence[int]) -> int | list[int]:
    """The axes in the tensor that holds both parts; negative ones skip the axis of the parts."""
    if isinstance(axes, int):
        return axes - 1 if axes < 0 else axes
    return [a - 1 if a < 0 else a for a in axes]


@curried
def _on_parts(
    name: str,
    change: Callable[[dict[str, Any]], None],
    g: GraphWriter,
    *args: Any,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
    **kwargs: Any,
) -> Any:
    """A converter calling the one of real tensors on both parts, with other arguments.

    The only axis of a scalar would be the one of the parts.
    """
    real, on_scalar = real_converter(name), _each_part((name, ()))
    signature = inspect.signature(real)
    if isinstance(args[0], str) and g.get_rank(args[0]) == 1:
        return on_scalar(g, *args, expected=expected, **kwargs)
    bound = signature.bind(g, *args, **kwargs)
    bound.apply_defaults()
    if isinstance(bound.arguments.get("dtype"), torch.dtype):
        bound.arguments["dtype"] = bound.arguments["dtype"].to_real()
        bound.arguments["x"] = as_complex(g, bound.arguments["x"], expected.type)
    change(bound.arguments)
    if "expected" in signature.parameters:
        bound.arguments["expected"] = expected
    return real(*bound.args, **bound.kwargs)


def _same_axes(row: tuple[str, tuple[str, ...]]) -> Converter:
    name, parameters = row

    def change(arguments: dict[str, Any]) -> None:
        for parameter in parameters:
            axes = arguments[parameter]
            if axes is None or (axes == [] and name not in _NO_AXES):
                axes = list(range(arguments["g"].get_rank(arguments["x"]) - 1))
            arguments[parameter] = _shifted(axes)

    return _on_parts(name, change)


def _same_sizes(row: tuple[str, tuple[str, int]]) -> Converter:
    name, (parameter, size) = row

    def change(arguments: dict[str, Any]) -> None:
        arguments[parameter] = [*arguments[parameter], size]

    return _on_parts(name, change)


@aten(f"{COMPLEX}aten.permute.default")
def permute(g: GraphWriter, x: str, dims: Sequence[int]) -> str:
    """Transpose, both parts stay together."""
    last = g.get_rank(x) - 1
    return g.op.Transpose(x, perm=[*(axis_of(d, last) for d in dims), last])


aten_table(_same_axes, {k: (k, v) for k, v in _AXES.items()}, f"{COMPLEX}aten.{{}}")
aten_table(_same_sizes, {k: (k, v) for k, v in _SIZES.items()}, f"{COMPLEX}aten.{{}}")
aten_table(_each_part, {k: (k, v) for k, v in _VALUES.items()}, f"{COMPLEX}aten.{{}}")
aten_table(_only_real, {k: k for k in _REAL}, f"{COMPLEX}aten.{{}}")
