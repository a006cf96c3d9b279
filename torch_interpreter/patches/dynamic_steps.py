"""Replaces functions of torch that need an integer where a model gives a dynamic dimension.

torch.export makes that dimension a constant, in ``torch.linspace(-1, 1, x.shape[1])`` or when
``affine_grid`` reads the size of a picture. While a model is exported, both functions count
positions with ``torch.arange``, which takes any dimension. Known numbers of steps are unchanged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

#: the functions that are replaced; modules look them up in torch when they call them
_NAMES = ("linspace", "affine_grid_generator")
_BOUNDS = ("start", "end", "steps")
_UNTYPED: Any = torch
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def _linspace(start: Any, end: Any, steps: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Computes points as torch does, the first half from the start, the rest from the end."""
    position = torch.arange(steps, dtype=dtype, device=device)
    last = steps - 1
    step = (end - start) / _UNTYPED.sym_max(last, 1)
    half = _UNTYPED.sym_max(steps // 2, 1)
    return torch.where(position < half, start + position * step, end - (last - position) * step)


def _coordinates(size: Any, align_corners: bool, like: torch.Tensor) -> Any:
    """Coordinates between -1 and 1, centred at 0. Doubled positions count from the centre."""
    twice = 2 * torch.arange(size, dtype=like.dtype, device=like.device) - (size - 1)
    return twice / (_UNTYPED.sym_max(size - 1, 1) if align_corners else size)


def _affine_grid(theta: torch.Tensor, size: Sequence[Any], align_corners: bool) -> torch.Tensor:
    """The product of the homogeneous coordinates (x first, then 1) of every pixel and *theta*."""
    axes = [_coordinates(s, align_corners, theta) for s in size[2:]]
    grids = torch.meshgrid(*axes, indexing="ij")
    base = torch.stack([*reversed(grids), torch.ones_like(grids[0])], dim=-1)
    flat = base.reshape(1, -1, len(axes) + 1) @ theta.transpose(1, 2)
    return flat.reshape([theta.shape[0], *size[2:], len(axes)])


def _linspace_of_any_steps(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        named: dict[str, Any] = {**dict(zip(_BOUNDS, args, strict=False)), **options}
        start, end, steps = (named.get(name) for name in _BOUNDS)
        dtype = named.get("dtype") or torch.get_default_dtype()
        if (
            isinstance(steps, torch.SymInt)
            and isinstance(start, _NUMBERS)
            and isinstance(end, _NUMBERS)
            and dtype.is_floating_point
            and named.get("out") is None
        ):
            return _linspace(start, end, steps, dtype, named.get("device"))
        return original(*args, **options)

    return call


def _grid_of_any_size(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(theta: torch.Tensor, size: Sequence[Any], align_corners: bool) -> torch.Tensor:
        dynamic = any(isinstance(s, torch.SymInt) for s in size[2:])
        return (_affine_grid if dynamic else original)(theta, size, align_corners)

    return call


@contextlib.contextmanager
def allow_dynamic_steps() -> Iterator[None]:
    """Makes ``torch.linspace`` and ``affine_grid`` take a dynamic dimension in this context."""
    functions = vars(torch)
    before = {name: functions[name] for name in _NAMES}
    made = (_linspace_of_any_steps, _grid_of_any_size)
    functions.update({n: make(before[n]) for n, make in zip(_NAMES, made, strict=True)})
    try:
        yield
    finally:
        functions.update(before)
