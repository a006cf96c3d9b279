"""Caches of transformers: every dimension keeps the name the user gives."""

from __future__ import annotations

import copy
import functools

import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.inputs.caches import register_caches
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

transformers = pytest.importorskip("transformers")
Dim = torch.export.Dim
SIZES = {"vocab_size": 99, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
DECODERS = {
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SIZES, num_hidden_layers=2, num_key_value_heads=2)
    ),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**SIZES, num_hidden_layers=1, num_key_value_heads=2)
    ),
}


def dims(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def exported(model, kwargs, dynamic_shapes):
    """Exports, compares with torch, returns the dimensions of the inputs and of the outputs."""
    leaves = torch.utils._pytree.tree_leaves
    copies = copy.deepcopy(kwargs)
    register_caches(copies)
    feeds = [v.clone() for v in leaves(copies) if isinstance(v, torch.Tensor)]
    options = OptimizationOptions(patterns=None)
    onx = to_onnx(model, kwargs=kwargs, dynamic_shapes=dynamic_shapes, options=options)
    onnx.checker.check_model(onx, full_check=True)
    with torch.no_grad():
        expected = model(**copies)
    assert_same(dict(expected), run_ort(onx, feeds), 1e-4)
    inputs = {i.name: dims(i) for i in onx.graph.input}
    return inputs, [dims(o) for o in onx.graph.output]


def bounded(name):
    """The bounds torch asks for."""
    return Dim(name, min=4 if name == "total" else 2, max=2048 if name == "total" else 1024)


@pytest.mark.parametrize("dim", [str, bounded], ids=["names", "dims"])
@pytest.mark.parametrize("name", DECODERS)
def test_dynamic_cache(name, dim):
    """The cache comes before the mask: the order of the signature is another one."""
    torch.manual_seed(0)
    model = DECODERS[name]().eval()
    layers, batch, seq, past = model.config.num_hidden_layers, 2, 4, 3
    cache = transformers.DynamicCache()
    for i in range(layers):
        cache.update(torch.rand(batch, 2, past, 8), torch.rand(batch, 2, past, 8), i)
    kwargs = {
        "input_ids": torch.randint(0, 99, (batch, seq)),
        "past_key_values": cache,
        "attention_mask": torch.ones(batch, seq + past, dtype=torch.int64),
    }
    names = {n: dim(n) for n in ("batch", "seq", "past", "total")}
    layer = {0: names["batch"], 2: names["past"]}
    dynamic = {
        "past_key_values": [[layer] * layers] * 2,
        "input_ids": {0: names["batch"], 1: names["seq"]},
        "attention_mask": {0: names["batch"], 1: names["total"]},
    }
    inputs, outputs = exported(model, kwargs, dynamic)
    assert inputs.pop("input_ids") == ["batch", "seq"]
    assert inputs.pop("attention_mask") == ["batch", "total"]
    assert len(inputs) == 2 * layers
    assert set(map(tuple, inputs.values())) == {("batch", 2, "past", 8)}
    assert outputs == [["batch", "seq", 99], *[["batch", 2, "past+seq", 8]] * (2 * layers)]


def test_a_model_returns_the_cache_it_was_not_given():
    torch.manual_seed(0)
    model = DECODERS["llama"]().eval()
    ids = torch.randint(0, 99, (2, 5))
    dynamic = {"input_ids": {0: "batch", 1: "seq"}}
    inputs, outputs = exported(model, {"input_ids": ids}, dynamic)
    assert inputs == {"input_ids": ["batch", "seq"]}
    assert outputs == [["batch", "seq", 99], *[["batch", 2, "seq", 8]] * 4]


class Updated(torch.nn.Module):
    """An operator in place: torch decomposes the graph, and the cache is made once more."""

    def forward(self, x, past):
        keys, values = past.update(x, x, 0)
        total = keys + values
        total += 1
        return total, past


@pytest.mark.parametrize("window", [None, 16])
def test_a_dynamic_cache_in_a_graph_that_is_decomposed(window):
    from transformers import cache_utils

    layer = cache_utils.DynamicLayer()
    if window is not None:
        layer = cache_utils.DynamicSlidingWindowLayer(window)
    cache = transformers.DynamicCache()
    cache.layers = [layer]
    cache.update(torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), 0)
    x, copied = torch.randn(2, 2, 1, 8), copy.deepcopy(cache)
    onx = to_onnx(Updated(), (x, cache))
    feeds = [x, copied.layers[0].keys, copied.layers[0].values]
    found = run_ort(onx, [v.clone() for v in feeds])
    total, past = Updated()(x, copied)
    assert_same([total, past.layers[0].keys, past.layers[0].values], found, 1e-5)


