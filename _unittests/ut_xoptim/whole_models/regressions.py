"""Checks of the results of models that other tools got wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xoptim.testing import (
    assert_same_outputs,
    model_from_text,
    run_onnxruntime,
)

SETS = (None, "default", "default+onnxruntime")
#: onnxruntime puts this contrib operator in the main domain, where onnx's checker does not know it
ORT_ONLY = ("SimplifiedLayerNormalization",)
F32, I64 = np.float32, np.int64


def optimize(model: ModelProto, patterns: Any) -> ModelProto:
    """Optimizes with every check of the invariants."""
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=True),
    )
    optimized = builder.to_onnx(optimize=True)
    check_graph(builder.graph)
    if not any(n.op_type in ORT_ONLY for n in optimized.graph.node):
        onnx.checker.check_model(optimized)
    return optimized


def check(
    text: str | ModelProto,
    feeds: dict[str, np.ndarray],
    patterns: Any,
    tolerance: float = 1e-5,
    run: Callable[..., list[Any]] = run_onnxruntime,
    opset: int = 18,
) -> tuple[ModelProto, list[Any]]:
    """Compares a model and the optimized one on one input; returns the latter and its results."""
    model = model_from_text(text, opset) if isinstance(text, str) else text
    optimized = optimize(model, patterns)
    got = run(optimized, feeds)
    assert_same_outputs(run(model, feeds), got, tolerance, tolerance, "regression")
    return optimized, got


def count(model: ModelProto, op_type: str) -> int:
    """Number of nodes of one type in the main graph."""
    return sum(n.op_type == op_type for n in model.graph.node)
