"""The samples torch has for its own operators, as models to export."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import onnx
import torch
from torch.testing._internal.common_methods_invocations import op_db
from ut_torch_interpreter.export_checks import run_ort
from ut_torch_interpreter.opinfo_tables import NOT_DETERMINED, ONLY_TORCH_SAMPLES, TIES

from torch_interpreter import to_onnx
from torch_interpreter.inputs.inputs import to_numpy
from xbuilder import OptimizationOptions
from xbuilder.errors import XoptimError

pytree = torch.utils._pytree
OPERATORS = list(op_db)
DTYPES = (torch.float32, torch.int64, torch.bool)
# a tensor of these shapes takes the place of every tensor of a sample
SHAPES = ((), (0,), (0, 3), (2, 0))
OPTIONS = OptimizationOptions(patterns=None)
TOLERANCE = 1e-4
UNREADABLE = (torch.bfloat16, torch.complex32, torch.complex64, torch.complex128)


def full_name(operator: Any) -> str:
    """The name of an operator and of its variant."""
    variant = operator.variant_test_name
    return f"{operator.name}.{variant}" if variant else operator.name


class Call(torch.nn.Module):
    """Calls an operator, tensors are the inputs, everything else is constant."""

    def __init__(self, fct: Callable[..., Any], leaves: list[Any], tree: Any):
        super().__init__()
        self.fct, self.tree = fct, tree
        name = getattr(fct, "__name__", "")
        owners = (torch, torch.nn.functional)
        self.owner = next((o for o in owners if vars(o).get(name) is fct), None)
        self.positions = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]
        self.leaves = [None if i in self.positions else v for i, v in enumerate(leaves)]

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for position, tensor in zip(self.positions, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        # by its name, as in the model of a user
        fct = getattr(self.owner, self.fct.__name__) if self.owner else self.fct
        results = [r for r in pytree.tree_leaves(fct(*args, **kwargs)) if r is not None]
        return [_readable(r) for r in results]


def _readable(result: Any) -> Any:
    """numpy has no bfloat16, onnxruntime no complex numbers."""
    if not isinstance(result, torch.Tensor) or result.dtype not in UNREADABLE:
        return result
    return torch.view_as_real(result) if result.is_complex() else result.float()


@dataclasses.dataclass
class Sample:
    """One call of one operator."""

    operator: Any
    dtype: torch.dtype
    leaves: list[Any]
    tree: Any

    def __str__(self) -> str:
        tensors = [v for v in self.leaves if isinstance(v, torch.Tensor)]
        rest = [v for v in self.leaves if not isinstance(v, torch.Tensor)]
        shapes = ", ".join(f"{str(t.dtype)[6:]}{list(t.shape)}" for t in tensors)
        return f"{full_name(self.operator)}({shapes}; {rest})"

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The inputs of the model."""
        return [v for v in self.leaves if isinstance(v, torch.Tensor)]


