"""Compares an ONNX model with torch, at the sizes of the export and at larger ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from xbuilder.errors import short_message
from xbuilder.tensors.closeness import Criterion

from ..common.errors import ValidationError
from ..inputs.dynamic_shapes import user_name
from ..inputs.inputs import ModelInput, to_numpy
from .other_sizes import other_sizes
from .own_attributes import restored_attributes


def clone_arguments(values: Any) -> Any:
    """Copies arguments, so that a model which modifies its inputs does not change them."""

    def clone(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else copy.copy(value)

    return torch.utils._pytree.tree_map(clone, values)


def compare(
    expected: Sequence[Any],
    got: Sequence[Any],
    tolerance: float = 1e-4,
    noisy: Sequence[Any] = (),
) -> str:
    """Compares two lists of results, see :class:`xbuilder.tensors.closeness.Criterion`.

    :param expected: tensors or numbers, None are skipped
    :param got: tensors, arrays or numbers
    :param tolerance: the relative tolerance
    :param noisy: the expected results with other roundings, none if they are not known
    :return: the difference, empty if there is none
    """
    kept = [e for e in expected if e is not None]
    found = [e for e in got if e is not None]
    others = [e for e in noisy if e is not None]
    if len(kept) != len(found):
        return f"{len(kept)} results expected, {len(found)} found"
    for i, (e, v) in enumerate(zip(kept, found, strict=True)):
        other = [to_numpy(others[i])] if len(others) == len(kept) else []
        problem = _compare_one(e, v, tolerance, other)
        if problem:
            return f"output {i}: {problem}"
    return ""


def _compare_one(expected: Any, value: Any, tolerance: float, noisy: Sequence[np.ndarray]) -> str:
    a, b = to_numpy(expected), to_numpy(value)
    if not isinstance(expected, torch.Tensor):
        a = a.astype(b.dtype).reshape(b.shape) if a.size == b.size else a
    return Criterion(tolerance).compare(a, b, noisy).reason


def feeds_of(inputs: Sequence[ModelInput], leaves: Sequence[Any]) -> dict[str, np.ndarray]:
    """The feeds of an ONNX runtime for the leaves of the arguments."""
    return {
        i.onnx_name: to_numpy(v)
        for i, v in zip(inputs, leaves, strict=True)
        if i.onnx_name is not None
    }


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
    :param tolerance: the relative tolerance
    :param verbose: prints the comparisons
    :raises ValidationError: the results differ, or onnxruntime does not run the model
    """
    leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs))
    candidates = [("the arguments of the export", leaves)]
    grown = other_sizes(inputs, leaves, specs)
    if grown is not None:
        names = sorted({str(user_name(s)) for s in specs if user_name(s)})
        candidates.append((f"larger dynamic dimensions {names}".strip(" []"), grown))
    for title, values in candidates:
        feeds = feeds_of(inputs, values)
        try:
            expected = _results(mod, values, tree)
        except Exception:
            if values is leaves:
                raise
            # the model itself refuses these sizes, there is nothing to compare
            continue
        shapes = {k: v.shape for k, v in feeds.items()}
        try:
            got = run(feeds)
        except Exception as e:
            raise ValidationError(
                f"onnxruntime does not run the ONNX model on {title} {shapes}: {short_message(e)}"
            ) from e
        problem = compare(expected, got, tolerance)
        if problem:
            problem = compare(expected, got, tolerance, _with_doubles(mod, values, tree))
        if problem:
            raise ValidationError(
                f"The ONNX model and the torch model disagree on {title} {shapes}: {problem}"
            )
        if verbose:
            print(f"[to_onnx] validated on {title}")


def _results(mod: torch.nn.Module, values: Sequence[Any], tree: Any) -> list[Any]:
    args, kwargs = torch.utils._pytree.tree_unflatten(clone_arguments(list(values)), tree)
    with torch.no_grad(), restored_attributes(mod):
        found: list[Any] = torch.utils._pytree.tree_leaves(mod(*args, **kwargs))
    return found


def _with_doubles(mod: torch.nn.Module, values: Sequence[Any], tree: Any) -> list[Any]:
    """The results of the torch model computed with doubles, none if it does not run."""

    def wide(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.double() if is_float else value

    try:
        return _results(copy.deepcopy(mod).double(), [wide(v) for v in values], tree)
    except Exception:  # a model may fix its types, or not be copied: no other reference
        return []
