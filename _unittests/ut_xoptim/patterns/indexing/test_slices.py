"""Slice and its neighbours."""

from __future__ import annotations

from itertools import product

import numpy as np

from xoptim.patterns.indexing.slices import LAST, composed
from xoptim.testing import check_no_match, refusal_tests, rewrite_tests

STARTS = [
    {"x": np.arange(8 * n, dtype=np.float32).reshape((n, 8)), "s": np.array([k], np.int32)}
    for n, k in ((3, 0), (2, 1), (0, -1))
]
#: shorter and longer than what is sliced
LENGTHS = {"feeds": [{"x": np.arange(2.0 * n, dtype=np.float32).reshape(2, n)} for n in range(11)]}


def _joined(start: int, end: int, axes: str = "1", extra: str = "") -> str:
    """A Slice of three pieces of lengths 2, 4, b."""
    return f"""g (float[a,2] x, float[a,4] z, float[a,b] w) => (float[a,c] y{extra})
    <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] i = {{{axes}}}> {{
        c = Concat<axis = 1>(x, z, w) y = Slice(c, s, e, i)
    }}"""


_PIECES = "g (float[a,2] x, float[a,4] z, float[a,b] w) => (float[a,c] y)"
#: name -> bounds, what is left, and its constants
_KEPT = {
    "one piece": ((2, 6), "y = Identity(z)", ""),
    "one piece, before the last one": ((0, 2), "y = Identity(x)", ""),
    "all of a piece of an unknown length": ((6, LAST), "y = Identity(w)", ""),
    "whole pieces": ((2, LAST), "y = Concat<axis = 1>(z, w)", ""),
    "the first pieces": ((0, 6), "y = Concat<axis = 1>(x, z)", ""),
    "a part of one piece": (
        (3, 5),
        "y = Slice(z, s, e, i)",
        "int64[1] s = {1}, int64[1] e = {3}, int64[1] i = {1}",
    ),
    "the end of one piece": (
        (4, 6),
        "y = Slice(z, s, e, i)",
        f"int64[1] s = {{2}}, int64[1] e = {{{LAST}}}, int64[1] i = {{1}}",
    ),
}
_ROWS = """g (float[a,3] x, float[a,3] z, float[a,3] w, float[a,3,3] f) => (float[a,3,3] y)
<int64[1] k = {1}, int64[1] o = {0}, int64[1] t = {2}, int64[1] m = {9223372036854775807}> {
    u = Unsqueeze(x, k) v = Unsqueeze(z, k) p = Unsqueeze(w, k)
    a1 = Slice(f, k, m, k) b0 = Concat<axis = 1>(u, a1)
    c0 = Slice(b0, o, k, k) c1 = Slice(b0, t, m, k) d0 = Concat<axis = 1>(c0, v, c1)
    e0 = Slice(d0, o, t, k) y = Concat<axis = 1>(e0, p)
}"""