def test_layers_of_a_dynamic_cache():
    from transformers import cache_utils

    cache = transformers.DynamicCache()
    cache.layers = [cache_utils.DynamicLayer(), cache_utils.DynamicSlidingWindowLayer(4)]
    cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), 1)
    register_caches(cache)
    leaves, tree = torch.utils._pytree.tree_flatten(cache)
    empty, sliding = torch.utils._pytree.tree_unflatten(leaves, tree).layers
    assert len(leaves) == 2 and not empty.is_initialized
    assert (sliding.sliding_window, sliding.cumulative_length) == (4, 3)
    assert sliding.keys is leaves[0] and sliding.values is leaves[1]


def static_cache(model, batch, capacity):
    cache = transformers.StaticCache(model.config, max_cache_len=capacity)
    cache.early_initialization(batch, 2, 8, torch.float32, torch.device("cpu"))
    return cache


def test_static_cache():
    torch.manual_seed(0)
    model = DECODERS["llama"]().eval()
    kwargs = {
        "past_key_values": static_cache(model, 2, 16),
        "input_ids": torch.randint(0, 99, (2, 4)),
    }
    layers = [{0: "batch"}] * 2
    dynamic = {
        "input_ids": {0: "batch", 1: "seq"},
        "past_key_values": {"key_cache": layers, "value_cache": layers},
    }
    inputs, outputs = exported(model, kwargs, dynamic)
    assert inputs.pop("input_ids") == ["batch", "seq"]
    assert [inputs.pop(f"past_key_values_length_{i}") for i in range(2)] == [[], []]
    assert list(inputs.values()) == [["batch", 2, 16, 8]] * 4
    assert outputs[0] == ["batch", "seq", 99] and ["batch", 2, 16, 8] in outputs


def test_static_cache_without_tensors():
    model = DECODERS["llama"]()
    cache = transformers.StaticCache(model.config, max_cache_len=16)
    register_caches(cache)
    with pytest.raises(OptionError, match="call early_initialization on it"):
        torch.utils._pytree.tree_leaves(cache)


def test_layers_that_are_refused():
    from transformers import cache_utils

    layer = cache_utils.StaticSlidingWindowLayer(max_cache_len=16, sliding_window=4)
    cache = cache_utils.Cache(layers=[layer])
    cache.update(torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8), 0)
    register_caches(cache)
    with pytest.raises(OptionError, match="StaticSlidingWindowLayer whose window is full"):
        torch.utils._pytree.tree_leaves(cache)
    cache.layers = [cache_utils.Fp8QuantizedLayer()]
    with pytest.raises(OptionError, match="Fp8QuantizedLayer holds quantized states"):
        torch.utils._pytree.tree_leaves(cache)


def gemma():
    config = transformers.Gemma3TextConfig(
        **SIZES,
        num_hidden_layers=2,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=16,
        layer_types=["sliding_attention", "full_attention"],
    )
    torch.manual_seed(0)
    return transformers.Gemma3ForCausalLM(config).eval()


