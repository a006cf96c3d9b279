"""Pieces along a dimension a Reshape made."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

INDICES = "int64 i = {0}, int64 j = {1}, int64 k = {-1}"
SHAPE = "int64[5] s = {-1, 7, 3, 2, 32}"
MOVED = (
    "r = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(r)"
    " q = Gather(t, i) v = Gather(t, k) u = Gather(t, j)"
)
PARTS = (
    "r = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(r) a, b, c = Split<num_outputs = 3>(t)"
    " q = Squeeze(a, z) u = Squeeze(b, z) v = Squeeze(c, z)"
)
X = "g (float[a, 7, 192] x) => (float[a, 2, 7, 32] q, float[a, 2, 7, 32] u, float[a, 2, 7, 32] v)"
ZERO = "int64[1] z = {0}"
AFTER = (
    f"{X} <int64[4] s = {{-1, 7, 6, 32}}, int64[3] n = {{2, 2, 2}}>"
    "{ r = Reshape(x, s) t = Transpose<perm = [0, 2, 1, 3]>(r)"
    " q, u, v = Split<axis = 1>(t, n) }"
)
INNER = "g (float[a, b, 12] x) => (float[a, b, 3, 2] y, float[a, b, 3, 2] z)"
#: pattern -> case -> (before, after)
MODELS = {
    "PackedPieces": {
        "every index": (f"{X} <{SHAPE}, {INDICES}> {{ {MOVED} }}", AFTER),
        "parts that are squeezed": (f"{X} <{SHAPE}, {ZERO}> {{ {PARTS} }}", AFTER),
        "no Transpose, a shape that copies": (
            f"{INNER} <int64[5] s = {{0, 0, 3, 2, -1}}, int64 i = {{0}}, int64 j = {{1}}>"
            "{ r = Reshape(x, s) y = Gather<axis = 3>(r, i) z = Gather<axis = -2>(r, j) }",
            f"{INNER} <int64[4] s = {{0, 0, 3, 4}}, int64[2] n = {{2, 2}}>"
            "{ r = Reshape(x, s) y, z = Split<axis = 3>(r, n) }",
        ),
        "no Transpose, parts": (
            f"{INNER} <int64[5] s = {{0, 0, 3, 2, -1}}, int64[1] i = {{-2}}>"
            "{ r = Reshape(x, s) c, d = Split<axis = 3, num_outputs = 2>(r)"
            " y = Squeeze(c, i) z = Squeeze(d, i) }",
            f"{INNER} <int64[4] s = {{0, 0, 3, 4}}, int64[2] n = {{2, 2}}>"
            "{ r = Reshape(x, s) y, z = Split<axis = 3>(r, n) }",
        ),
    },
}


def changed(*pairs: tuple[str, str], text: str = f"{X} <{SHAPE}, {INDICES}> {{ {MOVED} }}") -> str:
    """The first model, something else in it."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


SPLIT = f"{X} <{SHAPE}, {ZERO}> {{ {PARTS} }}"
PART = "float[1, a, 2, 7, 32] u"
REFUSED = {
    "PackedPieces": {
        "a shape that copies a dimension": (
            "g (float[a, 2, 6] x) => (float[a, 3, 2] y, float[a, 3, 2] z) <int64[4] s = {0, 0, 3, 2},"
            " int64 i = {0}, int64 j = {1}> { r = Reshape(x, s) y = Gather<axis = 1>(r, i)"
            " z = Gather<axis = 1>(r, j) }",
            "the shape copies a dimension that is moved",
        ),
        "nothing before": (
            "g (float[3, b] x) => (float[b] y) <int64 i = {0}> { y = Gather(x, i) }",
            "no Transpose nor Reshape before",
        ),
        "a Transpose, no Reshape": (
            "g (float[3, b, c] x) => (float[c, b] y) <int64 i = {0}>"
            "{ t = Transpose<perm = [0, 2, 1]>(x) y = Gather(t, i) }",
            "no Reshape before",
        ),
        "the Reshape is used elsewhere": (
            changed(("=> (", "=> (float[a, 7, 3, 2, 32] r, ")),
            "the Reshape is used elsewhere",
        ),
        "the moved result is used elsewhere": (
            changed(("=> (", "=> (float[3, a, 2, 7, 32] t, ")),
            "the moved result is used elsewhere",
        ),
        "the parts are used elsewhere": (
            changed(("=> (", "=> (float[3, a, 2, 7, 32] t, "), text=SPLIT),
            "the moved result is used elsewhere",
        ),
        "a dimension that is not known": (
            changed(
                ("{-1, 7, 3, 2, 32}", "{0, 7, 3, -1, 32}"), ("192", "d"), ("a, 2, 7", "a, h, 7")
            ),
            "the next one is not known",
        ),
        "the last dimension": (
            "g (float[a, 6] x) => (float[a, 2] y, float[a, 2] z, float[a, 2] u) <int64[3] s ="
            " {0, 2, 3}, int64 i = {0}, int64 j = {1}, int64 k = {2}> { r = Reshape(x, s)"
            " y = Gather<axis = 2>(r, i) z = Gather<axis = 2>(r, j) u = Gather<axis = 2>(r, k) }",
            "the next one is not known",
        ),
        "an index is missing": (changed(("u = Gather(t, j)", "u = Neg(q)")), "not all there once"),
        "an index of one dimension": (
            changed(("int64 i", "int64[1] i"), ("float[a, 2, 7, 32] q", "float[1, a, 2, 7, 32] q")),
            "an index is not a scalar",
        ),
        "parts of two elements": (
            "g (float[a, 8] x) => (float[a, 2, 2] y, float[a, 2, 2] z) <int64[3] s = {0, 4, 2}>"
            "{ r = Reshape(x, s) y, z = Split<axis = 1, num_outputs = 2>(r) }",
            "the parts have several elements",
        ),
        "one part is not squeezed": (
            changed(
                ("u = Squeeze(b, z)", "u = Neg(b)"), ("float[a, 2, 7, 32] u", PART), text=SPLIT
            ),
            "no Squeeze after each part",
        ),
        "short runs": (
            changed(("3, 2, 32}", "3, 2, 16}"), ("192", "96"), ("7, 32]", "7, 16]"), text=SPLIT),
            "contiguous are faster",
        ),
        "a shape that is not constant": (
            changed((f"{SHAPE}, ", ""), ("192] x", "192] x, int64[5] s")),
            "not known",
        ),
        "another axis is squeezed": (
            "g (float[a, 4] x) => (float[a, 1, 2] y, float[a, 1, 2] z) <int64[4] s = {0, 2, 2, 1},"
            " int64[1] i = {3}> { r = Reshape(x, s) c, d = Split<axis = 1, num_outputs = 2>(r)"
            " y = Squeeze(c, i) z = Squeeze(d, i) }",
            "another axis is squeezed",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
