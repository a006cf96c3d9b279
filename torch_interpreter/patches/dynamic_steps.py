"""Replaces functions of torch that need an integer where a model gives a dynamic dimension.

torch.export makes that dimension a constant, in ``torch.linspace(-1, 1, x.shape[1])``, in
``torch.hann_window(n)`` or when ``affine_grid`` reads the size of a picture. While a model is
exported, these functions count positions with ``torch.arange``, which takes any dimension, and a
pooling over a whole dimension, ``F.max_pool1d(x, x.size(2))``, reduces it. The last piece of
``x.split(3, 1)`` is what remains. Known numbers of steps are unchanged.

torch.export also takes ``x[:, :512]`` for the whole of x when the arguments have 10 columns, and
the model is wrong with 600. Here, such a slice ends at the smaller of both numbers.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch._export import non_strict_utils
from torch._subclasses import fake_impls
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

from ..common.repeated_tensors import JOINED, joined_tensors, repeated_list
from ..common.symbolic_ranges import SymbolicRange, index_of_tensors
from ..common.types import is_symbolic
from .attributes import patched

_UNTYPED: Any = torch
_TENSOR = torch.tensor
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_MEANS = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
_BOUNDS = ("start", "end", "steps", "base")


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


def _spaced(logarithmic: bool, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Makes ``linspace`` or ``logspace`` take any number of steps."""
    named: dict[str, Any] = {**dict(zip(_BOUNDS, args, strict=False)), **options}
    start, end, steps = (named.get(name) for name in _BOUNDS[:3])
    numbers = isinstance(start, _NUMBERS) and isinstance(end, _NUMBERS)
    if not isinstance(steps, torch.SymInt) or not numbers or named.get("out") is not None:
        return original(*args, **options)
    dtype = named.get("dtype") or torch.get_default_dtype()
    if not dtype.is_floating_point and not logarithmic:
        start, end = _UNTYPED.sym_int(start), _UNTYPED.sym_int(end)
    work = dtype if dtype.is_floating_point and not logarithmic else torch.float64
    values = _linspace(start, end, steps, work, named.get("device"))
    if logarithmic:
        values = torch.pow(named.get("base", 10.0), values)
    return values.to(dtype)


def _cosines(*coefficients: float) -> Callable[..., torch.Tensor]:
    """A window made of cosines: Hann, Hamming, Blackman."""

    def window(position: torch.Tensor, last: Any) -> torch.Tensor:
        angle = position * (2 * math.pi) / last
        return sum((c * torch.cos(k * angle) for k, c in enumerate(coefficients)), position * 0)

    return window


def _triangle(position: torch.Tensor, last: Any) -> torch.Tensor:
    return 1 - torch.abs(2 * position / last - 1)


#: window -> values at some positions, 0 and *last* being its ends
_WINDOWS: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "hann_window": _cosines(0.5, -0.5),
    "hamming_window": _cosines(0.54, -0.46),
    "blackman_window": _cosines(0.42, -0.5, 0.08),
    "bartlett_window": _triangle,
}


