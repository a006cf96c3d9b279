"""Poolings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..registry import aten
from ..symbols import int_vector
from .conv import Ints, batched, spatial
from .operands import Outputs, const
from .reduce import reduce


def _max_pool(n: int) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> str:
        attributes = _pool_attributes(n, kernel_size, stride, padding, ceil_mode)
        attributes["dilations"] = spatial(dilation, n)

        def run(image: str, names: Outputs) -> str:
            return g.op.MaxPool(image, outputs=names, **attributes)

        return batched(g, x, n + 2, run, outputs)

    return convert


def _pool_attributes(
    n: int, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool
) -> dict[str, Any]:
    """The stride is the kernel when it is not given."""
    kernel = spatial(kernel_size, n)
    given = not isinstance(stride, list | tuple) or len(stride) > 0
    return {
        "kernel_shape": kernel,
        "strides": spatial(stride, n) if given else kernel,
        "pads": spatial(padding, n) * 2,
        "ceil_mode": int(ceil_mode),
    }


def _max_pool_with_indices(n: int) -> Callable[..., list[str]]:
    """torch's indices are flat in each channel, ONNX's in the whole tensor."""

    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> list[str]:
        attributes = _pool_attributes(n, kernel_size, stride, padding, ceil_mode)
        attributes["dilations"] = spatial(dilation, n)
        unbatched = g.get_rank(x) == n + 1
        image = g.op.UnsqueezeAnyOpset(x, int_vector([0])) if unbatched else x
        values, flat = g.op.MaxPool(image, outputs=2, **attributes)
        sizes = g.op.Shape(image, start=2)
        channel = g.op.ReduceProd(sizes, keepdims=0)
        results = [values, g.op.Mod(flat, channel)]
        names = outputs or [None, None]
        if unbatched:
            return [
                g.op.SqueezeAnyOpset(r, int_vector([0]), outputs=None if m is None else [m])
                for r, m in zip(results, names, strict=True)
            ]
        return results

    return convert


for _n in (1, 2, 3):
    aten(f"aten.max_pool{_n}d.default")(_max_pool(_n))
for _n in (2, 3):
    aten(f"aten.max_pool{_n}d_with_indices.default")(_max_pool_with_indices(_n))
aten("aten.max_pool1d_with_indices.default")(_max_pool_with_indices(1))


def _avg_pool(n: int) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> str:
        attributes = _pool_attributes(n, kernel_size, stride, padding, ceil_mode)
        attributes["count_include_pad"] = int(count_include_pad or divisor_override is not None)

        def run(image: str, names: Outputs) -> str:
            if divisor_override is None:
                return g.op.AveragePool(image, outputs=names, **attributes)
            mean = g.op.AveragePool(image, **attributes)
            area = 1
            for k in attributes["kernel_shape"]:
                area *= k
            factor = const(area / divisor_override, g.get_type(x))
            return g.op.Mul(mean, factor, outputs=names)

        return batched(g, x, n + 2, run, outputs)

    return convert


for _n in (1, 2, 3):
    aten(f"aten.avg_pool{_n}d.default")(_avg_pool(_n))


def _adaptive(n: int, pool: str, reduction: str) -> Callable[..., str]:
    """A reduction for an output of size 1, a pooling when the sizes are multiples."""

    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, output_size: Sequence[int | None]
    ) -> str:
        rank = g.get_rank(x)
        axes = list(range(rank - n, rank))
        shape = g.get_shape(x)[-n:]
        sizes = spatial(output_size, n)
        targets = [s if t is None else t for s, t in zip(shape, sizes, strict=True)]
        if all(t == 1 for t in targets):
            return reduce(g, reduction, x, axes, True, outputs)
        if targets == list(shape):
            return x
        if all(isinstance(s, int) and s % t == 0 for s, t in zip(shape, targets, strict=True)):
            kernel = [s // t for s, t in zip(shape, targets, strict=True)]

            def run(image: str, names: Outputs) -> str:
                return getattr(g.op, pool)(
                    image, kernel_shape=kernel, strides=kernel, outputs=names
                )

            return batched(g, x, n + 2, run, outputs)
        return _adaptive_by_axis(g, outputs, x, axes, targets, reduction)

    return convert


def _adaptive_by_axis(
    g: Any, outputs: Outputs, x: str, axes: list[int], targets: list[Any], reduction: str
) -> str:
    """One dimension after the other, one reduction per output position."""
    for axis, target in zip(axes, targets, strict=True):
        size = g.get_shape(x)[axis]
        if not isinstance(size, int):
            raise ValueError(
                f"adaptive pooling to {targets} needs a static dimension {axis}, not {size!r}"
            )
        pieces = []
        for i in range(target):
            start, end = i * size // target, -(-(i + 1) * size // target)
            part = g.op.Slice(x, int_vector([start]), int_vector([end]), int_vector([axis]))
            pieces.append(reduce(g, reduction, part, [axis], True))
        last = outputs if axis == axes[-1] else None
        x = g.op.Concat(*pieces, axis=axis, outputs=last)
    return x


for _n in (1, 2, 3):
    aten(f"aten.adaptive_avg_pool{_n}d.default")(_adaptive(_n, "AveragePool", "ReduceMean"))
aten("aten._adaptive_avg_pool2d.default")(_adaptive(2, "AveragePool", "ReduceMean"))
aten("aten._adaptive_avg_pool3d.default")(_adaptive(3, "AveragePool", "ReduceMean"))


def _adaptive_max(n: int) -> Callable[..., list[str]]:
    """The indices are computed only if the sizes are multiples."""
    values_only = _adaptive(n, "MaxPool", "ReduceMax")

    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, output_size: Sequence[int]
    ) -> list[Any]:
        users = getattr(getattr(sts, "node", None), "users", {})
        if any(len(u.args) > 1 and u.args[1] == 1 and u.users for u in users):
            shape = g.get_shape(x)[-n:]
            sizes = spatial(output_size, n)
            pairs = list(zip(shape, sizes, strict=True))
            if not all(isinstance(s, int) and s % t == 0 for s, t in pairs):
                raise ValueError("the indices of adaptive_max_pool need multiple static sizes")
            kernel = [s // t for s, t in pairs]
            return _max_pool_with_indices(n)(g, sts, outputs, x, kernel)
        name = outputs[:1] if outputs else None
        return [values_only(g, sts, name, x, output_size), None]

    return convert


for _n in (1, 2, 3):
    aten(f"aten.adaptive_max_pool{_n}d.default")(_adaptive_max(_n))
