"""Blocks of experts of transformers, exported, then optimized."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions
from xoptim.testing import run_onnxruntime


def _mixtral() -> torch.nn.Module:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    config = MixtralConfig(
        hidden_size=16, intermediate_size=24, num_local_experts=4, num_experts_per_tok=2
    )
    config._experts_implementation = "batched_mm"
    return MixtralSparseMoeBlock(config)


def _qwen() -> torch.nn.Module:
    """The weights of the experts may not be divided by their sum."""
    from transformers import Qwen3MoeConfig
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

    config = Qwen3MoeConfig(
        hidden_size=16,
        moe_intermediate_size=24,
        num_experts=6,
        num_experts_per_tok=3,
        norm_topk_prob=False,
    )
    config._experts_implementation = "batched_mm"
    return Qwen3MoeSparseMoeBlock(config)


@pytest.mark.parametrize("make", [_mixtral, _qwen])
def test_block(make) -> None:
    torch.manual_seed(0)
    block = make().eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    options = OptimizationOptions(patterns="default+onnxruntime")
    model = to_onnx(
        block,
        (torch.randn(2, 5, 16),),
        dynamic_shapes=({0: "batch", 1: "seq"},),
        options=options,
    )
    assert [n.op_type for n in model.graph.node].count("MoE") == 1
    for shape in ((2, 5, 16), (1, 1, 16), (3, 2, 16)):
        x = torch.randn(*shape)
        expected = block(x)
        expected = expected[0] if isinstance(expected, tuple) else expected
        (got,) = run_onnxruntime(model, {model.graph.input[0].name: x.numpy()})[:1]
        np.testing.assert_allclose(expected.detach().numpy(), got, atol=1e-5)
