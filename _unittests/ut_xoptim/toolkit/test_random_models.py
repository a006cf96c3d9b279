"""Random models, optimized with walks, sequences and equilibria, give the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xbuilder.passes.public_operators import private_operators
from xoptim.testing import assert_same_outputs, run_onnxruntime
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    MergeOptimizer,
    SequentialGraphRewriter,
    in2out,
    out2in,
)

REWRITERS: dict[str, Any] = {
    "merge": MergeOptimizer(),
    "forward": in2out("default+onnxruntime", ignore_newtrees=False, name="forward"),
    "backward": out2in("default+onnxruntime", ignore_newtrees=False, name="backward"),
    "once": out2in("default+onnxruntime", name="once"),
    "nested": EquilibriumGraphRewriter(
        [MergeOptimizer(), SequentialGraphRewriter(in2out("default", name="first"), "onnxruntime")],
        final_rewriters=[out2in("default", name="last")],
        cleanup_rewriters=[MergeOptimizer()],
    ),
}


def feeds_of(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sizes["a"])
    shapes = {"X": (sizes["a"], sizes["b"]), "Z": (sizes["a"], sizes["b"]), "V": (sizes["a"], 1, 6)}
    return {k: rng.standard_normal(shape).astype(np.float32) for k, shape in shapes.items()}


def check_rewriter(name: str, seed: int) -> int:
    """Rewrites one random model. Returns the number of nodes removed."""
    model = RandomModel(seed, 25).model()
    options = OptimizationOptions(patterns=[REWRITERS[name]], verifies=True)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    optimized = builder.to_onnx(optimize=True)
    check_graph(builder.graph)
    if not private_operators(builder.graph):
        onnx.checker.check_model(optimized)
    for sizes in RandomModel.SIZES:
        feeds = feeds_of(sizes)
        got = run_onnxruntime(optimized, feeds)
        assert_same_outputs(run_onnxruntime(model, feeds), got, 1e-4, 1e-4, f"seed {seed}")
    return len(model.graph.node) - len(optimized.graph.node)


@pytest.mark.parametrize("name", REWRITERS)
def test_random_models(name: str) -> None:
    assert sum(check_rewriter(name, seed) for seed in range(4)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", REWRITERS)
def test_more_random_models(name: str) -> None:
    assert sum(check_rewriter(name, seed) for seed in range(4, 30)) > 0
