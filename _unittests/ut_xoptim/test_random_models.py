"""Random models, optimized with every pattern of the default sets, give the same results."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from ut_xoptim.random_models import RandomModel
from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import assert_same_outputs, run_onnxruntime


def _feeds(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sizes["a"])
    return {
        "X": rng.standard_normal((sizes["a"], sizes["b"])).astype(np.float32),
        "Z": rng.standard_normal((sizes["a"], sizes["b"])).astype(np.float32),
        "V": rng.standard_normal((sizes["a"], 1, 6)).astype(np.float32),
    }


def check_random_model(seed: int, n_nodes: int = 25) -> int:
    """Optimizes one random model, compares results at two sizes. Returns the nodes removed."""
    model = RandomModel(seed, n_nodes).model()
    onnx.checker.check_model(model, full_check=True)
    expected = [run_onnxruntime(model, _feeds(s)) for s in RandomModel.SIZES]
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns="default+onnxruntime", verifies=True),
    )
    optimized = builder.to_onnx(optimize=True)
    builder.store.check()
    onnx.checker.check_model(optimized)
    for sizes, outputs in zip(RandomModel.SIZES, expected, strict=True):
        got = run_onnxruntime(optimized, _feeds(sizes))
        assert_same_outputs(outputs, got, 1e-4, 1e-4, f"seed {seed}")
    return len(model.graph.node) - len(optimized.graph.node)


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_models(start: int) -> None:
    removed = [check_random_model(seed) for seed in range(start, start + 20)]
    assert sum(removed) > 0
