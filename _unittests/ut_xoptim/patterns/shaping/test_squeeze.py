"""Squeeze, Unsqueeze and their neighbours."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from xoptim.patterns.shaping.squeeze import merged_steps
from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

Axes = tuple[int, ...]

#: an input whose rank the model does not tell
MATRIX = [{"x": np.ones((3, 4), np.float32)}]

#: pattern -> case -> (before, after)
MODELS = {
    "UnsqueezeUnsqueeze": {
        "the second one shifts the first": (
            """agraph (float[a,b] x) => (float[1,a,1,b] y) <int64[1] k = {1}, int64[1] l = {0}> {
                u = Unsqueeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            """agraph (float[a,b] x) => (float[1,a,1,b] y) <int64[2] k = {0, 2}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "negative axes": (
            """agraph (float[a,b] x) => (float[a,1,b,1,1] y)
            <int64[2] k = {-1, 1}, int64[1] l = {-2}> {
                u = Unsqueeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            """agraph (float[a,b] x) => (float[a,1,b,1,1] y) <int64[3] k = {1, 3, 4}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "unknown rank": (
            """agraph (float[] x) => (float[] y) <int64[1] k = {1}, int64[1] l = {1}> {
                u = Unsqueeze(x, k)
                n = Unsqueeze(u, l)
                y = Neg(n)
            }""",
            """agraph (float[] x) => (float[] y) <int64[2] k = {1, 2}> {
                n = Unsqueeze(x, k)
                y = Neg(n)
            }""",
            {"feeds": MATRIX},
        ),
        "a chain": (
            """agraph (float[a] x) => (float[1,1,a,1] y) <int64[1] k = {0}, int64[1] l = {-1}> {
                u = Unsqueeze(x, k)
                v = Unsqueeze(u, l)
                y = Unsqueeze(v, k)
            }""",
            """agraph (float[a] x) => (float[1,1,a,1] y) <int64[3] k = {0, 1, 3}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "the inner result is an output": (
            """agraph (float[a] x) => (float[1,a,1] y, float[a,1] u)
            <int64[1] k = {1}, int64[1] l = {0}> {
                u = Unsqueeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            """agraph (float[a] x) => (float[1,a,1] y, float[a,1] u)
            <int64[1] k = {1}, int64[2] l = {0, 2}> {
                y = Unsqueeze(x, l)
                u = Unsqueeze(x, k)
            }""",
        ),
    },
    "SqueezeFlatten": {
        "columns are known": (
            """agraph (float[a,1,b,8] x) => (float[c,8] y) <int64[1] k = {1}> {
                s = Squeeze(x, k)
                y = Flatten <axis = 2> (s)
            }""",
            """agraph (float[a,1,b,8] x) => (float[c,8] y) <int64[2] t = {-1, 8}> {
                y = Reshape(x, t)
            }""",
        ),
        "rows are known": (
            """agraph (float[2,a,b] x) => (float[2,c] y) <int64[1] k = {1}> {
                s = Unsqueeze(x, k)
                y = Flatten <axis = -3> (s)
            }""",
            """agraph (float[2,a,b] x) => (float[2,c] y) <int64[2] t = {2, -1}> {
                y = Reshape(x, t)
            }""",
        ),
    },
    "SqueezeUnsqueeze": {
        "Unsqueeze then Squeeze": (
            """agraph (float[a,b] x) => (float[a,b] y) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                y = Squeeze(u, k)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
        "Squeeze then Unsqueeze": (
            """agraph (float[a,1,b,1] x) => (float[a,1,b,1] y)
            <int64[2] k = {1, -1}, int64[2] l = {3, 1}> {
                u = Squeeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            "agraph (float[a,1,b,1] x) => (float[a,1,b,1] y) { y = Identity(x) }",
        ),
        "unknown rank, same axes": (
            """agraph (float[] x) => (float[] y) <int64[1] k = {-1}> {
                n = Neg(x)
                u = Unsqueeze(n, k)
                y = Squeeze(u, k)
            }""",
            "agraph (float[] x) => (float[] y) { y = Neg(x) }",
            {"feeds": MATRIX},
        ),
        "a shorter Squeeze": (
            """agraph (float[1,a,1,b] x) => (float[a,1,b] y)
            <int64[2] k = {0, 2}, int64[1] l = {1}> {
                u = Squeeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            """agraph (float[1,a,1,b] x) => (float[a,1,b] y) <int64[1] k = {0}> {
                y = Squeeze(x, k)
            }""",
        ),
        "a shorter Squeeze of a larger one": (
            """agraph (float[a,1,b] x) => (float[a,b] y) <int64[1] k = {0}, int64[2] l = {0, 2}> {
                u = Unsqueeze(x, k)
                y = Squeeze(u, l)
            }""",
            """agraph (float[a,1,b] x) => (float[a,b] y) <int64[1] k = {1}> {
                y = Squeeze(x, k)
            }""",
        ),
        "a shorter Unsqueeze": (
            """agraph (float[a,b] x) => (float[a,b,1] y) <int64[2] k = {0, 3}, int64[1] l = {0}> {
                u = Unsqueeze(x, k)
                y = Squeeze(u, l)
            }""",
            """agraph (float[a,b] x) => (float[a,b,1] y) <int64[1] k = {2}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "Squeeze twice": (
            """agraph (float[5,7,1,1] x) => (float[5,7] y) <int64[1] k = {-1}> {
                u = Squeeze(x, k)
                y = Squeeze(u, k)
            }""",
            """agraph (float[5,7,1,1] x) => (float[5,7] y) <int64[2] k = {2, 3}> {
                y = Squeeze(x, k)
            }""",
        ),
        "no axes": (
            """agraph (float[2,1,3,1] x) => (float[2,3,1] y) <int64[1] k = {-1}> {
                u = Squeeze(x)
                y = Unsqueeze(u, k)
            }""",
            """agraph (float[2,1,3,1] x) => (float[2,3,1] y) <int64[1] k = {1}> {
                y = Squeeze(x, k)
            }""",
        ),
        "an inner result is used elsewhere": (
            """agraph (float[a,b] x) => (float[a,b] y, float[a,1,b] z) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                v = Squeeze(u, k)
                y = Neg(v)
                z = Neg(u)
            }""",
            """agraph (float[a,b] x) => (float[a,b] y, float[a,1,b] z) <int64[1] k = {1}> {
                y = Neg(x)
                u = Unsqueeze(x, k)
                z = Neg(u)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "UnsqueezeUnsqueeze": [
        (
            """agraph (float[a] x) => (float[a,1] y) <int64[1] k = {1}> { y = Unsqueeze(x, k) }""",
            "no Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[a] x, int64[1] k) => (float[b,c,d] y) {
                u = Unsqueeze(x, k)
                y = Unsqueeze(u, k)
            }""",
            "the axes are not known",
        ),
        (
            """agraph (float[] x) => (float[] y) <int64[1] k = {1}, int64[1] l = {-1}> {
                u = Unsqueeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            "both nodes are needed, or the rank is not known",
        ),
    ],
    "SqueezeFlatten": [
        (
            """agraph (float[a,1,b,c] x) => (float[a,d] y) <int64[1] k = {1}> {
                s = Squeeze(x, k)
                y = Flatten(s)
            }""",
            "the dimensions are not known",
        ),
        (
            """agraph (float[] x) => (float[b,c] y) <int64[1] k = {1}> {
                s = Squeeze(x, k)
                y = Flatten(s)
            }""",
            "the shape is not known",
        ),
    ],
    "SqueezeUnsqueeze": [
        (
            "agraph (float[1,a] x) => (float[a] y) <int64[1] k = {0}> { y = Squeeze(x, k) }",
            "no Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[1,a] x, int64[1] k) => (float[b,c] y) {
                u = Squeeze(x, k)
                y = Unsqueeze(u, k)
            }""",
            "the axes are not known",
        ),
        # the dimensions 1 are not known
        (
            """agraph (float[1,a] x) => (float[] y) <int64[1] k = {0}> {
                u = Squeeze(x)
                y = Unsqueeze(u, k)
            }""",
            "the axes are not known",
        ),
        (
            """agraph (float[1,a] x) => (float[a,1] y) <int64[1] k = {0}, int64[1] l = {1}> {
                u = Squeeze(x, k)
                y = Unsqueeze(u, l)
            }""",
            "both nodes are needed, or the rank is not known",
        ),
        (
            """agraph (float[] x) => (float[] y) <int64[1] k = {0}, int64[1] l = {-1}> {
                u = Unsqueeze(x, k)
                y = Squeeze(u, l)
            }""",
            "both nodes are needed, or the rank is not known",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


#: before opset 13, the axes are attributes: pattern -> (before, after)
OLD: dict[str, list[tuple[str, str]]] = {
    "UnsqueezeUnsqueeze": [
        (
            """agraph (float[a,b] x) => (float[a,1,b,1,1] y) {
                u = Unsqueeze <axes = [-1, 1]> (x)
                y = Unsqueeze <axes = [-2]> (u)
            }""",
            """agraph (float[a,b] x) => (float[a,1,b,1,1] y) {
                y = Unsqueeze <axes = [1, 3, 4]> (x)
            }""",
        ),
        (
            """agraph (float[a] x) => (float[1,a,1] y, float[a,1] u) {
                u = Unsqueeze <axes = [1]> (x)
                y = Unsqueeze <axes = [0]> (u)
            }""",
            """agraph (float[a] x) => (float[1,a,1] y, float[a,1] u) {
                y = Unsqueeze <axes = [0, 2]> (x)
                u = Unsqueeze <axes = [1]> (x)
            }""",
        ),
    ],
    "SqueezeUnsqueeze": [
        (
            """agraph (float[a,b] x) => (float[a,b] y) {
                u = Unsqueeze <axes = [1]> (x)
                y = Squeeze <axes = [1]> (u)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
        (
            """agraph (float[5,7,1,1] x) => (float[5,7] y) {
                u = Squeeze <axes = [-1]> (x)
                y = Squeeze <axes = [-1]> (u)
            }""",
            "agraph (float[5,7,1,1] x) => (float[5,7] y) { y = Squeeze <axes = [2, 3]> (x) }",
        ),
        (
            """agraph (float[a,b] x) => (float[a,b,1] y) {
                u = Unsqueeze <axes = [0, 3]> (x)
                y = Squeeze <axes = [0]> (u)
            }""",
            "agraph (float[a,b] x) => (float[a,b,1] y) { y = Unsqueeze <axes = [2]> (x) }",
        ),
        (
            """agraph (float[2,1,3,1] x) => (float[2,3,1] y) {
                u = Squeeze(x)
                y = Unsqueeze <axes = [2]> (u)
            }""",
            "agraph (float[2,1,3,1] x) => (float[2,3,1] y) { y = Squeeze <axes = [1]> (x) }",
        ),
    ],
}


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize(
    ("pattern", "before", "after"), [(p, *m) for p, rows in OLD.items() for m in rows]
)
def test_axes_are_attributes(pattern: str, before: str, after: str, opset: int) -> None:
    check_pattern(before, after, pattern, opset=opset)


@pytest.mark.parametrize("opset", [11, 12])
def test_axes_are_attributes_and_both_nodes_are_needed(opset: int) -> None:
    text = """agraph (float[1,a] x) => (float[a,1] y) {
        u = Squeeze <axes = [0]> (x)
        y = Unsqueeze <axes = [1]> (u)
    }"""
    reason = "both nodes are needed, or the rank is not known"
    check_no_match(text, "SqueezeUnsqueeze", reason, opset=opset)


def _subsets(size: int, least: int = 1) -> list[tuple[int, ...]]:
    return [c for n in range(least, size + 1) for c in combinations(range(size), n)]


def merged_unsqueeze(a: Axes, b: Axes, rank: int | None) -> Axes | None:
    step = merged_steps(("Unsqueeze", a), ("Unsqueeze", b), rank)
    return None if step is None else step[1]


def test_two_unsqueeze_are_numpy() -> None:
    x = np.empty((2, 3))
    checked = 0
    for a in _subsets(4):
        if len(a) > 2 or max(a) >= 2 + len(a):
            continue
        once = np.expand_dims(x, a)
        for b in _subsets(once.ndim + 2):
            if len(b) > 2 or max(b) >= once.ndim + len(b):
                continue
            twice = np.expand_dims(once, b)
            for rank in (2, None):
                assert np.expand_dims(x, merged_unsqueeze(a, b, rank)).shape == twice.shape
            negative = tuple(i - twice.ndim for i in b)
            assert merged_unsqueeze(a, negative, 2) == merged_unsqueeze(a, b, 2)
            assert merged_unsqueeze(a, negative, None) is None
            checked += 1
    assert checked > 100


def test_merged_steps_is_numpy() -> None:
    x = np.empty((1, 2, 1, 3, 1))
    move = {"Squeeze": np.squeeze, "Unsqueeze": np.expand_dims, "Identity": lambda v, _: v}
    merged = 0
    ones = [c for c in _subsets(5) if all(x.shape[i] == 1 for i in c)]
    firsts = [("Squeeze", c) for c in ones] + [("Unsqueeze", c) for c in _subsets(6) if len(c) == 1]
    for first in firsts:
        middle = move[first[0]](x, first[1])
        seconds = [("Unsqueeze", (i,)) for i in range(middle.ndim + 1)]
        squeezable = _subsets(middle.ndim)
        seconds += [("Squeeze", c) for c in squeezable if all(middle.shape[i] == 1 for i in c)]
        for second in seconds:
            step = merged_steps(first, second, 5)
            assert merged_steps(first, second, None) == step
            if step is not None:
                merged += 1
                expected = move[second[0]](middle, second[1]).shape
                assert move[step[0]](x, step[1]).shape == expected, (first, second, step)
    assert merged > 50
