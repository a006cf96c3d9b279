"""The primitives torch decomposes everything into: same functions, without promotion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..registry import aten, find_converter
from ..symbols import int_vector, shape_tensor
from ..types import is_integer
from . import activation, binary, compare, creation, reduce, unary, view
from .operands import Outputs, common_type, identity, reshape
from .view import Size, permute, result_shape

# primitive: operator doing the same thing
ALIASES = {
    **{n: f"{n}.default" for n in (*unary.FLOAT_FUNCTIONS, *unary.SAME_TYPE_FUNCTIONS)},
    **{n: f"{n}.default" for n in ("ceil", "floor", "round", "trunc", "rsqrt", "log1p", "expm1")},
    **{n: f"{n}.default" for n in ("log2", "log10", "exp2", "erfc", "isfinite", "signbit")},
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
# the families are imported so that the operators above are registered
FAMILIES = (activation, binary, compare, creation, reduce, unary, view)

for _name, _target in ALIASES.items():
    _found = find_converter(f"aten.{_target}")
    if _name not in _NOT_PRIMITIVES and _found is not None:
        aten(f"prims.{_name}.default")(_found)


@aten("prims.div.default")
def div(g: Any, sts: Any, outputs: Outputs, x: Any, y: Any) -> str:
    """The division of integers is an integer."""
    return binary.div_mode(g, sts, outputs, x, y, "trunc" if _integers(g, x, y) else None)


def _integers(g: Any, *operands: Any) -> bool:
    return is_integer(common_type(g, *operands))


def _reduction(name: str) -> Any:
    fct = find_converter(name)

    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, dims: Sequence[int] | None, **kwargs: Any
    ) -> str:
        if fct is None:
            raise ValueError(f"{name} has no converter")
        dtype = kwargs.get("output_dtype")
        x = x if dtype is None else creation.convert_element_type(g, None, None, x, dtype)
        return fct(g, sts, outputs, x, dims)

    return convert


aten("prims.prod.default")(_reduction("aten.prod.dim_int"))
aten("prims.sum.default")(_reduction("aten.sum.dim_IntList"))
aten("prims.amax.default")(_reduction("aten.amax.default"))
aten("prims.amin.default")(_reduction("aten.amin.default"))
aten("prims.view_of.default")(identity)


@aten("prims.var.default")
def var(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    dims: Sequence[int] | None,
    correction: float | None = None,
    **_: Any,
) -> str:
    """The variance along some dimensions."""
    return reduce.variance(g, x, dims, correction, False)


@aten("prims.transpose.default")
def transpose(g: Any, sts: Any, outputs: Outputs, x: str, permutation: Sequence[int]) -> str:
    """Transpose."""
    return permute(g, sts, outputs, x, permutation)


@aten(
    "prims.reshape.default",
    "prims.collapse_view.default",
    "prims.split_dim.default",
    "prims.squeeze.default",
)
def reshape_to_result(g: Any, sts: Any, outputs: Outputs, x: str, *args: Any) -> str:
    """The shape torch computed is the one to reach: the elements stay in order."""
    shape = result_shape(sts)
    known = shape is not None and sum(isinstance(d, str) for d in shape) <= 1
    if not known:
        raise ValueError("more than one dynamic dimension, decompose the operator less")
    dims = [-1 if isinstance(d, str) else d for d in shape or ()]
    return reshape(g, x, dims, outputs, shape)


@aten("prims.broadcast_in_dim.default")
def broadcast_in_dim(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    shape: Sequence[Size],
    broadcast_dimensions: Sequence[int],
) -> str:
    """Adds dimensions, then Expand."""
    missing = [int(i) for i in np.setdiff1d(np.arange(len(shape)), broadcast_dimensions)]
    wide = g.op.UnsqueezeAnyOpset(x, int_vector(missing)) if missing else x
    return g.op.Expand(wide, shape_tensor(g, shape), outputs=outputs)
