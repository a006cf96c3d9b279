"""Expand and its neighbours."""

from __future__ import annotations

import pytest

from xoptim.testing import check_no_match, check_pattern

#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, tuple[str, str]]] = {
    "Expand": {
        "a static shape": (
            "agraph (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> { y = Expand(x, s) }",
            "agraph (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        ),
        "a shorter shape": (
            "agraph (float[2,3] x) => (float[2,3] y) <int64[1] s = {1}> { y = Expand(x, s) }",
            "agraph (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        ),
        "an empty tensor": (
            "agraph (float[0,3] x) => (float[0,3] y) <int64[2] s = {0, 1}> { y = Expand(x, s) }",
            "agraph (float[0,3] x) => (float[0,3] y) { y = Identity(x) }",
        ),
        "its own shape": (
            """agraph (float[a,b] x) => (float[a,b] y) {
                n = Neg(x)
                s = Shape(n)
                y = Expand(x, s)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
    },
}

#: pattern -> [(reason, model)]
REFUSED: dict[str, list[tuple[str, str]]] = {
    "Expand": [
        (
            "a shape is not known",
            "agraph (float[] x, int64[2] s) => (float[] y) { y = Expand(x, s) }",
        ),
        (
            "the shape may change",
            "agraph (float[1,3] x) => (float[2,3] y) <int64[2] s = {2, 1}> { y = Expand(x, s) }",
        ),
        (
            "the shape may change",
            "agraph (float[3] x) => (float[1,3] y) <int64[2] s = {1, 1}> { y = Expand(x, s) }",
        ),
        # a may be 1
        (
            "the shape may change",
            "agraph (float[a] x, float[b] z) => (float[c] y) { s = Shape(z) y = Expand(x, s) }",
        ),
    ],
}


def _cases(table: dict) -> list:
    return [pytest.param(p, *m, id=f"{p}: {n}") for p, d in table.items() for n, m in d.items()]


@pytest.mark.parametrize(("pattern", "before", "after"), _cases(MODELS))
def test_rewrites(pattern: str, before: str, after: str) -> None:
    check_pattern(before, after, pattern)


@pytest.mark.parametrize(
    ("pattern", "reason", "text"),
    [pytest.param(p, *m, id=f"{p}: {m[0]}") for p, rows in REFUSED.items() for m in rows],
)
def test_refuses(pattern: str, reason: str, text: str) -> None:
    check_no_match(text, pattern, reason)
