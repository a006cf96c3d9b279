"""Attention found in exported transformers: random weights, every mask, with and without cache."""

from __future__ import annotations

import collections

import numpy as np
import onnxruntime
import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder import GraphBuilder, OptimizationOptions

transformers = pytest.importorskip("transformers")
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
TEXT = {**SIZES, "vocab_size": 99, "max_position_embeddings": 64}
SHARED = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {"vocab_size": 99, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
T5 = {"vocab_size": 99, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4}
IMAGE = {**SIZES, "image_size": 32, "patch_size": 8}


class Logits(torch.nn.Module):
    """A decoder without cache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits


class Cached(Logits):
    """A decoder, keys and values of the steps before are inputs, the next ones are outputs."""

    def forward(self, ids, mask, k0, v0, k1, v1):
        cache = transformers.DynamicCache()
        cache.update(k0, v0, 0)
        cache.update(k1, v1, 1)
        out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        layers = out.past_key_values.layers
        return (out.logits, *(t for layer in layers for t in (layer.keys, layer.values)))


class Hidden(Logits):
    """An encoder of texts."""

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


class Pixels(Logits):
    """An encoder of images."""

    def forward(self, pixels):
        return self.model(pixel_values=pixels).last_hidden_state


def texts(batch, steps):
    """The first sequence is padded before, the second one after."""
    mask = torch.ones(batch, steps, dtype=torch.int64)
    mask[0, :2], mask[1, -2:] = 0, 0
    return torch.randint(3, 99, (batch, steps)), mask


def steps_after(heads):
    """Inputs of a decoder whose cache has so many heads; the cache may be empty."""

    def make(batch, steps):
        past = 5 if batch == 2 else 0
        mask = torch.ones(batch, steps + past, dtype=torch.int64)
        mask[0, :2] = 0
        cache = [torch.randn(batch, heads, past, 16) for _ in range(4)]
        return torch.randint(3, 99, (batch, steps)), mask, *cache

    return make


def images(batch, steps):
    return (torch.rand(batch, 3, 32, 32),)


PAIR = ({0: "batch", 1: "seq"},) * 2
CACHE = (*({0: "batch", 1: n} for n in ("seq", "total")), *[{0: "batch", 2: "past"}] * 4)
#: class, configuration, its values, wrapper, inputs, dynamic dimensions
FAMILIES = {
    "bert": ("BertModel", "BertConfig", TEXT, Hidden, texts, PAIR),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, Logits, texts, PAIR),
    "gpt2 cache": ("GPT2LMHeadModel", "GPT2Config", GPT2, Cached, steps_after(4), CACHE),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SHARED, Logits, texts, PAIR),
    "llama cache": ("LlamaForCausalLM", "LlamaConfig", SHARED, Cached, steps_after(2), CACHE),
    "mistral": ("MistralForCausalLM", "MistralConfig", SHARED, Logits, texts, PAIR),
    "qwen2 cache": ("Qwen2ForCausalLM", "Qwen2Config", SHARED, Cached, steps_after(2), CACHE),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", SHARED, Logits, texts, PAIR),
    "gemma": (
        "GemmaForCausalLM", "GemmaConfig", {**SHARED, "head_dim": 16}, Logits, texts, PAIR,
    ),
    "clip": ("CLIPVisionModel", "CLIPVisionConfig", IMAGE, Pixels, images, ({0: "batch"},)),
    "vit": ("ViTModel", "ViTConfig", IMAGE, Pixels, images, ({0: "batch"},)),
    "t5": ("T5EncoderModel", "T5Config", T5, Hidden, texts, PAIR),
}  # fmt: skip


def run(model, feeds):
    """Outputs of onnxruntime, which changes nothing by itself."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def check(family, implementation, opset, expected, patterns="default"):
    """Exports a family and optimizes it: the operators that are expected, equal outputs."""
    cls, config, values, wrapper, make, dynamic = FAMILIES[family]
    torch.manual_seed(0)
    settings = getattr(transformers, config)(**values, attn_implementation=implementation)
    model = wrapper(getattr(transformers, cls)(settings)).eval()
    plain = to_onnx(
        model,
        make(2, 7),
        dynamic_shapes=dynamic,
        target_opset=opset,
        options=OptimizationOptions(patterns=None),
    )
    builder = GraphBuilder(
        plain,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns),
    )
    optimized = builder.to_onnx()
    assert not optimized.functions
    counts = collections.Counter(n.op_type for n in optimized.graph.node)
    assert {k: counts[k] for k in expected} == expected
    for batch, steps in ((2, 7), (3, 11), (2, 1) if wrapper is Cached else (2, 5)):
        tensors = make(batch, steps)
        feeds = {i.name: t.numpy() for i, t in zip(plain.graph.input, tensors, strict=True)}
        for a, b in zip(run(plain, feeds), run(optimized, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "implementation", "opset", "expected"),
    [
        ("llama cache", "eager", 23, {"Attention": 2, "RotaryEmbedding": 4, "Softmax": 0}),
        ("bert", "sdpa", 23, {"Attention": 2, "Softmax": 0}),
    ],
)
def test_attention(family, implementation, opset, expected):
    check(family, implementation, opset, expected)


@pytest.mark.slow
def test_attention_of_onnxruntime():
    expected = {"Attention": 2, "MultiHeadAttention": 0, "Softmax": 0}
    check("clip", "sdpa", 18, expected, "default+onnxruntime")


@pytest.mark.long
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_families(family, implementation):
    """The mask of T5 is added to a bias, the one that is hidden is not seen."""
    left = 2 if family == "t5" else 0
    check(family, implementation, 23, {"Attention": 2 - left, "Softmax": left})


@pytest.mark.long
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_onnxruntime(family, implementation):
    """Every pattern asked, before opset 23: outputs are equal whatever is found."""
    patterns = "default+onnxruntime-MultiHeadAttention3D+MultiHeadAttention3D(with_mask=True)"
    rotary = 4 if FAMILIES[family][2] is SHARED or family == "gemma" else 0
    check(family, implementation, 18, {"RotaryEmbedding": rotary}, patterns)
