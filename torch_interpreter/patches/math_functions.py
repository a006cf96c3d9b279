"""Functions of Python that torch does not know how to apply to its symbolic numbers.

``lru_cache`` needs the hash of its arguments, which a size does not have, and what it keeps from an
export is a tensor without data.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy import functions

from ..common.types import is_symbolic

_UNTYPED: Any = torch
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
_SCALARS = (*_NUMBERS, np.number)
#: the classes of Python's own numbers
PLAIN = frozenset((bool, int, float))
_FUNCTIONS: Any = functions
_Cached: Any = functools._lru_cache_wrapper
#: types of the arguments and results that are still kept: a function that calls itself needs them
_KEPT = frozenset((bool, bytes, float, int, str, type(None)))


def symbolic_function(name: str) -> Callable[[Any], Any]:
    """A function of ``math`` that accepts a symbolic number.

    A graph calls it under the name it has in ``math``.

    :param name: its name in ``math``
    """
    original = getattr(math, name)
    expression = _FUNCTIONS.make_opaque_unary_fn(name)

    def call(x: Any) -> Any:
        if not isinstance(x, torch.SymInt | torch.SymFloat):
            return original(x)
        if proxy_tensor.get_proxy_mode():
            return proxy_tensor.handle_sym_dispatch(call, (x,), {})
        node = _UNTYPED.sym_float(x).node
        hint = None if node.hint is None else original(node.hint)
        return _UNTYPED.SymFloat(SymNode(expression(node.expr), node.shape_env, float, hint))

    call.__module__, call.__name__, call.__qualname__ = "math", name, name
    return call


def symbolic_extremum(name: str) -> Callable[..., Any]:
    """``min`` or ``max`` that accepts any symbolic numbers. torch compares two integers without a
    guard, not two real numbers nor three integers.

    :param name: min or max
    """
    original, symbolic = getattr(builtins, name), getattr(torch, f"sym_{name}")

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if PLAIN.issuperset(map(type, args)):
            return original(*args, **kwargs)
        known = all(isinstance(a, _SCALARS) for a in args)
        if kwargs or len(args) < 2 or not known or not any(map(is_symbolic, args)):
            return original(*args, **kwargs)
        return functools.reduce(symbolic, map(plain_number, args))

    return call


def plain_number(value: Any) -> Any:
    """The ``int`` or the ``float`` of a number of another class, an enumeration or one of numpy,
    any other value as it is.

    :param value: the value

    >>> import numpy as np
    >>> plain_number(np.int64(3)), plain_number(np.float32(0.5)), plain_number("3")
    (3, 0.5, '3')
    """
    if type(value) in PLAIN or not isinstance(value, int | float | np.number):
        return value
    if isinstance(value, np.number):
        return value.item()
    return int(value) if isinstance(value, int) else float(value)


def without_caches(names: Mapping[str, Any]) -> dict[str, Any]:
    """The functions and the methods that keep their results, as functions that keep no tensor and
    no size.

    :param names: the globals of a file, or the attributes of a class

    >>> @functools.lru_cache
    ... def rows(x):
    ...     return len(x)
    >>> without_caches({"rows": rows, "size": 3})["rows"]([1, 2])
    2
    """
    found = {}
    for name, value in list(names.items()):
        if type(value) is _Cached:
            found[name] = _without_cache(value)
        elif type(value) in (staticmethod, classmethod) and type(value.__func__) is _Cached:
            found[name] = type(value)(_without_cache(value.__func__))
    return found


def _without_cache(cached: Any) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    @functools.wraps(cached)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not all(type(v) in _KEPT for v in (*args, *kwargs.values())):
            return cached.__wrapped__(*args, **kwargs)
        key = *((type(v), v) for v in args), *((n, type(v), v) for n, v in kwargs.items())
        if key in kept:
            return kept[key]
        result = cached.__wrapped__(*args, **kwargs)
        if type(result) in _KEPT:
            kept[key] = result
        return result

    known = ("cache_info", "cache_clear", "cache_parameters")
    vars(call).update({name: getattr(cached, name) for name in known})
    return call
