"""Blocks of experts of transformers, exported, then optimized."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions
from xoptim.testing import run_onnxruntime

SIZES = {"hidden_size": 16, "num_experts_per_tok": 2}


def _mixtral(experts: str) -> torch.nn.Module:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    config = MixtralConfig(intermediate_size=24, num_local_experts=4, **SIZES)
    config._experts_implementation = experts
    return MixtralSparseMoeBlock(config)


def _qwen(experts: str) -> torch.nn.Module:
    """The weights of the experts may not be divided by their sum."""
    from transformers import Qwen3MoeConfig
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

    config = Qwen3MoeConfig(moe_intermediate_size=24, num_experts=6, norm_topk_prob=False, **SIZES)
    config._experts_implementation = experts
    return Qwen3MoeSparseMoeBlock(config)


def _deepseek(experts: str) -> torch.nn.Module:
    """Groups of experts are chosen first; all tokens have one more expert."""
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE

    config = DeepseekV3Config(
        moe_intermediate_size=24, n_routed_experts=8, n_group=4, topk_group=2, **SIZES
    )
    config._experts_implementation = experts
    return DeepseekV3MoE(config)


def _gpt_oss(experts: str) -> torch.nn.Module:
    """Biases, halves that are interleaved, bounds."""
    from transformers import GptOssConfig
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP

    config = GptOssConfig(intermediate_size=24, num_local_experts=4, **SIZES)
    config._experts_implementation = experts
    return GptOssMLP(config)


def _granite(experts: str) -> torch.nn.Module:
    """The experts are chosen by logits."""
    from transformers import GraniteMoeConfig
    from transformers.models.granitemoe.modeling_granitemoe import GraniteMoeMoE

    config = GraniteMoeConfig(intermediate_size=24, num_local_experts=4, **SIZES)
    config._experts_implementation = experts
    return GraniteMoeMoE(config)


@pytest.mark.parametrize("experts", ["batched_mm", "grouped_mm"])
@pytest.mark.parametrize("make", [_mixtral, _qwen, _deepseek, _gpt_oss, _granite])
def test_block(make, experts: str) -> None:
    """The operator takes the experts whose matrices are copied for each token; experts in groups
    stay, they were measured faster."""
    torch.manual_seed(0)
    block = make(experts).eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    options = OptimizationOptions(patterns="default+onnxruntime")
    model = to_onnx(
        block,
        (torch.randn(2, 5, 16),),
        dynamic_shapes=({0: "batch", 1: "seq"},),
        options=options,
    )
    found = [n.op_type for n in model.graph.node].count("MoE")
    assert found == (experts == "batched_mm")
    for shape in ((2, 5, 16), (1, 1, 16), (3, 2, 16)):
        x = torch.randn(*shape)
        expected = block(x)
        expected = expected[0] if isinstance(expected, tuple) else expected
        (got,) = run_onnxruntime(model, {model.graph.input[0].name: x.numpy()})[:1]
        np.testing.assert_allclose(expected.detach().numpy(), got, atol=1e-5)
