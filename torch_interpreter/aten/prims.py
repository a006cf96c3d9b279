"""The primitives torch decomposes into: the same functions without type promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..common.types import is_integer
from ..writing.graph_writer import GraphWriter
from ..writing.registry import (
    UNKNOWN_OUTPUTS,
    OutputFacts,
    aten,
    aten_table,
    curried,
    find_converter,
)
from ..writing.symbols import (
    Operand,
    Size,
    SymScalar,
    dim_of,
    int_vector,
    shape_tensor,
    vector1d,
)
from . import activation, binary, compare, creation, reduce, unary, view  # noqa: F401, registers
from .operands import common_type, identity, reshape
from .view import permute

# primitive -> operator that computes the same
ALIASES = {
    **{n: f"{n}.default" for n in (*unary.FLOAT_FUNCTIONS, *unary.SAME_TYPE_FUNCTIONS)},
    **{n: f"{n}.default" for n in ("ceil", "floor", "round", "trunc", "rsqrt", "log1p", "expm1")},
    **{n: f"{n}.default" for n in ("log2", "log10", "exp2", "erfc", "isfinite", "sign", "signbit")},
    **{n: f"{n}.Tensor" for n in ("add", "sub", "mul", "remainder", "fmod")},
    **{n: f"{n}.Tensor" for n in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{n: f"{n}.Tensor" for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: f"{n}.default" for n in ("bitwise_not", "maximum", "minimum", "atan2")},
    "pow": "pow.Tensor_Tensor",
    "where": "where.self",
    "cat": "cat.default",
    "clone": "clone.default",
    "full_like": "full_like.default",
    "empty_strided": "empty_strided.default",
    "rev": "flip.default",
}
_NOT_PRIMITIVES = ("relu", "sgn", "sigmoid")

for _name, _target in ALIASES.items():
    _found = find_converter(f"aten.{_target}")
    if _name not in _NOT_PRIMITIVES and _found is not None:
        aten(f"prims.{_name}.default")(_found)


@aten("prims.div.default")
def div(g: GraphWriter, x: Operand, y: Operand) -> str:
    """Division where the quotient of integers is an integer."""
    return binary.div_mode(g, x, y, "trunc" if is_integer(common_type(g, x, y)) else None)


@curried
def _reduction(
    fct: Callable[..., str],
    g: GraphWriter,
    x: str,
    dims: Sequence[int] | None,
    *,
    output_dtype: torch.dtype | None = None,
    **_: Any,
) -> str:
    x = x if output_dtype is None else creation.convert_element_type(g, x, output_dtype)
    return fct(g, x, dims)


_REDUCTIONS = {"prod": reduce.prod, "sum": reduce.sum_, "amax": reduce.amax, "amin": reduce.amin}
aten_table(_reduction, _REDUCTIONS, "prims.{}.default")
aten("prims.view_of.default")(identity)


@aten("prims.var.default")
def var(
    g: GraphWriter, x: str, dims: Sequence[int] | None, correction: float | None = None, **_: Any
) -> str:
    """The variance along some dimensions."""
    return reduce.variance(g, x, dims, correction, False)


@aten("prims.transpose.default")
def transpose(g: GraphWriter, x: str, permutation: Sequence[int]) -> str:
    """Transpose."""
    return permute(g, x, permutation)


aten("prims.collapse_view.default")(view.flatten)
aten("prims.squeeze.default")(view.squeeze_dims)


@aten("prims.reshape.default")
def reshape_to(
    g: GraphWriter, x: str, shape: Sequence[Size], *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """Reshape."""
    return reshape(g, x, shape, expected.shape)


@aten("prims.split_dim.default")
def split_dim(
    g: GraphWriter,
    x: str,
    dim: int,
    outer_length: Size,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Splits one dimension into two, of which the first one is given."""
    found = None if expected.shape is None else expected.shape[dim + 1]
    inner: Size = -1
    if isinstance(found, int):
        inner = found
    elif not isinstance(outer_length, str):
        # -1 could be any number in an empty tensor
        quotient = g.op.Div(vector1d(g, dim_of(g, x, dim)), int_vector([outer_length]))
        inner = SymScalar(quotient)
    return view.unflatten(g, x, dim, (outer_length, inner), expected=expected)


@aten("prims.broadcast_in_dim.default")
def broadcast_in_dim(
    g: GraphWriter, x: str, shape: Sequence[Size], broadcast_dimensions: Sequence[int]
) -> str:
    """Adds dimensions, then expands."""
    missing = [int(i) for i in np.setdiff1d(np.arange(len(shape)), broadcast_dimensions)]
    wide = g.op.UnsqueezeAnyOpset(x, int_vector(missing)) if missing else x
    return g.op.Expand(wide, shape_tensor(g, shape))
