"""Backends of torch.compile that run, or train, with ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import torch
from ut_torch_interpreter.export_checks import run_ort

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions


def inference_backend() -> tuple[list[onnx.ModelProto], Callable[..., Any]]:
    """The models made so far, and the backend that makes them and runs them."""
    models: list[onnx.ModelProto] = []

    def backend(gm, args):
        onx = to_onnx(gm, tuple(args), options=OptimizationOptions(patterns=None))
        models.append(onx)
        return lambda *values: tuple(torch.from_numpy(v) for v in run_ort(onx, _flat(values)))

    return models, backend


def _flat(values: Any) -> list[Any]:
    """The arguments of the model; torch gives None where it needs nothing."""
    return [v for v in values if isinstance(v, torch.Tensor | int | float)]


def training_backend(**kwargs: Any) -> tuple[list[onnx.ModelProto], Callable[..., Any]]:
    """The models made so far, forward then backward, and the backend that makes them.

    Every output is found by its name, which holds its place.

    :param kwargs: given to to_onnx
    """
    from torch._dynamo.backends.common import aot_autograd

    models: list[onnx.ModelProto] = []

    def compiler(gm, args):
        onx = to_onnx(gm, tuple(args), options=OptimizationOptions(patterns=None), **kwargs)
        models.append(onx)
        names = [o.name for o in onx.graph.output]
        (outputs,) = next(n for n in gm.graph.nodes if n.op == "output").args

        def run(*values):
            got = dict(zip(names, run_ort(onx, _flat(values)), strict=True))
            results = []
            for i, output in enumerate(outputs):
                value = None if output is None else torch.from_numpy(got.pop(f"output_{i}"))
                symbolic = output is not None and isinstance(output.meta["val"], torch.SymInt)
                results.append(int(value) if symbolic else value)
            assert not got
            return tuple(results)

        return run

    return models, aot_autograd(fw_compiler=compiler, bw_compiler=compiler)