@pytest.mark.parametrize(("past", "other"), [(5, 20), (20, 5), (14, 15)])
def test_a_window_in_a_cache(past, other):
    """Positions are those of all the tokens, whether the window forgot some or not."""
    model, ids = gemma(), torch.randint(0, 99, (2, 30))
    with torch.no_grad():
        first, second = (model(ids[:, :n])["cache"] for n in (past, other))
    states = [{2: "window"}, {2: "past"}]
    onx = to_onnx(
        model,
        kwargs={"input_ids": ids[:, past : past + 1], "cache": first},
        dynamic_shapes={"cache": {"key_cache": states, "value_cache": states}},
        options=OptimizationOptions(patterns=None),
    )
    token = ids[:, other : other + 1]
    feeds = [token, *(t.clone() for t in torch.utils._pytree.tree_leaves(second))]
    with torch.no_grad():
        expected = model(input_ids=token, cache=second)
    assert_same(dict(expected), run_ort(onx, feeds), 1e-4)
    kept = [dims(o)[2] for o in onx.graph.output[1:]]
    assert kept == ["min(15,window+1)", "past+1"] * 2


def test_a_window_and_padding():
    """Several tokens and a mask, with a prompt that is shorter than the window, then longer."""
    model, ids = gemma(), torch.randint(0, 99, (2, 30))
    mask = torch.ones((2, 30), dtype=torch.int64)
    mask[1, :7] = 0
    calls = []
    for past, seq in ((5, 3), (20, 4)):
        with torch.no_grad():
            cache = model(ids[:, :past], attention_mask=mask[:, :past])["cache"]
        step, total = ids[:, past : past + seq], mask[:, : past + seq]
        calls.append({"input_ids": step, "cache": cache, "attention_mask": total})
    states = [{0: "batch", 2: "window"}, {0: "batch", 2: "past"}]
    onx = to_onnx(
        model,
        kwargs=copy.deepcopy(calls[0]),
        dynamic_shapes={
            "input_ids": {0: "batch", 1: "seq"},
            "cache": {"key_cache": states, "value_cache": states},
            "attention_mask": {0: "batch", 1: "past+seq"},
        },
        options=OptimizationOptions(patterns=None),
    )
    for call in calls:
        feeds = [t.clone() for t in torch.utils._pytree.tree_leaves(call)]
        with torch.no_grad():
            expected = model(**copy.deepcopy(call))
        assert_same(dict(expected), run_ort(onx, feeds), 1e-4)


def test_a_prompt_longer_than_the_window():
    model, ids = gemma(), torch.randint(0, 99, (2, 30))
    onx = to_onnx(model, kwargs={"input_ids": ids[:, :5]}, dynamic_shapes={"input_ids": {1: "seq"}})
    assert [dims(o)[2] for o in onx.graph.output[1:]] == ["min(15,seq)", "seq"] * 2
    for length in (2, 15, 16, 30):
        with torch.no_grad():
            expected = model(ids[:, :length])
        assert_same(dict(expected), run_ort(onx, (ids[:, :length],)), 1e-4)


def test_windows_only():
    """The mask is that of the last tokens, the positions are given."""
    sizes = {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 2, "sliding_window": 4}
    torch.manual_seed(0)
    model = transformers.MistralForCausalLM(transformers.MistralConfig(**sizes)).eval()
    ids, calls = torch.randint(0, 99, (2, 12)), []
    mask = torch.ones((2, 12), dtype=torch.int64)
    mask[1, :5] = 0
    for past in (2, 8):
        with torch.no_grad():
            cache = model(ids[:, :past], attention_mask=mask[:, :past])["cache"]
        step, total = ids[:, past : past + 1], mask[:, : past + 1]
        positions = torch.full((2, 1), past)
        call = {"input_ids": step, "cache": cache, "attention_mask": total}
        calls.append({**call, "position_ids": positions})
    states = [{2: "window"}] * 2
    shapes = {"cache": {"key_cache": states, "value_cache": states}}
    shapes["attention_mask"] = {1: "total"}
    onx = to_onnx(model, kwargs=copy.deepcopy(calls[0]), dynamic_shapes=shapes)
    for call in calls:
        feeds = [t.clone() for t in torch.utils._pytree.tree_leaves(call)]
        with torch.no_grad():
            expected = model(**copy.deepcopy(call))
        assert_same(dict(expected), run_ort(onx, feeds), 1e-4)
    del calls[0]["position_ids"]
    with pytest.warns(UserWarning, match="right for less than 4 tokens"):
        to_onnx(model, kwargs=calls[0], dynamic_shapes=shapes)


