"""The attention of a vision tower inside segments whose number is dynamic."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import run_ort

from torch_interpreter import to_onnx
from torch_interpreter.exporting.segments import attend_inside_segments

transformers = pytest.importorskip("transformers")


def layer(attention: str = "sdpa") -> torch.nn.Module:
    from transformers.models.minicpmv4_6 import modeling_minicpmv4_6 as found

    config = found.MiniCPMV4_6VisionConfig(hidden_size=16, num_attention_heads=2)
    config._attn_implementation = attention
    torch.manual_seed(0)
    return found.MiniCPMV4_6VisionAttention(config).eval()


class Tower(torch.nn.Module):
    def __init__(self, attention: str = "sdpa"):
        super().__init__()
        self.attention = layer(attention)

    def forward(self, x, cu_seqlens):
        return self.attention(x, cu_seqlens, None)[0]


def arguments(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    bounds = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    return torch.randn(1, sum(lengths), 16), bounds


def test_any_number_of_segments_of_any_length():
    tower = Tower()
    shapes = ({1: "patches"}, {0: "bounds"})
    onx = to_onnx(tower, arguments(4, 4), dynamic_shapes=shapes)
    for lengths in ((4, 4), (3, 5, 1), (6,)):
        args = arguments(*lengths)
        with torch.no_grad():
            expected = tower(*args).numpy()
        assert abs(run_ort(onx, args)[0] - expected).max() < 1e-5


def test_a_known_number_of_segments_is_a_loop():
    onx = to_onnx(Tower(), arguments(4, 4), dynamic_shapes=({1: "patches"}, None))
    assert sum(n.op_type == "Softmax" for n in onx.graph.node) == 2


def test_what_is_replaced_comes_back():
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as functions

    tower = Tower()
    before = functions["sdpa"], type(tower.attention).forward
    with attend_inside_segments(tower):
        assert functions["sdpa"] is not before[0]
        assert type(tower.attention).forward is not before[1]
    assert (functions["sdpa"], type(tower.attention).forward) == before
    with attend_inside_segments(torch.nn.Linear(2, 2)):
        assert functions["sdpa"] is before[0]
