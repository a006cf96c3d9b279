"""Concat with pieces that are not needed."""

from __future__ import annotations

import pytest

from xoptim.testing import check_no_match, check_pattern

#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, tuple[str, str]]] = {
    "ConcatEmpty": {
        "several pieces are left": (
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (e, x, e, z)
            }""",
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (x, z)
            }""",
        ),
        "one is left": (
            """agraph (float[a] x, float[0] e) => (float[a] y) {
                n = Neg(x)
                c = Concat <axis = 0> (n, e)
                y = Abs(c)
            }""",
            "agraph (float[a] x, float[0] e) => (float[a] y) { n = Neg(x) y = Abs(n) }",
        ),
        "all are empty": (
            """agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) {
                y = Concat <axis = 1> (x, e)
            }""",
            "agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) { y = Identity(x) }",
        ),
    },
}

#: pattern -> [(reason, model)]
REFUSED: dict[str, list[tuple[str, str]]] = {
    "ConcatEmpty": [
        (
            "no piece is known to be empty",
            "agraph (float[a] x, float[b] z) => (float[c] y) { y = Concat <axis = 0> (x, z) }",
        ),
        (
            "no piece is known to be empty",
            "agraph (float[] x, float[] z) => (float[] y) { y = Concat <axis = 0> (x, z) }",
        ),
        # the null dimension is not the concatenated one
        (
            "no piece is known to be empty",
            """agraph (float[a,0] x, float[b,0] z)
            => (float[c,0] y) { y = Concat <axis = 0> (x, z) }""",
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
