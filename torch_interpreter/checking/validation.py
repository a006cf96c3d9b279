"""Compares an ONNX model with torch, at the sizes of the export and at larger ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..common.errors import ValidationError
from ..inputs.dynamic_shapes import user_name
from ..inputs.inputs import ModelInput, to_numpy

_HALF = (torch.float16, torch.bfloat16)


def clone_arguments(values: Any) -> Any:
    """Copies arguments, so that a model which modifies its inputs does not change them."""

    def clone(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else copy.copy(value)

    return torch.utils._pytree.tree_map(clone, values)


def compare(expected: Sequence[Any], got: Sequence[Any], tolerance: float = 1e-4) -> str:
    """Compares two lists of results.

    :param expected: tensors or numbers, None are skipped
    :param got: tensors, arrays or numbers
    :param tolerance: absolute and relative, for floats; 20 times more for 16 bits
    :return: the difference, empty if there is none
    """
    kept = [e for e in expected if e is not None]
    found = [e for e in got if e is not None]
    if len(kept) != len(found):
        return f"{len(kept)} results expected, {len(found)} found"
    for i, (e, v) in enumerate(zip(kept, found, strict=True)):
        half = isinstance(e, torch.Tensor) and e.dtype in _HALF
        problem = _compare_one(e, v, tolerance * 20 if half else tolerance)
        if problem:
            return f"output {i}: {problem}"
    return ""


def _compare_one(expected: Any, value: Any, tolerance: float) -> str:
    a, b = to_numpy(expected), to_numpy(value)
    if isinstance(expected, torch.Tensor):
        if a.shape != b.shape:
            return f"shape {a.shape} expected, {b.shape} found"
        if a.dtype != b.dtype:
            return f"type {a.dtype} expected, {b.dtype} found"
    if a.size == 0:
        return ""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide).reshape(a.shape)
    close = np.isclose(a, b, atol=tolerance, rtol=tolerance, equal_nan=True)
    if close.all():
        return ""
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)[~close]
    return f"{(~close).sum()} of {a.size} values differ, at most by {np.nanmax(gap)}"


def feeds_of(inputs: Sequence[ModelInput], leaves: Sequence[Any]) -> dict[str, np.ndarray]:
    """The feeds of an ONNX runtime for the leaves of the arguments."""
    return {
        i.onnx_name: to_numpy(v)
        for i, v in zip(inputs, leaves, strict=True)
        if i.onnx_name is not None
    }


def other_sizes(
    inputs: Sequence[ModelInput], leaves: Sequence[Any], specs: Sequence[Any], increment: int
) -> list[Any] | None:
    """The leaves with every dynamic dimension larger, None when it is not simple to make them.

    Only dimensions which are one symbol are changed, the content is repeated.
    """
    grown: list[Any] = []
    changed = False
    for model_input, value in zip(inputs, leaves, strict=True):
        fake = model_input.fake
        if not isinstance(value, torch.Tensor):
            if isinstance(fake, torch.SymInt):
                return None
            grown.append(value)
            continue
        for axis, dim in enumerate(fake.shape):
            if not isinstance(dim, torch.SymInt) or dim.node.expr.is_number:
                continue
            if not dim.node.expr.is_Symbol:
                return None
            size = value.shape[axis]
            index = torch.arange(size + increment) % max(size, 1)
            value = value.index_select(axis, index) if size else value
            changed = True
        grown.append(value)
    return grown if changed else None


def validate(
    run: Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]],
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: Sequence[ModelInput],
    specs: Sequence[Any],
    tolerance: float = 1e-4,
    verbose: int = 0,
) -> None:
    """Runs both models on the arguments of the export, then with larger dynamic dimensions.

    :param run: runs the ONNX model
    :param mod: the torch model
    :param args: positional arguments of the export
    :param kwargs: named arguments of the export
    :param inputs: the leaves of the arguments
    :param specs: specifications of the dynamic dimensions
    :param tolerance: absolute and relative
    :param verbose: prints the comparisons
    :raises ValidationError: the results differ
    """
    leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs))
    candidates = [("the arguments of the export", leaves)]
    grown = other_sizes(inputs, leaves, specs, 1)
    if grown is not None:
        names = sorted({str(user_name(s)) for s in specs if user_name(s)})
        candidates.append((f"larger dynamic dimensions {names}".strip(" []"), grown))
    for title, values in candidates:
        feeds = feeds_of(inputs, values)
        try:
            new_args, new_kwargs = torch.utils._pytree.tree_unflatten(clone_arguments(values), tree)
            with torch.no_grad():
                expected = mod(*new_args, **new_kwargs)
        except Exception:
            if values is leaves:
                raise
            # the model itself refuses these sizes, there is nothing to compare
            continue
        got = run(feeds)
        problem = compare(torch.utils._pytree.tree_leaves(expected), got, tolerance)
        if problem:
            shapes = {k: v.shape for k, v in feeds.items()}
            raise ValidationError(
                f"The ONNX model and the torch model disagree on {title} {shapes}: {problem}"
            )
        if verbose:
            print(f"[to_onnx] validated on {title}")
