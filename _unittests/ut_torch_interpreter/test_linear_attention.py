"""Linear attention of transformers, one step, exported, then optimized."""

from __future__ import annotations

import numpy as np
import torch

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions
from xoptim.testing import run_onnxruntime


class _Step(torch.nn.Module):
    """What Qwen3-Next does when it generates one token."""

    def forward(self, query, key, value, decay, beta, state):
        from transformers.models.qwen3_next import modeling_qwen3_next as module

        return module.torch_recurrent_gated_delta_rule(
            query,
            key,
            value,
            decay,
            beta,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )


def _inputs(batch: int) -> tuple[torch.Tensor, ...]:
    shapes = (batch, 1, 4, 8), (batch, 1, 4, 8), (batch, 1, 4, 6), (batch, 1, 4), (batch, 1, 4)
    query, key, value, decay, beta = (torch.rand(*shape) for shape in shapes)
    return query, key, value, -decay, beta, torch.randn(batch, 4, 8, 6)


def test_step() -> None:
    torch.manual_seed(0)
    model = to_onnx(
        _Step(),
        _inputs(2),
        dynamic_shapes=({0: "batch"},) * 6,
        options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    assert [n.op_type for n in model.graph.node].count("LinearAttention") == 1
    names = [i.name for i in model.graph.input]
    for batch in (2, 1, 5):
        inputs = _inputs(batch)
        expected = _Step()(*inputs)
        got = run_onnxruntime(model, dict(zip(names, (i.numpy() for i in inputs), strict=True)))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-5)
