"""Exports a model and compares onnxruntime with eager, at the sizes of the export and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from torch_interpreter import to_onnx
from torch_interpreter.inputs.inputs import to_numpy
from xbuilder import OptimizationOptions


class Fct(torch.nn.Module):
    """A module around a function."""

    def __init__(self, fct: Callable[..., Any]):
        super().__init__()
        self.fct = fct

    def forward(self, *args):
        return self.fct(*args)


class Mlp(torch.nn.Module):
    """Two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Fct1(Fct):
    def forward(self, x):
        return self.fct(x)


class Fct2(Fct):
    def forward(self, x, y):
        return self.fct(x, y)


class Fct3(Fct):
    def forward(self, x, y, z):
        return self.fct(x, y, z)


def module_of(fct: Callable[..., Any], n_args: int) -> torch.nn.Module:
    """Wraps a function of n_args tensors."""
    return {1: Fct1, 2: Fct2, 3: Fct3}.get(n_args, Fct)(fct)


def run_ort(onx: onnx.ModelProto, args: Sequence[Any]) -> list[np.ndarray]:
    """Runs onnxruntime on flat arguments, None and python values kept as constants are skipped."""
    opts = onnxruntime.SessionOptions()
    opts.log_severity_level = 3
    opts.intra_op_num_threads = 1
    sess = onnxruntime.InferenceSession(
        onx.SerializeToString(), opts, providers=["CPUExecutionProvider"]
    )
    tensors = [to_numpy(a) for a in args]
    names = [i.name for i in sess.get_inputs()]
    assert len(tensors) == len(names), f"{len(tensors)} values for inputs {names}"
    return sess.run(None, dict(zip(names, tensors, strict=True)))


def assert_same(expected: Any, got: Sequence[np.ndarray], atol: float) -> None:
    """Same number of outputs, types, shapes and values."""
    flat = [e for e in torch.utils._pytree.tree_leaves(expected) if e is not None]
    assert len(flat) == len(got), f"{len(flat)} outputs expected, {len(got)} found"
    for e, value in zip(flat, got, strict=True):
        array = to_numpy(e)
        assert array.shape == value.shape, f"shape {array.shape} expected, {value.shape} found"
        if isinstance(e, torch.Tensor):
            assert array.dtype == value.dtype, f"{array.dtype} expected, {value.dtype} found"
        if array.dtype.kind not in "biufc":
            array, value = array.astype(np.float32), value.astype(np.float32)
        np.testing.assert_allclose(array, value, atol=atol, rtol=atol)


def check_export(
    model: torch.nn.Module | Callable[..., Any],
    args: tuple[Any, ...],
    dynamic_shapes: Any = None,
    others: Sequence[tuple[Any, ...]] = (),
    atol: float = 1e-5,
    optimize: bool = True,
    **kwargs: Any,
) -> onnx.ModelProto:
    """Exports, checks with onnx, runs with onnxruntime, compares with eager.

    :param model: module or function of tensors
    :param args: arguments of the export
    :param dynamic_shapes: dynamic dimensions
    :param others: other arguments, with other sizes
    :param atol: absolute and relative tolerance
    :param optimize: runs the passes of the builder, without patterns
    :param kwargs: given to to_onnx
    :return: the model
    """
    if not isinstance(model, torch.nn.Module):
        model = module_of(model, len(args))
    kwargs.setdefault("options", OptimizationOptions(patterns=None))
    onx = to_onnx(model, args, dynamic_shapes=dynamic_shapes, optimize=optimize, **kwargs)
    onnx.checker.check_model(onx, full_check=True)
    n_inputs = len(onx.graph.input)
    for values in [args, *others]:
        with torch.no_grad():
            expected = model(*(a.clone() if isinstance(a, torch.Tensor) else a for a in values))
        leaves = torch.utils._pytree.tree_leaves(values)
        if len(leaves) != n_inputs:
            leaves = [v for v in leaves if isinstance(v, torch.Tensor)]
        assert_same(expected, run_ort(onx, leaves), atol)
    return onx


def op_types(onx: onnx.ModelProto) -> list[str]:
    """The operators of the main graph, in order."""
    return [n.op_type for n in onx.graph.node]