def test_a_static_window_at_another_length():
    model, ids = gemma(), torch.randint(0, 99, (2, 12))
    caches = [transformers.StaticCache(model.config, max_cache_len=32) for _ in range(2)]
    with torch.no_grad():
        for cache, length in zip(caches, (5, 7), strict=True):
            model(ids[:, :length], cache=cache)
    kwargs = {"input_ids": ids[:, 5:6], "cache": caches[0]}
    onx = to_onnx(model, kwargs=kwargs, options=OptimizationOptions(patterns=None))
    feeds = [ids[:, 7:8], *(t.clone() for t in torch.utils._pytree.tree_leaves(caches[1]))]
    with torch.no_grad():
        expected = model(input_ids=ids[:, 7:8], cache=caches[1])
    assert_same(dict(expected), run_ort(onx, feeds), 1e-4)


def test_encoder_decoder_cache():
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
    )
    model = transformers.BartForConditionalGeneration(config).eval()
    batch, past, seen = 2, 3, 5
    own, cross = transformers.DynamicCache(), transformers.DynamicCache()
    own.update(torch.rand(batch, 4, past, 8), torch.rand(batch, 4, past, 8), 0)
    cross.update(torch.rand(batch, 4, seen, 8), torch.rand(batch, 4, seen, 8), 0)
    kwargs = {
        "past_key_values": transformers.EncoderDecoderCache(own, cross),
        "decoder_input_ids": torch.randint(0, 99, (batch, 2)),
        "encoder_outputs": (torch.rand(batch, seen, 32),),
    }
    past_layer, seen_layer = {0: "batch", 2: "past"}, {0: "batch", 2: "seen"}
    dynamic = {
        "decoder_input_ids": {0: "batch", 1: "seq"},
        "past_key_values": {
            "self_attention_cache": [[past_layer], [past_layer]],
            "cross_attention_cache": [[seen_layer], [seen_layer]],
        },
        "encoder_outputs": ({0: "batch", 1: "seen"},),
    }
    inputs, outputs = exported(model, kwargs, dynamic)
    assert inputs.pop("decoder_input_ids") == ["batch", "seq"]
    assert inputs.pop("encoder_outputs_0") == ["batch", "seen", 32]
    assert sorted(map(str, inputs.values())) == sorted(
        map(str, [["batch", 4, "past", 8]] * 2 + [["batch", 4, "seen", 8]] * 2)
    )
    assert outputs[0] == ["batch", "seq", 99]
    assert ["batch", 4, "past+seq", 8] in outputs


HYBRIDS = {
    "lfm2": lambda: transformers.Lfm2ForCausalLM(
        transformers.Lfm2Config(
            **SIZES,
            num_hidden_layers=2,
            num_key_value_heads=2,
            layer_types=["conv", "full_attention"],
        )
    ),
    "qwen3_next": lambda: transformers.Qwen3NextForCausalLM(
        transformers.Qwen3NextConfig(
            **SIZES,
            num_hidden_layers=2,
            num_key_value_heads=2,
            head_dim=8,
            layer_types=["linear_attention", "full_attention"],
            linear_num_value_heads=4,
            linear_num_key_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
        )
    ),
}
HYBRID_STATES = {
    "lfm2": ["1.key", "1.value", "0.conv_state"],
    "qwen3_next": ["1.key", "1.value", "0.conv_state", "0.recurrent_state"],
}


