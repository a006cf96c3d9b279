"""Functions of Python that torch does not know how to apply to its symbolic numbers."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy import functions

from ..common.types import is_symbolic

_UNTYPED: Any = torch
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
_FUNCTIONS: Any = functions


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
        numbers = all(isinstance(a, _NUMBERS) for a in args)
        if kwargs or len(args) < 2 or not numbers or not any(map(is_symbolic, args)):
            return original(*args, **kwargs)
        return functools.reduce(symbolic, args)

    return call
