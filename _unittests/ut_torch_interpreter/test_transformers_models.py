"""Models of transformers with random weights."""

from __future__ import annotations

import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions

transformers = pytest.importorskip("transformers")
SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def ids(batch, seq):
    return torch.randint(0, 99, (batch, seq))


def padded(batch, seq):
    mask = torch.ones(batch, seq, dtype=torch.int64)
    mask[-1, : seq // 3] = 0
    return mask


def check_model(model, make, dynamic_shapes, others, **kwargs):
    """make(*sizes) gives named arguments; every call gives new ones, caches are modified."""
    onx = to_onnx(
        model,
        kwargs=make(),
        dynamic_shapes=dynamic_shapes,
        options=OptimizationOptions(patterns=None),
        **kwargs,
    )
    onnx.checker.check_model(onx, full_check=True)
    for sizes in [(), *others]:
        values = make(*sizes)
        leaves = torch.utils._pytree.tree_leaves(values)
        feeds = [v.clone() for v in leaves if isinstance(v, torch.Tensor)]
        with torch.no_grad():
            expected = model(**values)
        expected = dict(expected) if hasattr(expected, "to_tuple") else expected
        assert_same(expected, run_ort(onx, feeds), 1e-4)
    return onx


def test_bert():
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()

    def make(batch=2, seq=7):
        zeros = torch.zeros(batch, seq, dtype=torch.int64)
        return {
            "input_ids": ids(batch, seq),
            "attention_mask": padded(batch, seq),
            "token_type_ids": zeros,
        }

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()}
    onx = check_model(model, make, dynamic, [(3, 11), (2, 5)])
    assert onx.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"


LLAMA = {**SIZES, "num_key_value_heads": 2}


def test_llama():
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.llama = llama

        def forward(self, input_ids, attention_mask):
            return self.llama(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).logits

    def make(batch=2, seq=7):
        return {"input_ids": ids(batch, seq), "attention_mask": padded(batch, seq)}

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()}
    check_model(Model(), make, dynamic, [(3, 11)])


def test_llama_with_a_cache():
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()

    def make(batch=2, seq=4, past=3):
        cache = transformers.DynamicCache()
        for i in range(2):
            cache.update(torch.rand(batch, 2, past, 8), torch.rand(batch, 2, past, 8), i)
        mask = torch.ones(batch, seq + past, dtype=torch.int64)
        return {"input_ids": ids(batch, seq), "attention_mask": mask, "past_key_values": cache}

    layer = {0: "batch", 2: "past"}
    dynamic = {
        "input_ids": {0: "batch", 1: "seq"},
        "attention_mask": {0: "batch", 1: "total"},
        "past_key_values": [[layer] * 2] * 2,
    }
    onx = check_model(model, make, dynamic, [(3, 2, 7)])
    assert "past_key_values_key_cache_0" in {i.name for i in onx.graph.input}
