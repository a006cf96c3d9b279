"""Attention of the main domain; backend tests cover the rest."""

from __future__ import annotations

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.layers.attention import heads_last

SIZES = [{"b": 2, "s": 3, "k": 4, "p": 5}, {"b": 1, "s": 1, "k": 1, "p": 2}]


def test_attention_4d() -> None:
    """Heads are an axis, caches are joined."""
    inputs = [
        In(("b", 4, "s", 8)),
        In(("b", 2, "k", 8)),
        In(("b", 2, "k", 6)),
        None,
        In(("b", 2, "p", 8)),
        In(("b", 2, "p", 6)),
    ]
    expected = [
        ("b", 4, "s", 6),
        ("b", 2, "k+p", 8),
        ("b", 2, "k+p", 6),
        ("b", 4, "s", "k+p"),
    ]
    check_runs("Attention", inputs, SIZES, expected, opset=23, n_outputs=4, reference=True)


def test_attention_3d() -> None:
    """Heads are attributes."""
    inputs = [In(("b", "s", 32)), In(("b", "k", 16)), In(("b", "k", 12))]
    expected = [("b", "s", 24), ("b", 2, "k", 8), ("b", 2, "k", 6), ("b", 4, "s", "k")]
    given = {"attributes": {"q_num_heads": 4, "kv_num_heads": 2}, "opset": 23, "n_outputs": 4}
    check_runs("Attention", inputs, SIZES, expected, reference=True, **given)


def test_attention_unknown() -> None:
    """Ranks are kept."""
    found = infer("Attention", [ResultFacts(1, None, 3), ResultFacts(1), ResultFacts(1)], 4)
    assert [(f.type, f.shape, f.rank) for f in found] == [
        (1, None, 3),
        (1, None, 4),
        (1, None, 4),
        (1, None, 4),
    ]
    past = ResultFacts(1, None, 4)
    q, k = ResultFacts(1, ("b", 2, "s", 8)), ResultFacts(1, ("b", 2, "k", 8))
    found = infer("Attention", [q, k, k, None, past, past], 2)
    assert is_fresh(found[1].shape[2]) and found[1].shape[0] == "b"


@pytest.mark.parametrize(
    ("shape", "heads", "expected"),
    [
        (("b", 4, "s", 8), None, ("b", 4, "s", 8)),
        (("b", "s", 32), 4, ("b", 4, "s", 8)),
        (("b", "s", "h"), 4, ("b", 4, "s", "h//4")),
        (("b", "s", 32), None, None),
        (("b", "s"), 4, None),
        (None, 4, None),
    ],
)
def test_heads_last(shape: tuple, heads: int, expected: tuple) -> None:
    """Both layouts become one."""
    assert heads_last(shape, heads) == expected


def test_linear_attention() -> None:
    """The state does not depend on the length."""
    q, k, v = (ResultFacts(1, ("b", "s", d)) for d in (32, 16, 12))
    given = {"attributes": {"q_num_heads": 4, "kv_num_heads": 2}, "opset": 27}
    found = infer("LinearAttention", [q, k, v], 2, **given)
    assert [f.shape for f in found] == [("b", "s", 24), ("b", 2, 8, 6)]


def test_flex_attention() -> None:
    """Always four axes."""
    q, v = ResultFacts(1, ("b", 4, "s", 8)), ResultFacts(1, ("b", 4, "k", 6))
    found = infer("FlexAttention", [q, v, v], domain="ai.onnx.preview", opset=1)[0]
    assert found.shape == ("b", 4, "s", 6)


def test_rotary_embedding() -> None:
    """Same shape."""
    x = ResultFacts(1, ("b", "s", 8))
    assert infer("RotaryEmbedding", [x, x, x], opset=23)[0] == x
