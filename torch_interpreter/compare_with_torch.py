"""Finds the first module, then the first operator, whose ONNX version differs from torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import ModelProto

from .checking.first_difference import TorchComparison, compare_graphs
from .checking.validation import clone_arguments, feeds_of
from .common.export_options import ExportOptions
from .inputs.inputs import name_inputs, split_arguments
from .to_onnx import export_with_torch


def compare_with_torch(
    mod: torch.nn.Module | torch.export.ExportedProgram,
    onx: ModelProto | str | Path,
    args: Sequence[Any] | Mapping[str, Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    export_options: ExportOptions | str | None = None,
    tolerance: float = 1e-4,
    folder: str | Path | None = None,
) -> TorchComparison:
    """Runs a torch module and its ONNX model, and compares every result they have in common.

    The module is exported again, and runs operator by operator. The memory must be able to hold the
    model and all its results.

    :param mod: the module or the program the model was made from
    :param onx: the model :func:`to_onnx` made, optimized or not, or its file
    :param args: positional arguments, or a dictionary of named ones
    :param kwargs: named arguments
    :param dynamic_shapes: those given to :func:`to_onnx`
    :param export_options: those given to ``to_onnx()``
    :param tolerance: the relative tolerance
    :param folder: writes there a model, its inputs and a script that run the first difference alone
    :return: the comparison; ``first`` is the first difference, with its module, its operator, its
        lines of code and its nodes
    :raises ValidationError: the model does not run, or was made from something else

    ::

        found = compare_with_torch(model, onx, (x,), folder="replay")
        if not found.ok:
            print(found)
    """
    arguments, named = split_arguments(args, kwargs)
    program = export_with_torch(mod, arguments, named, dynamic_shapes, export_options)
    model = onx if isinstance(onx, ModelProto) else onnx.load(onx)
    names = [i.name for i in model.graph.input]
    name_inputs(program.inputs, names)
    leaves = clone_arguments(torch.utils._pytree.tree_leaves((arguments, named)))
    given = {i.node: value for i, value in zip(program.inputs, leaves, strict=True)}
    given |= {node: tensor for node, (_, tensor) in program.weights.items()}
    holders = [n for n in program.module.graph.nodes if n.op == "placeholder"]
    return compare_graphs(
        program.module,
        [given[node] for node in holders],
        program.outputs,
        model,
        feeds_of(program.inputs, leaves),
        tolerance,
        folder,
    )