#: pattern -> case -> (before, after)
MODELS = {
    "SliceConcat": {
        **{
            name: (_joined(*bounds), f"{_PIECES} <{constants}> {{ {after} }}".replace("<>", ""))
            for name, (bounds, after, constants) in _KEPT.items()
        },
        "bounds from the end": (
            """g (float[b,2] x, float[a,2] z, float[3,2] w) => (float[c,2] y)
            <int64[1] s = {-3}, int64[1] e = {-1}, int64[1] i = {-2}> {
                c = Concat<axis = -2>(x, z, w) y = Slice(c, s, e, i)
            }""",
            """g (float[b,2] x, float[a,2] z, float[3,2] w) => (float[c,2] y)
            <int64[1] s = {0}, int64[1] e = {2}> { y = Slice(w, s, e, s) }""",
        ),
        "bounds outside, all lengths known": (
            """g (float[2] x, float[4] z) => (float[6] y, float[2] v)
            <int64[1] s = {-9}, int64[1] e = {8}, int64[1] t = {2}> {
                n = Neg(x) c = Concat<axis = 0>(n, z) y = Slice(c, s, e) v = Slice(c, s, t)
            }""",
            """g (float[2] x, float[4] z) => (float[6] y, float[2] v) {
                v = Neg(x) y = Concat<axis = 0>(v, z)
            }""",
        ),
        "the Concat stays for something else": (
            _joined(2, 6, extra=", float[a,d] c"),
            """g (float[a,2] x, float[a,4] z, float[a,b] w) => (float[a,4] y, float[a,d] c) {
                y = Identity(z) c = Concat<axis = 1>(x, z, w)
            }""",
        ),
    },
    "SliceConcat,ConcatConcat": {
        "rows written one after the other": (
            _ROWS,
            """g (float[a,3] x, float[a,3] z, float[a,3] w, float[a,3,3] f) => (float[a,3,3] y)
            <int64[1] k = {1}> {
                u = Unsqueeze(x, k) v = Unsqueeze(z, k) p = Unsqueeze(w, k)
                y = Concat<axis = 1>(u, v, p)
            }""",
        ),
    },
    "SliceSlice": {
        "disjoint axes": (
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] i = {1}, int64[1] j = {-1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j)
            }""",
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[2] s = {1, 1}, int64[2] e = {3, 3}, int64[2] i = {1, 2}> {
                y = Slice(x, s, e, i)
            }""",
        ),
        "steps of one of them": (
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[1] s = {1}, int64[1] e = {7}, int64[1] i = {1}, int64[1] j = {2},
            int64[1] m = {-2},
             int64[1] b = {-1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, b, s, j, m)
            }""",
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[2] s = {1, -1}, int64[2] e = {7, 1}, int64[2] i = {1, 2}, int64[2] m = {1, -2}> {
                y = Slice(x, s, e, i, m)
            }""",
        ),
        "no axes": (
            """agraph (float[7,8,9] x) => (float[b,c,d] y)
            <int64[2] s = {1, 2}, int64[2] e = {7, 5}, int64[1] i = {2}, int64[1] f = {4},
            int64[1] g = {6}> {
                u = Slice(x, s, e)
                y = Slice(u, f, g, i)
            }""",
            """agraph (float[7,8,9] x) => (float[b,c,d] y)
            <int64[3] s = {1, 2, 4}, int64[3] e = {7, 5, 6}, int64[3] i = {0, 1, 2}> {
                y = Slice(x, s, e, i)
            }""",
        ),
        "the same axis": (
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {1}, int64[1] e = {7}, int64[1] j = {-1}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {2}, int64[1] e = {7}, int64[1] j = {1}> { y = Slice(x, s, e, j) }""",
            LENGTHS,
        ),
        "the last ones are dropped": (
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {1}, int64[1] e = {9223372036854775807}, int64[1] l = {-2}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, l, s)
            }""",
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {2}, int64[1] e = {-2}, int64[1] j = {1}> { y = Slice(x, s, e, j) }""",
            LENGTHS,
        ),
        "a known dimension, steps": (
            """agraph (float[a,9] x) => (float[a,4] y)
            <int64[1] s = {1}, int64[1] e = {8}, int64[1] j = {1}, int64[1] k = {2},
            int64[1] l = {-1}, int64[1] f = {-9}> {
                u = Slice(x, s, e, j, k)
                y = Slice(u, l, f, j, l)
            }""",
            """agraph (float[a,9] x) => (float[a,4] y)
            <int64[1] s = {7}, int64[1] e = {-10}, int64[1] j = {1}, int64[1] k = {-2}> {
                y = Slice(x, s, e, j, k)
            }""",
        ),
        "one axis of two": (
            """agraph (float[8,n] x) => (float[b,m] y)
            <int64[2] s = {1, 2}, int64[2] e = {7, 6}, int64[1] f = {3}, int64[1] h = {5}, int64[1] j = {0}> {
                u = Slice(x, s, e)
                y = Slice(u, f, h, j)
            }""",
            """agraph (float[8,n] x) => (float[b,m] y)
            <int64[2] s = {4, 2}, int64[2] e = {6, 6}, int64[2] j = {0, 1}> {
                y = Slice(x, s, e, j)
            }""",
        ),
        "bounds that are inputs": (
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] e = {3}, int32[1] i = {1}, int32[1] j = {0}, int32[1] m = {2}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j, m)
            }""",
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[2] e = {3, 3}, int32[2] i = {1, 0}, int32[2] m = {1, 2}> {
                t = Concat <axis = 0> (s, s)
                y = Slice(x, t, e, i, m)
            }""",
            {"feeds": STARTS},
        ),
        "the first one is read elsewhere": (
            """agraph (float[a,8] x) => (float[b,2] y, float[a,2] u)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {0}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            """agraph (float[a,8] x) => (float[b,2] y, float[a,2] u)
            <int64[1] s = {1}, int64[1] e = {3}, int64[2] t = {1, 1}, int64[2] f = {3, 3},
            int64[2] j = {1, 0}> {
                u = Slice(x, s, e, s)
                y = Slice(x, t, f, j)
            }""",
        ),
        "a bound that is an input, then a constant": (
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] e = {3}, int32[1] i = {1}, int32[1] j = {0}, int32[1] k = {1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, k, e, j)
            }""",
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] k = {1}, int32[2] e = {3, 3}, int32[2] i = {1, 0}> {
                t = Concat <axis = 0> (s, k)
                y = Slice(x, t, e, i)
            }""",
            {"feeds": STARTS},
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "SliceConcat": [
        (
            "g (float[3] x) => (float[2] y) <int64[1] s = {1}> { y = Slice(x, s, e) }".replace(
                "{1}>", "{1}, int64[1] e = {3}>"
            ),
            "no Concat before",
        ),
        (_joined(0, 1, "0"), "it is not along the axis of the Concat, or not only"),
        (
            """g (float[a,2] x, float[a,4] z) => (float[c,2] y)
            <int64[2] s = {0, 0}, int64[2] e = {1, 2}, int64[2] i = {0, 1}> {
                c = Concat<axis = 1>(x, z) y = Slice(c, s, e, i)
            }""",
            "it is not along the axis of the Concat, or not only",
        ),
        (
            _joined(0, 2)
            .replace("float[a,b] w", "float[a,b] w, int64[1] j")
            .replace("e, i)", "e, j)"),
            "it is not along the axis of the Concat, or not only",
        ),
        (
            _joined(0, 2)
            .replace("float[a,b] w", "float[a,b] w, int64[1] j")
            .replace("s, e,", "j, e,"),
            "the bounds are not constant",
        ),
        (
            _joined(0, 6)
            .replace("e, i)", "e, i, t)")
            .replace("int64[1] i", "int64[1] t = {2}, int64[1] i"),
            "the step is not 1",
        ),
        # the last piece may have no element, or one
        (_joined(0, 7), "a bound depends on a length that is not known"),
        (_joined(-1, LAST), "a bound depends on a length that is not known"),
        (_joined(3, 3), "nothing is kept"),
        (_joined(6, 2), "nothing is kept"),
        (_joined(1, 6), "it keeps parts of several pieces"),
        (_joined(1, LAST), "it keeps parts of several pieces"),
        (_joined(0, 3), "it keeps parts of several pieces"),
        (
            """g (float[] x, float[] z) => (float[] y) <int64[1] s = {0}, int64[1] e = {1}> {
                c = Concat<axis = 0>(x, z) y = Slice(c, s, e, s)
            }""",
            "the rank is not known",
        ),
    ],
    "SliceSlice": [
        # onnxruntime reads the largest integers as no end, for a negative step as well
        *(
            (
                f"""agraph (float[a, 4] x) => (float[a, m] y)
                <int64[1] a = {{1}}, int64[1] s = {{1}}, int64[1] e = {{{2**63 - 1}}},
                 int64[1] t = {{-1}}, int64[1] u = {{{end}}}, int64[1] k = {{-1}}> {{
                    z = Slice(x, {first}) y = Slice(z, {last})
                }}""",
                "the bounds do not give one interval",
            )
            for end in (2**31 - 1, 2**63 - 1)
            for first, last in (("s, e, a", "t, u, a, k"), ("t, u, a, k", "s, e, a"))
        ),
        (
            """agraph (float[a,8] x) => (float[a,2] y) <int64[1] s = {1}, int64[1] e = {3}> {
                y = Slice(x, s, e, s)
            }""",
            "no Slice before",
        ),
        (
            """agraph (float[a,8] x, int64[1] s) => (float[b,2] y, float[a,2] u)
            <int64[1] e = {3}, int64[1] i = {1}, int64[1] j = {0}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a,8] x) => (float[a,1] y, float[a,2] u)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {-1}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a,n] x, int64[1] s) => (float[a,m] y)
            <int64[1] e = {3}, int64[1] j = {1}> {
                u = Slice(x, s, e, j)
                y = Slice(u, j, e, j)
            }""",
            "the bounds are not constant",
        ),
        (
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {-3}, int64[1] e = {3}, int64[1] j = {1}> {
                u = Slice(x, j, e, j)
                y = Slice(u, s, e, j)
            }""",
            "the bounds do not give one interval",
        ),
        (  # onnx goes back from position 0, python keeps nothing
            """agraph (float[a,4] x) => (float[a,m] y)
            <int64[1] s = {0}, int64[1] e = {3}, int64[1] j = {1}, int64[1] k = {-1},
            int64[1] l = {-7}> {
                u = Slice(x, s, e, j)
                y = Slice(u, l, l, j, k)
            }""",
            "the bounds do not give one interval",
        ),
        (
            """agraph (float[a,n] x) => (float[a,m] y)
            <int64[1] s = {0}, int64[1] e = {3}, int64[1] j = {1}, int64[1] k = {2}> {
                u = Slice(x, s, e, j, k)
                y = Slice(u, j, e, j)
            }""",
            "the bounds do not give one interval",
        ),
        (
            """agraph (float[a,8] x, int64[1] j) => (float[c,d] y)
            <int64[1] s = {1}, int64[1] e = {3}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "the axes are not known, or some are given twice",
        ),
        (
            """agraph (float[] x) => (float[] y)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {-1}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "the axes are not known, or some are given twice",
        ),
        (
            """agraph (float[a,8] x, int64[n] s) => (float[] y) <int64[1] e = {3}> {
                u = Slice(x, s, s)
                y = Slice(u, e, e, e)
            }""",
            "the axes are not known, or some are given twice",
        ),
        (
            """agraph (float[a,8] x, int32[1] s) => (float[b,c] y)
            <int32[1] e = {3}, int32[1] i = {1}, int64[1] j = {0}> {
                u = Slice(x, s, e, i)
                y = Slice(u, j, j, j)
            }""",
            "the bounds cannot be merged",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


def test_old_opset_is_left_alone() -> None:
    text = """agraph (float[a,8] x) => (float[b,2] y) {
        u = Slice <starts = [1], ends = [3]> (x)
        y = Slice <starts = [1], ends = [3], axes = [1]> (u)
    }"""
    check_no_match(text, "SliceSlice", "needs opset 10", opset=9)


def test_a_null_step_has_no_interval() -> None:
    assert composed(3, (0, 2, 0), (0, 1, 1)) is None
    assert composed("n", (0, 2, 0), (0, 1, 1)) is None


def test_composed_intervals() -> None:
    """Every pair of small intervals, on every short list."""
    bounds = (-LAST, -4, -2, -1, 0, 1, 3, LAST)
    intervals = [
        [s for s in product(bounds, bounds, (1, 2, -1)) if s[2] == 1 or abs(s[0]) != LAST],
        list(product((-3, 0, 1, 2, LAST), (-2, 0, 1, 4, LAST), (1, -2))),
    ]
    lists = [list(range(n)) for n in range(7)]
    found = 0
    for first, second in product(*intervals):
        expected = [values[slice(*first)][slice(*second)] for values in lists]
        for values, kept in zip(lists, expected, strict=True):
            known = composed(len(values), first, second)
            before = [
                step < 0 and (start < -n or end == LAST)
                for (start, end, step), n in (
                    (first, len(values)),
                    (second, len(values[slice(*first)])),
                )
            ]
            assert (known is None) == any(before)
            assert known is None or values[slice(*known)] == kept
        anywhere = composed("n", first, second)
        if anywhere is not None:
            found += 1
            assert [values[slice(*anywhere)] for values in lists] == expected, (first, second)
    assert found > 200