@pytest.mark.parametrize("name", HYBRIDS)
def test_states_of_a_hybrid_cache(name):
    """The states of convolutions and recurrences go in and out by name, at another size too."""
    torch.manual_seed(0)
    model = HYBRIDS[name]().eval()
    ids = torch.randint(0, 99, (3, 9))
    with torch.no_grad():
        first, second = model(ids[:2, :5])["cache"], model(ids[:, :8])["cache"]
    past = [{0: "batch", 2: "past"}]
    parts = torch.utils._pytree.SUPPORTED_NODES[transformers.DynamicCache].flatten_with_keys_fn(
        first
    )
    dynamic = {key.key: [{0: "batch"}] for key, _ in parts[0]}
    dynamic.update(key_cache=past, value_cache=past)
    onx = to_onnx(
        model,
        kwargs={"input_ids": ids[:2, 5:6], "cache": first},
        dynamic_shapes={"input_ids": {0: "batch"}, "cache": dynamic},
        options=OptimizationOptions(patterns=None),
        cache_names="genai",
    )
    states = HYBRID_STATES[name]
    assert [i.name for i in onx.graph.input] == [
        "input_ids",
        *(f"past_key_values.{s}" for s in states),
    ]
    assert [o.name for o in onx.graph.output] == ["logits", *(f"present.{s}" for s in states)]
    assert dims(onx.graph.output[1]) == ["batch", 2, "past+1", 8]
    feeds = [ids[:, 8:], *(t.clone() for t in torch.utils._pytree.tree_leaves(second))]
    with torch.no_grad():
        expected = model(input_ids=ids[:, 8:], cache=second)
    assert_same(dict(expected), run_ort(onx, feeds), 1e-4)


class MadeInside(torch.nn.Module):
    def __init__(self, config, cache):
        super().__init__()
        self.model = transformers.LlamaForCausalLM(config)
        self.cache = cache

    def forward(self, input_ids):
        found = self.model(input_ids, past_key_values=self.cache(), use_cache=True)
        return found.logits, found.past_key_values


def llama_config():
    heads = {"num_hidden_layers": 2, "num_key_value_heads": 2, "max_position_embeddings": 64}
    return transformers.LlamaConfig(**SIZES, **heads)


@pytest.mark.parametrize("strategy", ["strict", "nostrict"])
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_a_cache_made_by_the_model(static, strategy):
    config = llama_config()
    static_cache = functools.partial(transformers.StaticCache, config=config, max_cache_len=8)
    model = MadeInside(config, static_cache if static else transformers.DynamicCache).eval()
    shapes = {"input_ids": {0: "batch", 1: "seq"}}
    ids = torch.randint(0, 99, (2, 5))
    onx = to_onnx(model, (ids,), dynamic_shapes=shapes, export_options=strategy)
    assert "present.1.key" in {o.name for o in onx.graph.output}
    ids = torch.randint(0, 99, (3, 4))
    logits, cache = model(ids)
    keys = [layer.keys for layer in cache.layers]
    assert_same([logits, *keys], run_ort(onx, [ids])[:3], 1e-4)


def test_a_cache_given_to_strict():
    model = transformers.LlamaForCausalLM(llama_config()).eval()
    cache = transformers.DynamicCache()
    for i in range(2):
        cache.update(torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), i)
    feeds = [torch.randint(0, 99, (2, 5)), *(x.keys for x in cache.layers)]
    feeds += [x.values for x in cache.layers]
    kwargs = {"input_ids": feeds[0], "past_key_values": cache}
    past = [{0: "batch", 2: "past"}] * 2
    shapes = {"input_ids": {0: "batch", 1: "seq"}, "past_key_values": [past, past]}
    onx = to_onnx(model, kwargs=kwargs, dynamic_shapes=shapes, export_options="strict")
    expected = model(**copy.deepcopy(kwargs)).logits
    assert_same(expected, run_ort(onx, feeds)[:1], 1e-4)
