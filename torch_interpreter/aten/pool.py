"""Poolings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from onnx import TensorProto

from ..writing.graph_writer import GraphWriter, op_named, several
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, curried
from ..writing.symbols import Size, dim_of, int_vector
from .adaptive import adaptive_members, adaptive_with_indices, windows_of
from .conv import Ints, batched, spatial
from .operands import cast, const, integers
from .reduce import reduce
from .view import transpose


def pool_attributes(
    n: int, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool
) -> dict[str, Any]:
    """The attributes of a pooling; the stride is the kernel when it is not given."""
    kernel = spatial(kernel_size, n)
    given = isinstance(stride, int) or len(stride) > 0
    return {
        "kernel_shape": kernel,
        "strides": spatial(stride, n) if given else kernel,
        "pads": spatial(padding, n) * 2,
        "ceil_mode": int(ceil_mode),
    }


def _max_attributes(
    n: int,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> dict[str, Any]:
    attributes = pool_attributes(n, kernel_size, stride, padding, ceil_mode)
    return attributes | {"dilations": spatial(dilation, n)}


def _ends(attributes: dict[str, Any], sizes: Sequence[int]) -> tuple[list[int], list[bool]]:
    """The padding the last window of each dimension needs after the end, and whether it is dropped.

    torch drops a window that starts in the padding of the end. A negative number counts
    elements that no window reads.

    """
    ends, late = [], []
    for i, size in enumerate(sizes):
        stride, begin = attributes["strides"][i], attributes["pads"][i]
        covered = attributes.get("dilations", [1] * len(sizes))[i]
        covered = covered * (attributes["kernel_shape"][i] - 1) + 1
        last = -(-(size + 2 * begin - covered) // stride)
        late.append(last * stride >= size + begin)
        last -= late[-1]
        ends.append(last * stride + covered - size - begin)
    return ends, late


def _without_late_windows(
    attributes: dict[str, Any], sizes: Sequence[int] | None
) -> dict[str, Any]:
    """Changes attributes so that onnx's shape inference drops the windows torch drops.

    onnxruntime drops them too. ceil_mode is not needed if nothing else goes over the padding;
    otherwise, the padding of a maximum stops where the last windows do.
    """
    if not attributes["ceil_mode"] or sizes is None:
        return attributes
    ends, late = _ends(attributes, sizes)
    if not any(late):
        return attributes
    pads = attributes["pads"][: len(sizes)]
    if all(end <= pad for end, pad in zip(ends, pads, strict=True)):
        return attributes | {"ceil_mode": 0}
    return attributes | {"pads": [*pads, *(max(0, end) for end in ends)], "ceil_mode": 0}


def _cut_before_late_windows(g: GraphWriter, x: str, attributes: dict[str, Any], n: int) -> str:
    """Cuts the input of a mean, which does not count values beyond the padding.

    Only the dimensions with a dropped window are cut, at the end of the window before, which may be
    inside the image.
    """
    sizes, pads = integers(g.get_shape(x)[-n:]), attributes["pads"][:n]
    if not attributes["ceil_mode"] or sizes is None:
        return x
    ends, late = _ends(attributes, sizes)
    stops = [end if forgets else pad for end, pad, forgets in zip(ends, pads, late, strict=True)]
    attributes["pads"] = [*pads, *(max(0, end) for end in stops)]
    unread = {i - n: end for i, end in enumerate(stops) if end < 0}
    if not unread:
        return x
    bounds = [0] * len(unread), [*unread.values()], [*unread]
    return g.op.Slice(x, *(int_vector(v) for v in bounds))


@curried
def _max_pool(n: int, g: GraphWriter, x: str, *args: Any, **kwargs: Any) -> str:
    attributes = _max_attributes(n, *args, **kwargs)
    attributes = _without_late_windows(attributes, integers(g.get_shape(x)[-n:]))
    return batched(g, x, n + 2, lambda image: g.op.MaxPool(image, **attributes))


@curried
def _max_pool_with_indices(n: int, g: GraphWriter, x: str, *args: Any, **kwargs: Any) -> list[str]:
    """A converter of max_pool: torch's indices are flat in each channel, ONNX's in the tensor."""
    attributes = _max_attributes(n, *args, **kwargs)
    attributes = _without_late_windows(attributes, integers(g.get_shape(x)[-n:]))
    unbatched = g.get_rank(x) == n + 1
    image = g.op.UnsqueezeAnyOpset(x, int_vector([0])) if unbatched else x
    values, flat = several(g, "MaxPool", 2, image, **attributes)
    sizes = g.op.Shape(image, start=2)
    channel = g.op.ReduceProd(sizes, keepdims=0)
    results = [values, g.op.Mod(flat, channel)]
    if unbatched:
        return [g.op.SqueezeAnyOpset(r, int_vector([0])) for r in results]
    return results


@curried
def _avg_pool(
    n: int,
    g: GraphWriter,
    x: str,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> str:
    attributes = pool_attributes(n, kernel_size, stride, padding, ceil_mode)
    attributes["count_include_pad"] = int(count_include_pad or divisor_override is not None)
    if divisor_override is None:
        x = _cut_before_late_windows(g, x, attributes, n)
    elif ceil_mode:
        return _sum_of_whole_windows(g, x, attributes, n, divisor_override)
    mean = batched(g, x, n + 2, lambda image: g.op.AveragePool(image, **attributes))
    if divisor_override is None:
        return mean
    area = math.prod(attributes["kernel_shape"])
    return g.op.Mul(mean, const(area / divisor_override, g.get_type(x)))


def _sum_of_whole_windows(
    g: GraphWriter, x: str, attributes: dict[str, Any], n: int, divisor: int
) -> str:
    """A sum over windows divided by a number. Added zeros keep windows from going over the end,
    since such a window would be divided by the number of elements it covers.

    The last window needs up to stride - 1 zeros after the padding, and starts before them all.
    """
    kernel, begins = attributes["kernel_shape"], attributes["pads"][:n]
    sizes = zip(begins, attributes["strides"], kernel, strict=True)
    ends = [min(begin + stride, size) - 1 for begin, stride, size in sizes]
    before = [0] * (g.get_rank(x) - n)
    padded = g.op.Pad(x, int_vector([*before, *begins, *before, *ends]))
    whole = attributes | {"pads": [0] * (2 * n), "ceil_mode": 0}
    mean = batched(g, padded, n + 2, lambda image: g.op.AveragePool(image, **whole))
    return g.op.Mul(mean, const(math.prod(kernel) / divisor, g.get_type(x)))


def _even_windows(size: int | str, target: int | str) -> tuple[int, int] | None:
    """The length of the windows of an adaptive pooling and the step from one to the next, None if
    they are not all the same.

    >>> _even_windows(6, 3), _even_windows(64, 7), _even_windows(7, 5)
    ((2, 2), (10, 9), None)
    """
    if isinstance(size, str) or isinstance(target, str) or not target:
        return None
    windows = [_window(i, size, target) for i in range(target)]
    lengths = {end - start for start, end in windows}
    steps = {after[0] - before[0] for before, after in pairwise(windows)} or {size}
    return (lengths.pop(), steps.pop()) if len(lengths) == len(steps) == 1 else None


def _alike(
    sizes: Sequence[int | str], targets: Sequence[int | str]
) -> tuple[list[int], list[int]] | None:
    """The kernel and the strides of the pooling an adaptive one is, None if its windows differ."""
    found = [_even_windows(size, target) for size, target in zip(sizes, targets, strict=True)]
    known = [pair for pair in found if pair is not None]
    if len(known) < len(found):
        return None
    return [length for length, _ in known], [step for _, step in known]


def _window(i: int, size: int, target: int) -> tuple[int, int]:
    """The first element of a window of an adaptive pooling and the one after the last."""
    return i * size // target, -(-(i + 1) * size // target)


@curried
def _adaptive(
    n: int,
    pool: str,
    reduction: str,
    g: GraphWriter,
    x: str,
    output_size: Size | Sequence[Size | None],
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """A converter: a reduction for an output of size 1, a pooling when windows are alike."""
    rank = g.get_rank(x)
    axes = list(range(rank - n, rank))
    shape = g.get_shape(x)[-n:]
    sizes = [output_size] if isinstance(output_size, int | str) else list(output_size)
    sizes = sizes * n if len(sizes) == 1 else sizes
    # None stands for the size of the input, which torch writes when it is symbolic
    known = [None] * n if expected.shape is None else expected.shape[-n:]
    targets = [s if t is None or s == e else t for s, t, e in zip(shape, sizes, known, strict=True)]
    if all(t == 1 for t in targets):
        return reduce(g, reduction, x, axes, True)
    if targets == list(shape):
        return x
    windows = _alike(shape, targets)
    if windows is not None:
        call, (kernel, strides) = op_named(g, pool), windows
        return batched(g, x, n + 2, lambda v: call(v, kernel_shape=kernel, strides=strides))
    return _adaptive_by_axis(g, x, axes, targets, reduction)


def _adaptive_by_axis(
    g: GraphWriter, x: str, axes: Sequence[int], targets: Sequence[int | str], reduction: str
) -> str:
    """Pools one dimension after the other, one reduction per output position if known."""
    for axis, target in zip(axes, targets, strict=True):
        size = g.get_shape(x)[axis]
        if size == target:
            continue
        if target == 1:
            x = reduce(g, reduction, x, [axis], True)
            continue
        if isinstance(size, str) or isinstance(target, str):
            x = _by_membership(g, x, axis, target, reduction)
            continue
        pieces = []
        for i in range(target):
            start, end = _window(i, size, target)
            part = g.op.Slice(x, int_vector([start]), int_vector([end]), int_vector([axis]))
            pieces.append(reduce(g, reduction, part, [axis], True))
        x = g.op.Concat(*pieces, axis=axis)
    return x


def _by_membership(g: GraphWriter, x: str, axis: int, target: int | str, reduction: str) -> str:
    """An adaptive pooling along one dimension only known when the model runs.

    A matrix says which elements each window reads. The selected elements are reduced, so an
    infinite value stays in its windows; a product with the matrix would make NaN of the others.
    """
    inside = adaptive_members(g, windows_of(g, dim_of(g, x, axis), target))
    itype, at_end, is_mean = g.get_type(x), g.get_rank(x) - 1, reduction == "ReduceMean"
    wide = g.op.UnsqueezeAnyOpset(transpose(g, x, axis, at_end), int_vector([at_end]))
    # torch only pools floating point numbers
    selected = g.op.Where(inside, wide, const(0 if is_mean else -float("inf"), itype))
    found = reduce(g, "ReduceSum" if is_mean else reduction, selected, [at_end + 1], False)
    if is_mean:
        ones = cast(g, inside, itype if itype == TensorProto.DOUBLE else TensorProto.FLOAT)
        lengths = reduce(g, "ReduceSum", ones, [1], False)
        found = g.op.Div(found, cast(g, lengths, itype))
    return transpose(g, found, axis, at_end)


@curried
def _adaptive_max(
    n: int,
    g: GraphWriter,
    x: str,
    output_size: Sequence[Size],
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """A converter of adaptive max pooling."""
    values_only = _adaptive(n, "MaxPool", "ReduceMax")
    with_indices = _max_pool_with_indices(n)
    if not expected.is_used(1):
        return [values_only(g, x, output_size, expected=expected), None]
    sizes = list(output_size) * (n if len(output_size) == 1 else 1)
    kernel, strides = _alike(g.get_shape(x)[-n:], sizes) or ([], None)
    if kernel == strides and 0 not in g.get_shape(x):
        return [*with_indices(g, x, kernel)]
    return adaptive_with_indices(g, x, sizes)


for _n in (1, 2, 3):
    aten(f"aten.max_pool{_n}d.default")(_max_pool(_n))
    aten(f"aten.max_pool{_n}d_with_indices.default")(_max_pool_with_indices(_n))
    aten(f"aten.avg_pool{_n}d.default")(_avg_pool(_n))
    aten(f"aten.adaptive_avg_pool{_n}d.default")(_adaptive(_n, "AveragePool", "ReduceMean"))
    aten(f"aten.adaptive_max_pool{_n}d.default")(_adaptive_max(_n))
for _n in (2, 3):
    aten(f"aten._adaptive_avg_pool{_n}d.default")(_adaptive(_n, "AveragePool", "ReduceMean"))