def _torch_samples(operator: Any, dtype: torch.dtype, limit: int) -> list[Sample]:
    """Some of the samples of torch, spread over all of them."""
    torch.manual_seed(0)
    np.random.seed(0)
    found: dict[str, Sample] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in operator.sample_inputs("cpu", dtype):
            values = ((given.input, *given.args), given.kwargs)
            leaves, tree = pytree.tree_flatten(values)
            leaves = [v.detach() if isinstance(v, torch.Tensor) else v for v in leaves]
            sample = Sample(operator, dtype, leaves, tree)
            if all(t.layout is torch.strided for t in sample.tensors):
                found.setdefault(str(sample), sample)
            if len(found) == 100:
                break
    kept = list(found.values())
    return [kept[i * len(kept) // limit] for i in range(limit)] if len(kept) > limit else kept


def first_sample(operator: Any, dtype: torch.dtype) -> Sample | None:
    """The first sample of torch, none if the operator does not take this type."""
    kept = _torch_samples(operator, dtype, 1) if dtype in operator.dtypes else []
    return kept[0] if kept else None


def similar_samples(sample: Sample, limit: int = 4) -> list[Sample]:
    """Samples of torch that differ from a sample in the shapes of their tensors only."""

    def fixed(other: Sample) -> tuple[Any, ...]:
        kept = [(v.dtype, v.ndim) if isinstance(v, torch.Tensor) else v for v in other.leaves]
        return (*kept, other.tree)

    found = _torch_samples(sample.operator, sample.dtype, 100)
    return [o for o in found if str(o) != str(sample) and fixed(o) == fixed(sample)][:limit]


def _with_shape(sample: Sample, shape: tuple[int, ...]) -> Sample:
    """The same call with tensors of another shape."""

    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        flat = value.reshape(-1) if value.numel() else torch.ones(1, dtype=value.dtype)
        return flat[torch.arange(int(np.prod(shape))) % flat.numel()].reshape(shape).clone()

    return dataclasses.replace(sample, leaves=[changed(v) for v in sample.leaves])


def samples(operator: Any, dtype: torch.dtype, limit: int) -> Iterator[Sample]:
    """Some samples of torch, then without dimension and empty. Eager may refuse the last ones."""
    kept = _torch_samples(operator, dtype, limit) if dtype in operator.dtypes else []
    yield from kept
    with_tensors = [s for s in kept if s.tensors]
    if with_tensors and full_name(operator) not in ONLY_TORCH_SAMPLES:
        smallest = min(with_tensors, key=lambda s: len(s.tensors))
        yield from (_with_shape(smallest, shape) for shape in SHAPES)


def _eager(sample: Sample, model: torch.nn.Module) -> list[Any] | None:
    """The results of torch, None if it refuses, or if no model gives them (sparse, no tensor)."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            results = model(*(t.clone() for t in sample.tensors))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError):
        return None
    if not results or not all(isinstance(r, torch.Tensor | int | float | bool) for r in results):
        return None
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    return results if tensors and all(t.layout is torch.strided for t in tensors) else None


def exported(model: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> onnx.ModelProto:
    """The model of a call, which is not optimized."""
    return to_onnx(model, tensors, options=OPTIONS)


def exported_with_dynamic_dimensions(
    model: torch.nn.Module, tensors: tuple[torch.Tensor, ...]
) -> onnx.ModelProto:
    """The model of a call, whose dimensions may all change unless torch needs their size."""
    shapes = tuple(dict.fromkeys(range(t.ndim), torch.export.Dim.AUTO) for t in tensors)
    return to_onnx(model, tensors, dynamic_shapes=(shapes,), options=OPTIONS)


def _accepts(onx: onnx.ModelProto, tensors: list[torch.Tensor]) -> bool:
    """Whether the shapes are among those the inputs of a model declare: one size for one name."""
    sizes: dict[str, int] = {}
    for value, tensor in zip(onx.graph.input, tensors, strict=True):
        for dim, size in zip(value.type.tensor_type.shape.dim, tensor.shape, strict=True):
            known = sizes.setdefault(dim.dim_param, size) if dim.dim_param else dim.dim_value
            if known != size:
                return False
    return True


def explained(
    sample: Sample,
    exporter: Callable[..., onnx.ModelProto] = exported,
    refusals: type[Exception] = XoptimError,
    others: Iterable[Sample] = (),
) -> tuple[str, str]:
    """Exports and runs: ``right``, ``refused``, ``invalid`` (by torch) or ``wrong``, and why. The
    model runs on the other samples as well if it declares their shapes."""
    model = Call(sample.operator.op, sample.leaves, sample.tree)
    expected = _eager(sample, model)
    if expected is None:
        return "invalid", ""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            onx = exporter(model, tuple(sample.tensors))
    except refusals as e:
        return "refused", _reason(e)
    # sizes that a warning excludes are not compared
    others = () if any("The model is right for" in str(w.message) for w in told) else others
    try:
        onnx.checker.check_model(onx, full_check=True)
        got = run_ort(onx, sample.tensors)
    except Exception as e:
        return "wrong", f"{type(e).__name__}: {_reason(e)}"
    difference = _difference(sample, expected, got)
    for other in others:
        expected = _eager(other, Call(other.operator.op, other.leaves, other.tree))
        if not difference and expected is not None and _accepts(onx, other.tensors):
            try:
                difference = _difference(other, expected, run_ort(onx, other.tensors))
            except Exception as e:
                difference = f"{type(e).__name__}: {_reason(e)}"
            difference = difference and f"{difference}, shapes of {other}"[:300]
    return ("wrong", difference) if difference else ("right", "")


def _difference(sample: Sample, expected: list[Any], got: list[np.ndarray]) -> str:
    """How the results of a model differ from those of torch."""
    name = full_name(sample.operator)
    return _compared(expected, got, name in NOT_DETERMINED, name in TIES)


def _reason(error: BaseException) -> str:
    """The beginning of an error, of what caused it if it is not ours."""
    while error.__cause__ is not None and not isinstance(error, XoptimError):
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2]).split(", fx node")[0][:160]


def outcome(sample: Sample) -> str:
    """Exports and runs: ``right``, ``refused``, ``invalid`` (by torch), or the difference."""
    status, cause = explained(sample)
    return cause if status == "wrong" else status


def _compared(expected: list[Any], got: list[np.ndarray], structure: bool, ties: bool) -> str:
    """The difference; only types and shapes if random, or for the indices of equal values."""
    if len(expected) != len(got):
        return f"{len(expected)} results expected, {len(got)} found"
    for i, (e, value) in enumerate(zip(expected, got, strict=True)):
        array = to_numpy(e)
        if array.shape != value.shape:
            return f"result {i}: shape {array.shape} expected, {value.shape} found"
        if isinstance(e, torch.Tensor) and array.dtype != value.dtype:
            return f"result {i}: type {array.dtype} expected, {value.dtype} found"
        if structure or (ties and i > 0):
            continue
        close = np.isclose(array, value, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        if not close.all():
            return f"result {i}: {array[~close][:3]} expected, {value[~close][:3]} found"
    return ""
