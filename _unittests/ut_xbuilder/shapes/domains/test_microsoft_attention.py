"""Attention operators of com.microsoft, run by onnxruntime on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts

MS: dict[str, Any] = {"domain": "com.microsoft", "opset": 1}
SIZES = [{"b": 2, "s": 3, "k": 4, "p": 5}, {"b": 1, "s": 2, "k": 6, "p": 2}]


def runs(op_type: str, inputs: list, expected: Any, sizes: Any = None, **attributes: Any) -> list:
    """Runs an operator of com.microsoft."""
    given = {"attributes": attributes, "n_outputs": len(expected), **MS}
    return check_runs(op_type, inputs, sizes or SIZES, expected, **given)


def known(op_type: str, inputs: list, n_outputs: int = 1, **attributes: Any) -> list:
    """Facts of an operator of com.microsoft."""
    return infer(op_type, inputs, n_outputs, attributes=attributes, **MS)


@pytest.mark.parametrize("past", [False, True])
def test_attention(past: bool) -> None:
    """Merged weights, with and without a cache."""
    inputs = [In(("b", "s", 12)), In((12, 24)), In((24,)), None]
    inputs.append(In((2, "b", 2, "p", 4)) if past else None)
    total = "p+s" if past else "s"
    expected = [("b", "s", 8), (2, "b", 2, total, 4)]
    runs("Attention", inputs if past else inputs[:3], expected, num_heads=2, unidirectional=1)


def test_attention_hidden_sizes() -> None:
    """Values may have another size."""
    x, w = ResultFacts(1, ("b", "s", 12)), ResultFacts(1, (12, 22))
    found = known("Attention", [x, w], 1, num_heads=2, qkv_hidden_sizes=[8, 8, 6])[0]
    assert found.shape == ("b", "s", 6)
    assert known("Attention", [ResultFacts(1), w], 2, num_heads=2)[1].rank == 5


@pytest.mark.parametrize("past", [False, True])
def test_multi_head_attention(past: bool) -> None:
    """Separate queries, keys and values."""
    # the kernel wants the same head size for the values when there is a cache
    last = 4 if past else 6
    inputs: list[Any] = [In(("b", "s", 8)), In(("b", "k", 8)), In(("b", "k", 2 * last))]
    if past:
        inputs += [None, None, None, In(("b", 2, "p", 4)), In(("b", 2, "p", last))]
    total = "k+p" if past else "k"
    expected = [("b", "s", 2 * last), ("b", 2, total, 4), ("b", 2, total, last)]
    runs("MultiHeadAttention", inputs, expected, num_heads=2)
    found = known("MultiHeadAttention", [i and i.facts() for i in inputs], 4, num_heads=2)
    assert found[3].shape == ("b", 2, "s", total)


def test_multi_head_attention_packed() -> None:
    """Packed layouts, and caches as keys."""
    packed = ResultFacts(1, ("b", "s", 2, 3, 4))
    assert known("MultiHeadAttention", [packed], num_heads=2)[0].shape == ("b", "s", 8)
    inputs = [ResultFacts(1, ("b", "s", 8)), ResultFacts(1, ("b", "k", 2, 2, 4))]
    assert known("MultiHeadAttention", inputs, num_heads=2)[0].shape == ("b", "s", 8)
    inputs = [In(("b", "s", 8)), In(("b", 2, "k", 4)), In(("b", 2, "k", 4))]
    runs("MultiHeadAttention", inputs, [("b", "s", 8)], num_heads=2)


def test_multi_head_attention_unknown() -> None:
    """Ranks are kept."""
    found = known("MultiHeadAttention", [ResultFacts(1)] * 3, 3, num_heads=2)
    assert [f.rank for f in found] == [3, 4, 4]
    x = ResultFacts(1, ("b", "s", 8))
    past = ResultFacts(1, None, 4)
    inputs = [x, x, x, None, None, None, past, past]
    found = known("MultiHeadAttention", inputs, 2, num_heads=2)
    assert is_fresh(found[1].shape[2])


@pytest.mark.parametrize("packed", [False, True])
def test_group_query_attention(packed: bool) -> None:
    """The cache is as long as the past or the total length."""
    total = 8
    query = In(("b", "s", 64 + 2 * 32)) if packed else In(("b", "s", 64))
    key = [None, None] if packed else [In(("b", "s", 32)), In(("b", "s", 32))]
    past = [In(("b", 2, "p", 16)), In(("b", 2, "p", 16))]
    lengths = [In(("b",), np.int32, 1), np.array(total, np.int32)]
    inputs = [query, *key, *past, *lengths]
    facts = known(
        "GroupQueryAttention",
        [i.facts() if isinstance(i, In) else i for i in inputs],
        3,
        num_heads=4,
        kv_num_heads=2,
    )
    cache = ("b", 2, "max(8,p)", 16)
    assert [f.shape for f in facts] == [("b", "s", 64), cache, cache]
    lengths[0] = np.array([total - 1], np.int32)
    inputs = [query, *key, *past, *lengths]
    # the total length counts the new tokens
    sizes = [{"b": 1, "s": 3, "p": 5}, {"b": 1, "s": 1, "p": 7}, {"b": 1, "s": 2, "p": 16}]
    attributes = {"num_heads": 4, "kv_num_heads": 2}
    given = {"attributes": attributes, "n_outputs": 3, **MS}
    check_runs("GroupQueryAttention", inputs, sizes, **given)


def test_group_query_attention_unknown() -> None:
    """A total length that is not followed."""
    x, kv = ResultFacts(1, ("b", "s", 64)), ResultFacts(1, ("b", "s", 32))
    length, total = ResultFacts(6, ("b",)), ResultFacts(6, ())
    heads = {"num_heads": 4, "kv_num_heads": 2}
    found = known("GroupQueryAttention", [x, kv, kv, None, None, length, total], 3, **heads)
    assert found[0].shape == ("b", "s", 64)
    assert found[1].shape[:2] == ("b", 2) and is_fresh(found[1].shape[2])
    followed = ResultFacts(6, (), None, "t")
    found = known("GroupQueryAttention", [x, kv, kv, None, None, length, followed], 4, **heads)
    assert found[1].shape == ("b", 2, "t", 16) and found[3].shape == ("b", 4, "s", "t")
    past = ResultFacts(1, ("b", 2, 128, 16))
    sliding = {**heads, "sliding_window_cache": 1}
    found = known("GroupQueryAttention", [x, kv, kv, past, past, length, total], 2, **sliding)
    assert found[1].shape == past.shape
    assert known("GroupQueryAttention", [ResultFacts(1)], 2, **heads)[0].rank == 3


def test_caches_have_the_same_length() -> None:
    """The present keys and values share one dimension, known or not."""
    x, kv = ResultFacts(1, ("b", "s", 64)), ResultFacts(1, ("b", "s", 32))
    length, total = ResultFacts(6, ("b",)), ResultFacts(6, ())
    heads = {"num_heads": 4, "kv_num_heads": 2}
    rank, past = ResultFacts(1, None, 4), ResultFacts(1, ("b", 2, "p", 16))
    other = ResultFacts(1, ("b", 2, "q", 16))
    for keys, values in ((None, None), (past, past), (past, other), (past, rank), (rank, past)):
        for wanted in (total, ResultFacts(6, (), None, "t")):
            inputs = [x, kv, kv, keys, values, length, wanted]
            found = known("GroupQueryAttention", inputs, 3, **heads)[1:]
            lengths = {f.shape[2] for f in found if f.shape is not None}
            assert len(lengths) == 1
    # a buffer long enough is not longer
    inputs = [x, kv, kv, *[ResultFacts(1, ("b", 2, 128, 16))] * 2, length, np.array(8, np.int32)]
    assert known("GroupQueryAttention", inputs, 3, **heads)[1].shape == ("b", 2, 128, 16)
    query = ResultFacts(1, ("b", "s", 8))
    for keys, values in ((past, past), (past, other), (rank, rank), (rank, past)):
        inputs = [query, query, query, None, None, None, keys, values]
        found = known("MultiHeadAttention", inputs, 3, num_heads=2)[1:]
        assert found[0].shape[2] == found[1].shape[2]


@pytest.mark.parametrize("shape", [("b", "s", 8), ("b", 2, "s", 4)])
def test_rotary_embedding(shape: tuple) -> None:
    """Same shape."""
    positions = In(("b", "s"), np.int64, 2)
    inputs = [In(shape), positions, In((16, 2)), In((16, 2))]
    runs("RotaryEmbedding", inputs, [shape], num_heads=2 if len(shape) == 3 else 0)


def test_packed() -> None:
    """Tokens of several sequences."""
    x = ResultFacts(1, ("t", 8))
    assert known("PackedAttention", [x, ResultFacts(1, (8, 36))], 1)[0].shape == ("t", 12)
    assert known("PackedMultiHeadAttention", [x, x, x])[0].shape == ("t", 8)
    packed = ResultFacts(1, ("t", 2, 3, 4))
    assert known("PackedMultiHeadAttention", [packed])[0].shape == ("t", 8)


def test_quantized_attention() -> None:
    """The type is the one of the scales."""
    scale = ResultFacts(1, ())
    inputs = [ResultFacts(2, ("b", "s", 12)), ResultFacts(2, (12, 24)), ResultFacts(1), scale]
    found = known("QAttention", inputs, 1, num_heads=2)[0]
    assert (found.type, found.shape) == (1, ("b", "s", 8))


def test_others() -> None:
    """Decoders, sparse, biases, linear."""
    q, v = ResultFacts(1, ("b", 1, 8)), ResultFacts(1, ("b", "k", 8))
    cache = ResultFacts(1, ("b", 2, "m", 4))
    inputs = [q, v, v, None, None, cache, cache]
    share = {"num_heads": 2, "past_present_share_buffer": 1}
    found = known("DecoderMaskedMultiHeadAttention", inputs, 3, **share)
    assert [f.shape for f in found] == [("b", 1, 8), cache.shape, cache.shape]
    table, length = ResultFacts(1, (32, 4)), np.array([7], np.int64)
    assert known("RelativePositionBias", [table, length, length])[0].shape == (1, 4, 7, 7)
    emb = ResultFacts(1, ("b", 2, "s", 4))
    assert known("GemmaRotaryEmbedding", [q, emb, emb, cache, cache], 2)[1] == cache
    x, w = ResultFacts(1, ("b", 4, "s")), ResultFacts(1, (4, 1, 3))
    assert known("CausalConvWithState", [x, w], 2, dilation=2)[1].shape == ("b", 4, 4)
    assert known("CausalConvWithState", [x, w], 2, state_window=2)[1].shape is None
    packed = [ResultFacts(1, ("b", "s", d)) for d in (32, 16, 12)]
    found = known("LinearAttention", packed, 2, q_num_heads=4, kv_num_heads=2)
    assert [f.shape for f in found] == [("b", "s", 24), ("b", 2, 8, 6)]
    sparse = [ResultFacts(1, ("b", "s", 64)), ResultFacts(1), ResultFacts(1), cache, cache]
    found = known("SparseAttention", sparse, 3, num_heads=4, kv_num_heads=2)
    assert [f.shape for f in found] == [("b", "s", 64), cache.shape, cache.shape]
    assert known("DecoderAttention", [v], 3)[0] == v


def test_paged_attention() -> None:
    """Like the query, unless everything is packed in it."""
    x, cache = ResultFacts(1, ("t", 8)), ResultFacts(1, ("n", 16, 2, 4))
    assert known("PagedAttention", [x, x, x, cache, cache], 3) == [x, cache, cache]
    packed = known("PagedAttention", [x, None, None, cache, cache])[0]
    assert packed == ResultFacts(1, None, 2)
