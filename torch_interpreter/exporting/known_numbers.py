"""Knows the content of small tensors that are computed from sizes and constants only.

A model computes how much it pads in tensors without dimension: ``torch.ceil(n / stride)``, where
``n`` is a size and ``stride`` a buffer. torch forgets that it comes from a size, so ``F.pad`` has
an unknown size and ``if length <= padding`` depends on the data. Here, a tensor keeps the
expression of each element: one whose content is asked for is an expression of sizes.

Elements are fractions of integers, so that a quotient that is rounded is exact. Those torch rounds
to a type, such as ``n * 0.1``, are not known.
"""

from __future__ import annotations

import contextlib
import fractions
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.symbolic_shapes import statically_known_false, statically_known_true

from ..patches.attributes import patched

#: largest number of elements, largest denominator of a number of Python
_ELEMENTS, _DENOMINATOR = 16, 2**16
_EXACT = (torch.int64, torch.int32, torch.float32, torch.float64, torch.bool)
_UNTYPED: Any = torch
_OPTIONS = ("alpha", "rounding_mode", "min", "max")
_ATTRIBUTE = "_known_numbers"


class _UnknownError(Exception):
    """A number is not known."""


def _is_one(value: Any) -> bool:
    return isinstance(value, int) and value == 1


@dataclass(frozen=True, slots=True)
class _Fraction:
    """A quotient of two integers or expressions, the second one is positive."""

    over: Any
    under: Any = 1

    def __add__(self, other: _Fraction) -> _Fraction:
        if self.under is other.under:
            return _Fraction(self.over + other.over, self.under)
        over = self.over * other.under + other.over * self.under
        return _Fraction(over, self.under * other.under)

    def __neg__(self) -> _Fraction:
        return _Fraction(-self.over, self.under)

    def __sub__(self, other: _Fraction) -> _Fraction:
        return self + -other

    def __mul__(self, other: _Fraction) -> _Fraction:
        return _Fraction(self.over * other.over, self.under * other.under)

    def __truediv__(self, other: _Fraction) -> _Fraction:
        if statically_known_true(other.over < 0):
            return -self / -other
        if not statically_known_true(other.over > 0):
            raise _UnknownError
        return _Fraction(self.over * other.under, self.under * other.over)

    def __floordiv__(self, other: _Fraction) -> _Fraction:
        return (self / other).floor()

    def __mod__(self, other: _Fraction) -> _Fraction:
        return self - other * (self // other)

    def __lt__(self, other: _Fraction) -> Any:
        return self.over * other.under < other.over * self.under

    def __le__(self, other: _Fraction) -> Any:
        return self.over * other.under <= other.over * self.under

    def __gt__(self, other: _Fraction) -> Any:
        return other < self

    def __ge__(self, other: _Fraction) -> Any:
        return other <= self

    def equals(self, other: _Fraction) -> Any:
        """Whether two numbers are equal, an expression."""
        return self.over * other.under == other.over * self.under

    def floor(self) -> _Fraction:
        """The largest integer below."""
        return self if _is_one(self.under) else _Fraction(self.over // self.under)

    def ceil(self) -> _Fraction:
        """The smallest integer above."""
        return -(-self).floor()

    def trunc(self) -> _Fraction:
        """The integer towards 0; the sign has to be known."""
        if _is_one(self.under) or statically_known_true(self.over >= 0):
            return self.floor()
        if not statically_known_true(self.over <= 0):
            raise _UnknownError
        return self.ceil()

    def larger(self, other: _Fraction) -> _Fraction:
        """The maximum of two numbers."""
        a, b = self.over * other.under, other.over * self.under
        return _Fraction(_UNTYPED.sym_max(a, b), self.under * other.under)

    def smaller(self, other: _Fraction) -> _Fraction:
        """The minimum of two numbers."""
        return -(-self).larger(-other)


def _element(value: Any) -> Any:
    """A number, or a condition as it is."""
    if isinstance(value, bool | torch.SymBool):
        return _decided(value)
    if isinstance(value, _Fraction):
        return value
    if isinstance(value, float) and np.isfinite(value):
        exact = fractions.Fraction(value)
        if exact.denominator <= _DENOMINATOR:
            return _Fraction(exact.numerator, exact.denominator)
    if not isinstance(value, int | torch.SymInt):
        raise _UnknownError
    return _Fraction(value)


def _decided(condition: Any) -> Any:
    """A condition, True or False when it is known."""
    if statically_known_true(condition):
        return True
    return False if statically_known_false(condition) else condition


def _number(value: Any) -> _Fraction:
    """A number, 0 or 1 for a condition."""
    value = _element(value)
    if isinstance(value, _Fraction):
        return value
    return _Fraction(int(value) if isinstance(value, bool) else _UNTYPED.sym_ite(value, 1, 0))


def _array(values: Any) -> Any:
    """Numbers and conditions in an array."""
    if isinstance(values, np.ndarray):
        return values
    shape = (len(values),) if isinstance(values, list) else ()
    found = np.empty(shape, dtype=object)
    for i, value in enumerate(values if shape else [values]):
        found[i if shape else ()] = _element(value)
    return found


def _each(function: Callable[..., Any], *arrays: Any) -> Any:
    """Applies a function to the elements of arrays."""
    given = [_array(a) for a in arrays]
    return _array(np.frompyfunc(function, len(given), 1)(*given))


def _on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays from one of numbers."""
    return functools.partial(_each, lambda *args: function(*map(_number, args)))


def _difference(a: Any, b: Any) -> Any:
    """a != b; a condition differs from 0 when it holds."""
    if not isinstance(a, _Fraction) and isinstance(b, _Fraction) and _is_one(b.over + 1):
        return a
    first, second = _number(a), _number(b)
    return first.over * second.under != second.over * first.under


def _added(sign: int) -> Callable[..., Any]:
    add = _on_numbers(operator.add if sign > 0 else operator.sub)

    def call(a: Any, b: Any, alpha: Any = 1) -> Any:
        return add(a, b if _is_one(alpha) else _on_numbers(operator.mul)(b, alpha))

    return call


def _quotient(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    found = _on_numbers(operator.truediv)(a, b)
    return _each(getattr(_Fraction, rounding_mode), found) if rounding_mode else found


def _clamped(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else _on_numbers(_Fraction.larger)(x, min)
    return x if max is None else _on_numbers(_Fraction.smaller)(x, max)


def _reduced(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        if keepdim or (x.ndim > 1 and dim is not None):
            raise _UnknownError
        return _array(functools.reduce(function, map(_number, x.ravel()), _Fraction(first)))

    return call


def _filled(shape: Any, value: Any, **_: Any) -> Any:
    if not all(isinstance(d, int) for d in shape) or np.prod(shape) > _ELEMENTS:
        raise _UnknownError
    return np.broadcast_to(_array(value), tuple(shape))


def _range(*bounds: Any, **_: Any) -> Any:
    if not all(type(b) is int for b in bounds) or len(found := range(*bounds)) > _ELEMENTS:
        raise _UnknownError
    return _array(list(found))


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, dim: int, **_: Any) -> Any:
        return np.frompyfunc(function, 2, 1).accumulate(_each(_number, x), axis=dim)

    return call


def _largest(x: Any) -> Any:
    return _array(functools.reduce(_Fraction.larger, map(_number, x.ravel())))


def _part(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return _array(x)


def _reshaped(x: Any, shape: Any) -> Any:
    return x.reshape(shape)


#: operator -> its result from arrays of numbers
_RULES: dict[str, Callable[..., Any]] = {
    "add": _added(1),
    "sub": _added(-1),
    "rsub": lambda a, b, alpha=1: _added(-1)(b, a, alpha),
    "mul": _on_numbers(operator.mul),
    "div": _quotient,
    "floor_divide": _on_numbers(operator.floordiv),
    "remainder": _on_numbers(operator.mod),
    "neg": _on_numbers(operator.neg),
    "ceil": _on_numbers(_Fraction.ceil),
    "floor": _on_numbers(_Fraction.floor),
    "trunc": _on_numbers(_Fraction.trunc),
    "maximum": _on_numbers(_Fraction.larger),
    "minimum": _on_numbers(_Fraction.smaller),
    "clamp": _clamped,
    "clamp_min": _clamped,
    "clamp_max": lambda x, max: _clamped(x, None, max),
    **{name: _on_numbers(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
    "eq": _on_numbers(_Fraction.equals),
    "ne": functools.partial(_each, _difference),
    "sum": _reduced(operator.add, 0),
    "prod": _reduced(operator.mul, 1),
    **dict.fromkeys(("scalar_tensor", "to", "_to_copy", "clone", "detach", "alias"), _same),
    "lift_fresh": _same,
    "max": _largest,
    "min": lambda x: _each(operator.neg, _largest(_on_numbers(operator.neg)(x))),
    "cumsum": _running(operator.add),
    "cumprod": _running(operator.mul),
    "abs": _on_numbers(lambda v: v.larger(-v)),
    "full": _filled,
    "zeros": lambda shape: _filled(shape, 0),
    "ones": lambda shape: _filled(shape, 1),
    "arange": _range,
    "flip": np.flip,
    "select": lambda x, dim, index: _array(np.take(x, index, dim)),
    "slice": _part,
    "unbind": lambda x, dim=0: [_array(v) for v in np.moveaxis(x, dim, 0)],
    "stack": np.stack,
    "cat": np.concatenate,
    "view": _reshaped,
    "reshape": _reshaped,
    "unsqueeze": lambda x, dim: np.expand_dims(x, dim),
}


def _known(value: torch.Tensor) -> Any:
    """The elements of a tensor."""
    if not isinstance(value, FakeTensor):
        return _content(value)
    array, version = getattr(value, _ATTRIBUTE, (None, None))
    if array is not None and version == value._version:
        return array
    if value.constant is not None:
        return _content(value.constant)
    if value.ndim == 0 and isinstance(value.item_memo, torch.SymInt):
        return _array(value.item_memo)
    raise _UnknownError


def _content(value: torch.Tensor) -> Any:
    """The elements of a constant, ``torch.tensor([4, 4])``."""
    if type(value) is not torch.Tensor or value.numel() > _ELEMENTS or value.is_meta:
        raise _UnknownError
    if torch._C._functorch.is_functorch_wrapped_tensor(value):  # vmap, grad: it has no storage
        raise _UnknownError
    with unset_fake_temporarily():
        flat = value.reshape(-1).tolist()
    return _array(flat).reshape(tuple(value.shape))


def _as_type(value: Any, dtype: torch.dtype) -> Any:
    """An element of a tensor of a type."""
    if dtype == torch.bool:
        return _difference(value, _Fraction(0))
    return _number(value) if dtype.is_floating_point else _number(value).trunc()


def _plain(value: Any) -> Any:
    """An expression, or its value when it has no size."""
    constant = value.node.maybe_as_int() if isinstance(value, torch.SymInt) else value
    return value if constant is None else constant


def _remember(tensor: Any, array: Any) -> None:
    """Keeps the elements of a tensor; torch asks for the content of a tensor of one element."""
    if not isinstance(tensor, FakeTensor) or tensor.dtype not in _EXACT:
        return
    if array.size > _ELEMENTS or tuple(tensor.shape) != array.shape:
        return
    array = _each(lambda v: _as_type(v, tensor.dtype), array)
    setattr(tensor, _ATTRIBUTE, (array, tensor._version))
    if array.size == 1 and not tensor.dtype.is_floating_point:
        value = array.item()
        tensor.item_memo = _plain(value.over) if isinstance(value, _Fraction) else value


@contextlib.contextmanager
def known_numbers() -> Iterator[None]:
    """Keeps the expressions of small tensors that are computed from sizes, in this context.

    >>> class Blocks(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.view(torch.div(x.shape[0], 4, rounding_mode="trunc"), 4)
    >>> shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    >>> with known_numbers():
    ...     found = torch.export.export(Blocks(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> found.module()(torch.ones(12)).shape
    torch.Size([3, 4])
    """
    original: Any = proxy_tensor.proxy_call

    @functools.wraps(original)
    def call(mode: Any, operator: Any, pre_dispatch: bool, args: Any, kwargs: Any) -> Any:
        rule = _RULES.get(operator._schema.name.removeprefix("aten::").removesuffix("_"))
        given = None
        if rule is not None:
            with contextlib.suppress(_UnknownError):
                given = torch.utils._pytree.tree_map_only(torch.Tensor, _known, args)
        results = original(mode, operator, pre_dispatch, args, kwargs)
        if rule is not None and given is not None:
            options = {k: kwargs[k] for k in _OPTIONS if k in kwargs}
            # TypeError: an overload of another form, such as ``sum`` of some dimensions
            with contextlib.suppress(_UnknownError, TypeError), mode:
                found = rule(*given, **options)
                for tensor, array in zip(
                    results if isinstance(found, list) else [results],
                    found if isinstance(found, list) else [found],
                    strict=True,
                ):
                    _remember(tensor, array)
        return results

    with patched(proxy_tensor, {"proxy_call": call}):
        yield
