"""Caches that do not say how many tokens they have seen."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter.checking.token_counts import count_message

cache_utils = pytest.importorskip("transformers.cache_utils")


class Decoder(torch.nn.Module):
    def forward(self, input_ids, position_ids=None, cache=None):
        return input_ids


class Encoder(torch.nn.Module):
    def forward(self, input_ids, cache=None):
        return input_ids


def cache_of(*windows):
    """A cache with a token in each layer, which keeps those of a window if it is a number."""
    cache = cache_utils.DynamicCache()
    layer, window = cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer
    cache.layers = [layer() if size is None else window(size) for size in windows]
    for i in range(len(windows)):
        cache.update(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), i)
    return cache


IDS = torch.zeros(1, 1, dtype=torch.int64)


def test_windows_only():
    message = count_message(Decoder(), (IDS,), {"cache": cache_of(4, 4)})
    assert message.startswith("Every layer of the DynamicCache keeps the tokens of a window")
    assert "right for less than 4 tokens" in message and message.endswith("Give position_ids.")
    assert count_message(Decoder(), (IDS, None, cache_of(4)), {}) != ""


def test_a_full_layer_tells_how_many_tokens_there_were():
    assert count_message(Decoder(), (IDS,), {"cache": cache_of(4, None)}) == ""


def test_given_positions():
    given = {"cache": cache_of(4), "position_ids": IDS}
    assert count_message(Decoder(), (IDS,), given) == ""


def test_a_model_without_positions():
    assert count_message(Encoder(), (IDS,), {"cache": cache_of(4)}) == ""


def test_no_tokens_yet():
    empty = cache_utils.DynamicCache()
    empty.layers = [cache_utils.DynamicSlidingWindowLayer(4)]
    assert count_message(Decoder(), (IDS,), {"cache": empty}) == ""
    assert count_message(Decoder(), (IDS,), {}) == ""
