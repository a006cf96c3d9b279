"""Channels moved by Reshape, Transpose, Reshape."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests


def _moved(shape: str, first: str, perm: str, last: str, after: str = "", extra: str = "") -> str:
    rank = len(last.split(","))
    return f"""g (float[{shape}] x) => (float[{after or shape}] y{extra})
        <int64[{len(first.split(","))}] s = {{{first}}}, int64[{rank}] t = {{{last}}}> {{
        u = Reshape(x, s) v = Transpose<perm = [{perm}]>(u) y = Reshape(v, t)
    }}"""


def _gathered(shape: str, indices: str, axis: int) -> str:
    return f"""g (float[{shape}] x) => (float[{shape}] y)
        <int64[{len(indices.split(","))}] i = {{{indices}}}> {{ y = Gather<axis = {axis}>(x, i) }}"""


GROUPS = ("a, 6, 2, 3", "0, 2, 3, 2, 3", "0, 2, 1, 3, 4", "0, 6, 2, 3")

MODELS = {
    "ChannelShuffle": {
        "groups": (_moved(*GROUPS), _gathered("a, 6, 2, 3", "0, 3, 1, 4, 2, 5", 1)),
        "the batch is -1": (
            _moved("a, 6, 2, 3", "-1, 3, 2, 2, 3", "0, 2, 1, 3, 4", "-1, 6, 2, 3"),
            _gathered("a, 6, 2, 3", "0, 2, 4, 1, 3, 5", 1),
        ),
        "three parts, the first axis": (
            _moved("8, 5", "2, 2, 2, 5", "2, 1, 0, 3", "8, 5"),
            _gathered("8, 5", "0, 4, 2, 6, 1, 5, 3, 7", 0),
        ),
    },
}

REFUSED = {
    "ChannelShuffle": {
        "no Transpose": (
            "g (float[2, 6] x, int64[2] s) => (float[b, c] y) { y = Reshape(x, s) }",
            "no Transpose before",
        ),
        "no Reshape": (
            "g (float[2, 3, 4] x) => (float[6, 4] y) <int64[2] t = {6, 4}>"
            "{ v = Transpose<perm = [1, 0, 2]>(x) y = Reshape(v, t) }",
            "no Reshape before",
        ),
        "nothing moves": (
            _moved("a, 6, 2, 3", "0, 2, 3, 2, 3", "0, 1, 2, 3, 4", "0, 6, 2, 3"),
            "nothing moves",
        ),
        "short runs": (
            _moved("a, 6, 3, 1", "0, 2, 3, 3, 1", "0, 2, 1, 3, 4", "0, 6, 3, 1"),
            "the runs of elements are too short",
        ),
        "the last axis": (
            _moved("a, 6", "0, 2, 3", "0, 2, 1", "0, 6"),
            "the runs of elements are too short",
        ),
        "unknown rows": (
            _moved("a, 6, h, 3", "0, 2, 3, -1, 3", "0, 2, 1, 3, 4", "0, 6, -1, 3"),
            "those inside, are not known",
        ),
        "another dimension is joined": (
            _moved("a, 6, 2, 3", "0, 2, 3, 2, 3", "0, 2, 1, 3, 4", "0, 12, 3", "a, 12, 3"),
            "it is not one dimension",
        ),
        "two dimensions move": (
            _moved("a, 2, 3, 4", "0, 2, 3, 4", "0, 2, 1, 3", "0, 2, 3, 4"),
            "it is not one dimension",
        ),
        "no image": (
            _moved("a, 0, 2, 3", "1, 0, 3, 2, 3", "0, 2, 1, 3, 4", "1, 0, 2, 3").replace(
                "[a,", "[1,"
            ),
            "a shape is not known|it is not one dimension|there is nothing to move",
        ),
        "read elsewhere": (
            _moved(*GROUPS, extra=", float[a, 3, 2, 2, 3] v"),
            "an inner result is used elsewhere",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