def _windowed(name: str, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Makes a window take any length."""
    named = {**dict(zip(("window_length", "periodic"), args, strict=False)), **options}
    length = named.pop("window_length", None)
    periodic = named.pop("periodic", True)
    known = len(args) > 2 or not isinstance(length, torch.SymInt)
    if known or not set(named) <= {"dtype", "device", "layout", "requires_grad"}:
        return original(*args, **options)
    dtype = named.get("dtype") or torch.get_default_dtype()
    position = torch.arange(length, dtype=torch.float64, device=named.get("device"))
    last = length if periodic else length - 1
    values = _WINDOWS[name](position, _UNTYPED.sym_max(last, 1))
    # a window of one value is 1
    return torch.where(position < 2 - length, 1.0, values).to(dtype)


def _grid_of_any_size(
    original: Callable[..., Any], theta: torch.Tensor, size: Sequence[Any], align_corners: bool
) -> Any:
    dynamic = any(isinstance(s, torch.SymInt) for s in size[2:])
    return (_affine_grid if dynamic else original)(theta, size, align_corners)


def _frequencies(
    halved: bool, original: Callable[..., Any], n: Any, d: Any = 1.0, **options: Any
) -> Any:
    """Makes ``fftfreq`` or ``rfftfreq`` take any number of samples."""
    if not isinstance(n, torch.SymInt) or options.get("out") is not None:
        return original(n, d, **options)
    dtype = options.get("dtype") or torch.get_default_dtype()
    count = n // 2 + 1 if halved else n
    number = _UNTYPED.arange(count, dtype=torch.float64, device=options.get("device"))
    if not halved:
        number = torch.where(number < n - n // 2, number, number - n)
    return (number / (n * d)).to(dtype)


def _indices(
    lower: bool, original: Callable[..., Any], row: Any, col: Any, offset: Any = 0, **options: Any
) -> Any:
    """Makes ``tril_indices`` or ``triu_indices`` take any sizes."""
    if not any(isinstance(v, torch.SymInt) for v in (row, col, offset)):
        return original(row, col, offset, **options)
    ones = torch.ones((row, col), dtype=torch.int64, device=options.get("device"))
    kept = ones.tril(offset) if lower else ones.triu(offset)
    return kept.nonzero().t().to(options.get("dtype") or torch.int64)


def _classes(original: Callable[..., Any], tensor: torch.Tensor, num_classes: Any = -1) -> Any:
    """Makes ``one_hot`` take any number of classes."""
    if not isinstance(num_classes, torch.SymInt):
        return original(tensor, num_classes)
    classes: torch.Tensor = _UNTYPED.arange(num_classes, device=tensor.device)
    return tensor.unsqueeze(-1).eq(classes).to(torch.int64)


def _of_numbers(original: Callable[..., Any], data: Any, *args: Any, **options: Any) -> Any:
    """Makes ``tensor`` take a list of any length."""
    if not isinstance(data, SymbolicRange):
        # torch.export does this replacement itself, for the function that is replaced here
        replaces = original is _TENSOR and any(map(is_symbolic, pytree.tree_leaves(data)))
        return (_UNTYPED._refs.tensor if replaces else original)(data, *args, **options)
    tensor = data.tensor()
    return tensor.to(options.get("device") or tensor.device, options.get("dtype") or tensor.dtype)


def _kronecker(
    original: Callable[..., Any], input: torch.Tensor, other: torch.Tensor, **options: Any
) -> Any:
    """Makes ``kron`` take any sizes."""
    sizes = (*input.shape, *other.shape)
    if options or not any(isinstance(s, torch.SymInt) for s in sizes):
        return original(input, other, **options)
    rank = max(input.ndim, other.ndim)
    a, b = (v.reshape([1] * (rank - v.ndim) + list(v.shape)) for v in (input, other))
    for i in range(rank):
        a, b = a.unsqueeze(2 * i + 1), b.unsqueeze(2 * i)
    return (a * b).reshape([a.shape[2 * i] * b.shape[2 * i + 1] for i in range(rank)])


def _along(
    original: Callable[..., Any],
    input: torch.Tensor,
    indices: torch.Tensor,
    dim: int | None = None,
    **options: Any,
) -> Any:
    """Makes ``take_along_dim`` take any sizes: both shapes are broadcast, but for one dimension."""
    sizes = (*input.shape, *indices.shape)
    ranks = input.ndim == indices.ndim > 0
    if options or not ranks or not any(isinstance(s, torch.SymInt) for s in sizes):
        return original(input, indices, dim, **options)
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % input.ndim
    others = ((*v.shape[:axis], 1, *v.shape[axis + 1 :]) for v in (input, indices))
    shape = list(_UNTYPED.broadcast_shapes(*others))
    shape[axis] = -1
    return input.expand(shape).gather(axis, indices.expand(shape))


def _of_pictures(original: Callable[..., Any], x: torch.Tensor, *args: Any, **options: Any) -> Any:
    """Makes ``max_pool1d`` take any length: it is a max pooling of pictures of one row."""
    if not any(isinstance(d, torch.SymInt) for d in x.shape):
        return original(x, *args, **options)
    named = {**dict(zip(_POOL, args, strict=False)), **options}
    ceil_mode = named.pop("ceil_mode", False)
    given = {k: _single(v) for k, v in named.items() if v not in (None, [], ())}
    sizes = {k: [0 if k == "padding" else 1, v] for k, v in given.items()}
    return _UNTYPED.max_pool2d(x.unsqueeze(-2), **sizes, ceil_mode=ceil_mode).squeeze(-2)


def _whole(
    rank: int, original: Callable[..., Any], x: torch.Tensor, *args: Any, **options: Any
) -> Any:
    """Makes a pooling take a window as long as a dynamic dimension: it reduces this dimension."""
    is_max = original.__name__.startswith("max")
    named = {**dict(zip(_POOL if is_max else _MEANS, args, strict=False)), **options}
    kernel = _repeated(named["kernel_size"], rank)
    padding = _repeated(named.get("padding") or 0, rank)
    known = not any(isinstance(k, torch.SymInt) for k in kernel) or not x.is_floating_point()
    if known or named.get("divisor_override") is not None:
        return original(x, *args, **options)
    places = [i for i in range(rank) if padding[i] == 0 and _is_size(kernel[i], x.shape[i - rank])]
    if not places:
        return original(x, *args, **options)
    dims = [i - rank for i in places]
    x = x.amax(dims, keepdim=True) if is_max else x.mean(dims, keepdim=True)
    if len(places) == rank:
        return x
    stride = _repeated(named.get("stride") or kernel, rank)
    for i in places:
        kernel[i] = stride[i] = 1
    return original(x, **{**named, "kernel_size": kernel, "stride": stride})


def _is_size(length: Any, size: Any) -> bool:
    return isinstance(length, torch.SymInt) and bool(statically_known_true(length == size))


def _repeated(value: Any, rank: int) -> list[Any]:
    """One value for each dimension."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * rank if len(values) == 1 else values


def _drawn(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Makes ``randn`` or ``rand`` take any sizes with a generator, which no graph has."""
    sizes = torch.utils._pytree.tree_leaves((args, options.get("size")))
    if any(isinstance(s, torch.SymInt) for s in sizes):
        options.pop("generator", None)
    return original(*args, **options)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) else value


def _size_of_arguments(size: Any) -> int | None:
    """The size of a dynamic dimension in the arguments, None for another one."""
    if not isinstance(size, torch.SymInt) or size.node.expr.is_number:
        return None
    hint: int | None = size.node.hint if size.node.has_hint() else None
    return hint


def _pieces(original: Callable[..., Any], x: Any, split_size: Any, dim: int = 0) -> Any:
    """Makes ``split`` give pieces of one length, then what remains."""
    length = x.shape[dim] if x.ndim else 0
    known = _size_of_arguments(length) if isinstance(split_size, int) else None
    if not known or split_size <= 0:
        return original(x, split_size, dim)
    starts = range(0, known, split_size)
    # the model has another number of pieces beyond
    _UNTYPED._check(length <= starts[-1] + split_size)
    before = (slice(None),) * (dim % x.ndim)
    ends = [*starts[1:], None]
    return tuple(x[(*before, slice(*both))] for both in zip(starts, ends, strict=True))


def _position(original: Callable[..., Any], size: Any, index: Any) -> Any:
    """A position of a slice, an expression if it is out of the dimension in the arguments."""
    known = _size_of_arguments(size) if isinstance(index, int) else None
    if known is None or -known <= index <= known:
        return original(size, index)
    return _UNTYPED.sym_min(index, size) if index >= 0 else _UNTYPED.sym_max(index + size, 0)


def _indexed(original: Callable[..., Any], handler: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Makes a list of any length an index: ``x[list(range(0, n, 2))]``."""
    if getattr(func, "__name__", "") == "__getitem__" and len(args) > 1:
        args = (args[0], index_of_tensors(args[1]))
    return original(handler, func, args, kwargs)


#: what is replaced, by functions that take the original one first; modules look them up by name
_REPLACED: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (torch, "linspace", partial(_spaced, False)),
    (torch, "logspace", partial(_spaced, True)),
    (torch, "affine_grid_generator", _grid_of_any_size),
    *((torch, name, partial(_windowed, name)) for name in _WINDOWS),
    (torch.fft, "fftfreq", partial(_frequencies, False)),
    (torch.fft, "rfftfreq", partial(_frequencies, True)),
    (torch, "tril_indices", partial(_indices, True)),
    (torch, "triu_indices", partial(_indices, False)),
    (torch.nn.functional, "one_hot", _classes),
    (torch, "kron", _kronecker),
    *((owner, "take_along_dim", _along) for owner in (torch, torch.Tensor)),
    (torch, "tensor", _of_numbers),
    (torch, "as_tensor", _of_numbers),
    (torch, "rand", _drawn),
    (torch, "randn", _drawn),
    (torch, "max_pool1d", _of_pictures),
    *((torch, f"max_pool{n}d", partial(_whole, n)) for n in (1, 2, 3)),
    (torch, "avg_pool1d", partial(_whole, 1)),
    *((torch.nn.functional, f"avg_pool{n}d", partial(_whole, n)) for n in (1, 2, 3)),
    (torch.Tensor, "split", _pieces),
    *((torch, name, joined_tensors) for name in JOINED),
    *((torch.SymInt, name, repeated_list) for name in ("__mul__", "__rmul__")),
)
#: the method of torch that replaces calls of functions of torch, in most versions
_OVERRIDE = "_override"
#: the function of torch that bounds a position of a slice, in most versions
_BOUND = "_compute_slice_index"


@contextlib.contextmanager
def allow_dynamic_steps() -> Iterator[None]:
    """Makes functions such as ``torch.linspace`` take a dynamic dimension in this context."""
    with contextlib.ExitStack() as stack:
        for owner, name, function in _REPLACED:
            stack.enter_context(patched(owner, {name: _bound(function, getattr(owner, name))}))
        handler = getattr(non_strict_utils, "_NonStrictTorchFunctionHandler", None)
        if hasattr(handler, _OVERRIDE):
            override = _bound(_indexed, getattr(handler, _OVERRIDE))
            stack.enter_context(patched(handler, {_OVERRIDE: override}))
        stack.enter_context(any_bounds())
        yield


@contextlib.contextmanager
def any_bounds() -> Iterator[None]:
    """Makes the bounds of a slice right for all sizes in this context.

    >>> class First(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x[:8]
    >>> shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    >>> with any_bounds():
    ...     found = torch.export.export(First(), (torch.ones(4),), dynamic_shapes=shapes)
    >>> found.module()(torch.ones(12)).shape
    torch.Size([8])
    """
    original = getattr(fake_impls, _BOUND, None)
    changes = {} if original is None else {_BOUND: _bound(_position, original)}
    with patched(fake_impls, changes):
        yield


def _bound(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A function as torch wants it, with a name."""

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        return function(original, *args, **options)

    return call
