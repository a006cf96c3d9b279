"""Functions that torch does not know how to apply to its symbolic numbers: those of ``math``, and
``torch.div`` of sizes."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy import functions

from .attributes import patched

_UNTYPED: Any = torch
_FUNCTIONS: Any = functions
_ARITHMETIC = [f"__{side}{name}__" for name in ("add", "sub", "mul") for side in ("", "r")]


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


def _content(value: Any) -> Any:
    """A size, or the one that a tensor without dimension is known to hold; None otherwise."""
    if isinstance(value, FakeTensor):
        return value.item_memo
    return value if isinstance(value, int | torch.SymInt) else None


def _remembered(name: str) -> Callable[..., Any]:
    """A method of tensors whose result holds a size when its operands do."""
    original, on_sizes = getattr(torch.Tensor, name), getattr(torch.SymInt, name)

    @functools.wraps(original)
    def call(x: Any, y: Any) -> Any:
        result = original(x, y)
        if isinstance(x, FakeTensor) and isinstance(result, FakeTensor):
            a, b = x.item_memo, _content(y)
            if isinstance(a, torch.SymInt) and b is not None and result.ndim == 0:
                result.item_memo = on_sizes(a, b)
        return result

    return call


@contextlib.contextmanager
def known_quotients() -> Iterator[None]:
    """``torch.div(n, 4, rounding_mode="floor")`` of a size is a tensor that holds ``n // 4`` in
    this context, and so is a sum with it. Otherwise torch does not know which size it is.

    >>> class Blocks(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.view(torch.div(x.shape[0], 4, rounding_mode="trunc"), 4)
    >>> shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    >>> with known_quotients():
    ...     found = torch.export.export(Blocks(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> found.module()(torch.ones(12)).shape
    torch.Size([3, 4])
    """
    original = torch.div

    @functools.wraps(original)
    def div(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(x, y, *args, **kwargs)
        is_size = isinstance(x, torch.SymInt) and isinstance(y, int | torch.SymInt)
        if is_size and isinstance(result, FakeTensor) and kwargs.get("rounding_mode"):
            result.item_memo = x // y
        return result

    methods = {name: _remembered(name) for name in _ARITHMETIC}
    with patched(torch, {"div": div}), patched(torch.Tensor, methods):
        yield
