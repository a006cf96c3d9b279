"""Removes the dynamic dimensions that are 1 in the arguments, as ``squeeze`` does in torch.

torch.export keeps such a dimension: the result has not the rank it has in torch, on the very
arguments of the export. Here, ``squeeze`` becomes an operator of ours that removes it; the ONNX
model refuses another size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .attributes import patched

_UNTYPED: Any = torch.library
_LIBRARY: Any = _UNTYPED.Library("torch_interpreter", "FRAGMENT")
_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (torch, "squeeze"),
    (torch.Tensor, "squeeze"),
    (torch, "squeeze_copy"),
)


def _without(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """The shape of the result, for fake tensors."""
    return x.new_empty([d for i, d in enumerate(x.shape) if i not in dims])


def _squeezed(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    return x.squeeze(tuple(dims)).clone()


_LIBRARY.define("squeeze(Tensor x, int[] dims) -> Tensor")
_LIBRARY.impl("squeeze", _squeezed, "CompositeExplicitAutograd")
_UNTYPED.register_fake("torch_interpreter::squeeze", _without, lib=_LIBRARY)


def _is_one(size: Any) -> bool:
    """Whether a dynamic dimension is 1 in the arguments."""
    return isinstance(size, torch.SymInt) and size.node.hint == 1 and not size.node.expr.is_number


def _kept(original: Callable[..., Any]) -> Callable[..., Any]:
    def squeeze(x: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as torch, but for dynamic dimensions that are 1 in the arguments."""
        if not isinstance(x, torch.Tensor) or not any(map(_is_one, x.shape)):
            return original(x, *args, **kwargs)
        asked = kwargs.get("dim", args[0] if len(args) == 1 else args or None)
        dims = range(x.ndim) if asked is None else [asked] if isinstance(asked, int) else asked
        places = sorted(d % x.ndim for d in dims)
        symbolic = [d for d in places if _is_one(x.shape[d])]
        static = [d for d in places if d not in symbolic and x.shape[d] == 1]
        if symbolic:
            x = torch.ops.torch_interpreter.squeeze(x, symbolic)
        before = [d - sum(s < d for s in symbolic) for d in static]
        return original(x, tuple(before)) if before else x

    return squeeze


@contextlib.contextmanager
def remove_dynamic_ones() -> Iterator[None]:
    """Makes ``squeeze`` remove the dynamic dimensions equal to 1 in this context."""
    with contextlib.ExitStack() as stack:
        for owner, name in _FUNCTIONS:
            stack.enter_context(patched(owner, {name: _kept(getattr(owner, name))}))
        yield
