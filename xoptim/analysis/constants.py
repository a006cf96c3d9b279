"""Reads constants and compares them: integers, numbers of any precision, uniform tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.helper as oh

from xbuilder.dims import Dim

from ..authoring.context import RewriteContext
from ..authoring.queries import GraphQueries

Ints = tuple[int, ...]
#: relative error of a constant typed with ten digits in a double precision model
_TYPED_DIGITS = 1e-9
#: smallest number float16 writes with all its digits
_HALF_NORMAL = 2.0**-14
#: more than the relative error of any rounding that is accepted
_WIDEST_ROUNDING = 2.0**-7


def dtype_of(g: RewriteContext, name: str) -> np.dtype:
    """Element type of a result as numpy knows it; refuses if it is not known."""
    return np.dtype(oh.tensor_dtype_to_np_dtype(g.type_of(name)))


#: the type of a dimension that is known
_INTEGER = frozenset({int})


def int_values(g: GraphQueries, name: str) -> Ints | None:
    """Content of a vector of integers, constant or proven, None for any other result."""
    if not name:
        return None
    value = g.facts[name].value
    if value is None:
        array = g.constant_or_none(name)
        if array is None or array.ndim != 1 or array.dtype.kind != "i":
            return None
        return tuple(array.tolist())
    if not isinstance(value, tuple):
        return None
    if _INTEGER.issuperset(map(type, value)):
        return value  # type: ignore[return-value]
    found = [v for v in map(_proven(g), value) if isinstance(v, int)]
    return tuple(found) if len(found) == len(value) else None


def _proven(g: GraphQueries) -> Callable[[Dim], Dim]:
    """A function that returns the integer a dimension is proven to be: a difference, once the
    dimensions of two inputs are known to be equal."""
    constraints = g.get_registered_constraints()
    return constraints.canonical if len(constraints) else lambda dim: dim


def scalar_dim(g: GraphQueries, name: str) -> Dim | None:
    """One integer of shape `()` or `(1,)`, constant or computed from dimensions, None otherwise."""
    value = g.value_as_shape(name) if name else None
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else None
    return value


def scalar_index(g: GraphQueries, name: str) -> int | None:
    """Value of one integer, constant or proven, of shape `()` or `(1,)`, None otherwise."""
    value = scalar_dim(g, name)
    found = None if value is None else _proven(g)(value)
    return found if isinstance(found, int) else None


def is_filled_with(g: GraphQueries, name: str, value: float) -> bool:
    """Whether a result is a constant whose elements all are *value*. An empty one is not.

    :param name: a result
    :param value: the expected value
    """
    found = g.graph.constants.uniform_value(name)
    return found is not None and bool(found == value)


def is_cheap(g: GraphQueries, name: str) -> bool:
    """Whether a constant is small and in the model, so that writing it again costs nothing.

    A rewrite only touches a weight of another file, or of more than a megabyte, if it removes
    something a runtime would compute.
    """
    return g.graph.constants.is_cheap(name)


def cheap_value(g: GraphQueries, name: str) -> np.ndarray | None:
    """Value of a constant that :func:`is_cheap`, None for any other result."""
    return g.constant_or_none(name) if is_cheap(g, name) else None


def scalar_value(g: GraphQueries, name: str) -> np.ndarray | None:
    """Value of a constant of one element, of any rank, None for any other result."""
    shape = g.get_constant_shape(name)
    one = shape is not None and all(d == 1 for d in shape)
    return g.constant_or_none(name) if one else None


def scalar_constant(g: GraphQueries, name: str, rank: int | None) -> np.ndarray | None:
    """Value of a constant of one element that does not change a shape by broadcasting.

    :param name: the constant
    :param rank: rank of the other operand, None if unknown
    :return: None if it is not such a constant
    """
    value = scalar_value(g, name)
    if value is None or (value.ndim and (rank is None or value.ndim > rank)):
        return None
    return value


def is_number(g: GraphQueries, name: str, value: float, rank: int | None) -> bool:
    """Whether a result is a scalar constant with this value, see :func:`same_numbers`."""
    found = scalar_constant(g, name, rank)
    return found is not None and same_numbers(found, value)


def same_numbers(found: np.ndarray, expected: np.ndarray | float) -> bool:
    """Whether float constants are the expected ones, up to the precision of their type.

    Numbers that float16 represents exactly (0, 0.5, 1, 3) must be equal. Others may have been
    rounded: to the type of the constant, or to a narrower type before they were written in it.

    :param found: constants of a model
    :param expected: expected values, same number of elements

    ::

        same_numbers(np.array(1.4140625, dtype=np.float32), 2**0.5)  # True
    """
    a = np.asarray(found).astype(np.float64).ravel()
    b = np.asarray(expected).astype(np.float64).ravel()
    if a.shape != b.shape or (a.size == 1 and _is_far(a.item(), b.item())):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        half = b.astype(np.float16).astype(np.float64)
        close = np.abs(a - b) <= _precision(np.asarray(found).dtype) * np.abs(b)
        rounded = [half, b.astype(np.float32).astype(np.float64), _bfloat16(b)]
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    accepted = close | np.logical_or.reduce([a == r for r in rounded])
    return bool((same | (accepted & (half != b) & np.isfinite(a) & np.isfinite(b))).all())


def _is_far(a: float, b: float) -> bool:
    """Whether two numbers differ by more than any rounding. It is a quick test."""
    return abs(b) >= _HALF_NORMAL and abs(a - b) > _WIDEST_ROUNDING * abs(b)


def _precision(dtype: np.dtype) -> float:
    """Relative error a constant of a type may have."""
    if dtype == np.float64:
        return _TYPED_DIGITS
    if dtype == np.float32:
        return 2 * float(np.finfo(np.float32).eps)
    return float(np.finfo(np.float16).eps) if dtype == np.float16 else 2.0**-8


def _bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounds to bfloat16, half to even, without a bfloat16 type."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)
