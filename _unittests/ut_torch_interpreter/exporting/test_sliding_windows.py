"""Sliding windows of DynamicCache, exported for any number of tokens."""

from __future__ import annotations

import copy

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, check_export, op_types, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.exporting.sliding_windows import any_number_of_tokens

transformers = pytest.importorskip("transformers")
from transformers import cache_utils, masking_utils  # noqa: E402

LAYER = cache_utils.DynamicSlidingWindowLayer
STEPS = 20


@pytest.mark.parametrize(("dim", "count"), [(1, 3), (-1, 1), (0, 9)])
def test_the_last_elements(dim, count):
    """All of them if there are fewer, along any dimension."""
    x = torch.arange(60.0).reshape(5, 4, 3)
    others = [(x[:2, :2],), (torch.randn(12, 7, 6),), (x[:1, :1, :1],)]
    dims = {0: "a", 1: "b", 2: "c"}
    found = check_export(
        lambda t: torch.ops.torch_interpreter.last(t, count, dim), (x,), (dims,), others
    )
    assert op_types(found) == ["Slice"]


def test_the_classes_are_as_they_were():
    """Also when the export fails."""
    before = {**vars(LAYER)}, masking_utils.prepare_padding_mask
    with pytest.raises(RuntimeError, match="stop"), any_number_of_tokens():
        assert vars(LAYER)["update"] is not before[0]["update"]
        raise RuntimeError("stop")
    assert ({**vars(LAYER)}, masking_utils.prepare_padding_mask) == before


@pytest.mark.parametrize(("window", "past"), [(1, 3), (4, 2), (4, 9)])
def test_numbers_are_left_to_transformers(window, past):
    """Nothing changes for a layer whose sizes are known, or whose window is one token."""
    states, token = torch.randn(2, 1, past, 8), torch.randn(2, 1, 1, 8)
    results = []
    for context in (any_number_of_tokens, torch.no_grad):
        layer = LAYER(window)
        with context():
            seen = [layer.update(states, states), layer.update(token, token)]
            results.append(([*seen[0], *seen[1], layer.keys], layer.cumulative_length))
            if window > 1:
                assert sum(layer.get_mask_sizes(1)) == past + 2
    (found, count), (expected, _) = results
    assert_same(expected, [t.numpy() for t in found], 0)
    assert count == past + 1


DECODER = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 4,
    "pad_token_id": 0,
}
HYBRID = {**DECODER, "layer_types": ["sliding_attention", "full_attention"]}
FAMILIES = {
    "Cohere2": ("Cohere2Config", HYBRID),
    "Exaone4": ("Exaone4Config", HYBRID),
    "GptOss": ("GptOssConfig", {**HYBRID, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "Gemma3": ("Gemma3TextConfig", HYBRID),
    "Mistral": ("MistralConfig", DECODER),
}


def make_model(name):
    config, sizes = FAMILIES[name]
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")
    return model(getattr(transformers, config)(**sizes)).eval()


def calls_of(model, lengths):
    """A prompt, then several tokens one by one: the arguments of each call, a copy of the cache."""
    prompt, steps = lengths
    ids, mask = torch.randint(3, 60, (2, prompt + steps)), torch.ones(2, prompt + steps)
    mask = mask.to(torch.int64)
    mask[1, : prompt // 2] = 0  # padding on the left
    positions, cache, calls = (mask.cumsum(-1) - 1).clamp(min=0), None, []
    for start, end in [(0, prompt), *((n, n + 1) for n in range(prompt, prompt + steps))]:
        call = {"input_ids": ids[:, start:end], "attention_mask": mask[:, :end]}
        call["position_ids"] = positions[:, start:end]
        calls.append({**call, "cache": copy.deepcopy(cache)} if start else call)
        with torch.no_grad():
            cache = model(**call, cache=cache)["cache"]
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_tokens_beyond_the_window(name):
    """Twenty tokens after a prompt shorter than the window, then longer, with padding."""
    model = make_model(name)
    first = calls_of(model, (3, 1))[1]
    kinds = [isinstance(layer, LAYER) for layer in first["cache"].layers]
    assert any(kinds)
    states = [{2: "window" if kind else "past"} for kind in kinds]
    shapes = {"cache": {"key_cache": states, "value_cache": states}}
    shapes["attention_mask"] = {1: "total" if all(kinds) else "past+1"}
    onx = to_onnx(model, kwargs=copy.deepcopy(first), dynamic_shapes=shapes)
    for prompt in (2, 9):
        for call in calls_of(model, (prompt, STEPS))[1:]:
            feeds = [t.clone() for t in torch.utils._pytree.tree_leaves(call)]
            with torch.no_grad():
                expected = model(**copy.deepcopy(call))
            assert_same(dict(expected), run_ort(onx, feeds), 1e-4)
