"""Caches of transformers taken apart and made again."""

from __future__ import annotations

import copy

import pytest
import torch

from torch_interpreter.inputs.cache_states import cache_parts, filled_cache, is_full

transformers = pytest.importorskip("transformers")


def remade(cache):
    parts, layout = cache_parts(copy.deepcopy(cache))
    return parts, layout, filled_cache(layout, list(parts.values()))


def test_keys_and_values_come_first():
    from transformers.cache_utils import DynamicLayer, LinearAttentionLayer

    cache = transformers.DynamicCache()
    cache.layers = [LinearAttentionLayer(), DynamicLayer()]
    cache.update_conv_state(torch.randn(2, 4, 3), 0)
    cache.update_recurrent_state(torch.randn(2, 4, 5), 0)
    cache.update(torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), 1)
    parts, layout, made = remade(cache)
    assert list(parts) == ["key_cache", "value_cache", "conv_states", "recurrent_states"]
    assert layout.places["conv_states"] == [(0, 0)] and layout.places["key_cache"] == [(1,)]
    x = torch.randn(2, 4, 1)
    got, expected = made.update_conv_state(x, 0), cache.update_conv_state(x, 0)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    assert made.get_seq_length() == 3 and made.has_previous_state()
    assert cache_parts(cache)[1] == cache_parts(copy.deepcopy(cache))[1]


def test_several_states_in_a_layer():
    from transformers.cache_utils import LinearAttentionLayer

    cache = transformers.DynamicCache()
    cache.layers = [LinearAttentionLayer(number_of_states=2)]
    for i in range(2):
        cache.layers[0].update_conv_state(torch.randn(2, 4, 3), i)
    parts, layout, made = remade(cache)
    assert len(parts["conv_states"]) == 2 and layout.places["conv_states"] == [(0, 0), (0, 1)]
    torch.testing.assert_close(made.layers[0].conv_states[1], cache.layers[0].conv_states[1])


def test_a_size_of_the_tensors_is_read_from_them():
    """A dynamic dimension changes the number of tokens a layer counts."""
    from transformers.cache_utils import DynamicSlidingWindowLayer

    cache = transformers.DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(16)]
    cache.update(torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), 0)
    _, layout = cache_parts(cache)
    longer = filled_cache(layout, [[torch.randn(2, 2, 5, 8)], [torch.randn(2, 2, 5, 8)]])
    assert longer.get_seq_length() == 5
    longer.reset()
    longer.update(torch.randn(2, 2, 1, 8), torch.randn(2, 2, 1, 8), 0)
    assert longer.get_seq_length() == 1
    named = filled_cache(layout, [["batch"], ["batch"]])
    assert named.layers[0].keys == "batch" and named.layers[0].cumulative_length == 0


def test_a_layer_that_nothing_filled():
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    cache = transformers.DynamicCache()
    cache.layers = [DynamicLayer(), DynamicSlidingWindowLayer(4)]
    parts, _, made = remade(cache)
    assert parts == {"key_cache": [], "value_cache": []}
    made.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), 1)
    assert made.get_seq_length(1) == 3 and made.get_seq_length(0) == 0


def test_states_of_a_class_of_a_model():
    """The cache of MiniMax keeps tensors outside of its layers."""
    from transformers.models.minimax.modeling_minimax import MiniMaxCache

    cache = MiniMaxCache()
    cache.set_linear_cache(0, torch.randn(2, 4, 8, 8))
    cache.update(torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), 1)
    parts, layout, made = remade(cache)
    assert layout.places["linear_cache"] == [(0,)] and len(made) == 2
    torch.testing.assert_close(made.get_linear_cache(0), cache.get_linear_cache(0))
    assert [t.shape for t in parts["key_cache"]] == [(2, 2, 3, 8)]


def test_the_tokens_of_a_window_are_counted_by_another_layer():
    """A layer that forgot tokens knows how many there were if another one kept them all."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    cache = transformers.DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(4), DynamicLayer()]
    for i in range(2):
        cache.update(torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8), i)
    parts, _, made = remade(cache)
    assert [t.shape[2] for t in parts["key_cache"]] == [3, 9]
    assert [made.get_seq_length(i) for i in range(2)] == [9, 9]
    assert made.get_mask_sizes(1, 0) == cache.get_mask_sizes(1, 0)


def test_a_static_layer_counts_with_a_tensor():
    """The number of tokens is an input of the model, not a constant of Python."""
    from transformers.cache_utils import StaticSlidingWindowLayer

    layer = StaticSlidingWindowLayer(max_cache_len=16, sliding_window=8)
    cache = transformers.cache_utils.Cache(layers=[layer])
    cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), 0)
    parts, layout, made = remade(cache)
    assert list(parts) == ["key_cache", "value_cache", "length"]
    assert made.get_seq_length() is parts["length"][0]
    assert cache_parts(made)[1] == layout
    assert not is_full(layer)
    cache.update(torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8), 0)
    assert is_full(layer) and remade(cache)[2].get_seq_length() == 8


def test_a_structure_is_written_and_read():
    """The exporters of transformers write the structure of the arguments with json."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    from torch_interpreter.inputs.caches import register_caches

    register_caches()
    pytree = torch.utils._pytree
    cache = transformers.DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(4), DynamicLayer()]
    for i in range(2):
        cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), i)
    both = transformers.EncoderDecoderCache(cache, copy.deepcopy(cache))
    for value in (cache, {"cache": both}):
        leaves, tree = pytree.tree_flatten(value)
        read = pytree.treespec_loads(pytree.treespec_dumps(tree))
        assert read == tree
        assert len(pytree.tree_leaves(pytree.tree_unflatten(leaves, read))) == len(leaves)
