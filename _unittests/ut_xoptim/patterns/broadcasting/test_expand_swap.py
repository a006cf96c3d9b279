"""Expand goes after its neighbour."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

#: `Expand` towards a shape that is an input
TARGETS = [
    {"x": np.ones((2, 1, 1), np.float32), "z": np.full((2, 3, 1), 3, np.float32), "s": s}
    for s in (np.array((1, 1, 4), np.int64), np.array((2, 3, 0), np.int64))
]
#: dimensions that may be expanded together
SIZES = [{"a": 1, "b": 3, "c": 2}, {"a": 3, "b": 3, "c": 0}]

#: pattern -> case -> (before, after)
MODELS = {
    "ExpandSwap": {
        "a chain": (
            """agraph (float[a,1] x, float[b,c] z) => (float16[b,c] y) {
                s = Shape(z)
                e = Expand(x, s)
                n = Neg(e)
                y = Cast <to = 10> (n)
            }""",
            """agraph (float[a,1] x, float[b,c] z) => (float16[b,c] y) {
                n = Neg(x)
                m = Cast <to = 10> (n)
                s = Shape(z)
                y = Expand(m, s)
            }""",
            {"sizes": SIZES},
        ),
        "parameters": (
            """agraph (float[1,3] x, float low) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Clip(e, low)
            }""",
            """agraph (float[1,3] x, float low) => (float[4,3] y) <int64[2] s = {4, 1}> {
                c = Clip(x, low)
                y = Expand(c, s)
            }""",
        ),
        "Pow": (
            """agraph (float[1,3] x) => (float[4,3] y) <int64[2] s = {4, 1}, float two = {2}> {
                e = Expand(x, s)
                y = Pow(e, two)
            }""",
            """agraph (float[1,3] x) => (float[4,3] y) <int64[2] s = {4, 1}, float two = {2}> {
                p = Pow(x, two)
                y = Expand(p, s)
            }""",
        ),
    },
    "ShapeBasedExpandSwap": {
        "a scalar": (
            """agraph (float[a,1] x, float[b,c] z) => (bool[b,c] y) <float one = {1}> {
                s = Shape(z)
                e = Expand(x, s)
                y = Less(one, e)
            }""",
            """agraph (float[a,1] x, float[b,c] z) => (bool[b,c] y) <float one = {1}> {
                l = Less(one, x)
                s = Shape(z)
                y = Expand(l, s)
            }""",
            {"sizes": SIZES},
        ),
        "one element": (
            """agraph (float[3] x, float[1,1] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Sub(e, z)
            }""",
            """agraph (float[3] x, float[1,1] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                d = Sub(x, z)
                y = Expand(d, s)
            }""",
        ),
        "the same shape twice": (
            """agraph (float[a,1,1] x, float[a,b,1] z, int64[3] s) => (float[c,d,e] y) {
                p = Expand(x, s)
                q = Expand(z, s)
                y = Div(p, q)
            }""",
            """agraph (float[a,1,1] x, float[a,b,1] z, int64[3] s) => (float[c,d,e] y) {
                d = Div(x, z)
                y = Expand(d, s)
            }""",
            {"feeds": TARGETS},
        ),
    },
    "SwapExpandReshape": {
        "a known shape": (
            """agraph (float[1,b,3] x) => (float[4,1,c] y)
            <int64[3] s = {4, 1, 1}, int64[3] t = {0, 1, -1}> {
                e = Expand(x, s)
                y = Reshape(e, t)
            }""",
            """agraph (float[1,b,3] x) => (float[4,1,c] y)
            <int64[3] s = {4, 1, 1}, int64[3] t = {0, 1, -1}> {
                r = Reshape(x, t)
                y = Expand(r, s)
            }""",
        ),
        "an unknown first dimension": (
            """agraph (float[1,b,3] x, float[n] z) => (float[n,1,c] y)
            <int64[2] ones = {1, 1}, int64[3] t = {0, 1, -1}> {
                d = Shape(z)
                s = Concat <axis = 0> (d, ones)
                e = Expand(x, s)
                y = Reshape(e, t)
            }""",
            """agraph (float[1,b,3] x, float[n] z) => (float[n,1,c] y)
            <int64[2] ones = {1, 1}, int64[3] t = {0, 1, -1}> {
                r = Reshape(x, t)
                d = Shape(z)
                s = Concat <axis = 0> (d, ones)
                y = Expand(r, s)
            }""",
        ),
    },
    "SwapExpandUnsqueeze": {
        "a shorter shape": (
            """agraph (float[a,1] x) => (float[1,a,1,4] y) <int64[1] s = {4}, int64[2] k = {2, 0}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            """agraph (float[a,1] x) => (float[1,a,1,4] y)
            <int64[4] s = {1, 1, 1, 4}, int64[2] k = {2, 0}> {
                u = Unsqueeze(x, k)
                y = Expand(u, s)
            }""",
        ),
        "a negative axis": (
            """agraph (float[a,1] x) => (float[a,4,1] y) <int64[2] s = {1, 4}, int64[1] k = {-1}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            """agraph (float[a,1] x) => (float[a,4,1] y)
            <int64[3] s = {1, 4, 1}, int64[1] k = {-1}> {
                u = Unsqueeze(x, k)
                y = Expand(u, s)
            }""",
        ),
    },
    "ExpandUnsqueezeExpand": {
        "constants": (
            """agraph (float[a,1] x) => (float[3,a,4] y)
            <int64[2] s = {1, 4}, int64[1] k = {0}, int64[3] t = {3, 1, 4}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            """agraph (float[a,1] x) => (float[3,a,4] y)
            <int64[1] k = {0}, int64[3] t = {3, 1, 4}> {
                u = Unsqueeze(x, k)
                y = Expand(u, t)
            }""",
        ),
        "unknown dimensions": (
            """agraph (float[a,1] x, float[a,c] z) => (float[3,a,c] y)
            <int64[1] k = {0}, int64[1] three = {3}> {
                s = Shape(z)
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                t = Concat <axis = 0> (three, s)
                y = Expand(u, t)
            }""",
            """agraph (float[a,1] x, float[a,c] z) => (float[3,a,c] y)
            <int64[1] k = {0}, int64[1] three = {3}> {
                u = Unsqueeze(x, k)
                s = Shape(z)
                t = Concat <axis = 0> (three, s)
                y = Expand(u, t)
            }""",
        ),
    },
}

_FIRST = """agraph (float[1,b,3] x, float[b,3] v, int64[3] d) => ({y})
<int64[3] s = {{{s}}}, int64[3] t = {{{t}}}> {{
    e = Expand({x}, {n})
    y = Reshape{a}(e, t)
}}"""

#: pattern -> [(model, reason)]
#: a mask made of what it selects, once expanded
WHERE = """agraph (float[a,1] x, float[b,c] z) => (float[b,c] y) <float low = {-9}> {
    s = Shape(z)
    e = Expand(x, s)
    m = Cast <to = 9> (e)
    y = Where(m, e, low)
}"""
SWAPPED = """agraph (float[a,1] x, float[b,c] z) => (float[b,c] y) <float low = {-9}> {
    m = Cast <to = 9> (x)
    w = Where(m, x, low)
    s = Shape(z)
    y = Expand(w, s)
}"""
EXCHANGED = ("(m, e, low)", "(m, low, e)"), ("(m, x, low)", "(m, low, x)")
WIDER = ("float low", "float[1,1] low")
MODELS["ShapeBasedExpandCastWhereSwap"] = {
    "a mask": (WHERE, SWAPPED, {"sizes": SIZES}),
    "the branches exchanged": (
        WHERE.replace(*EXCHANGED[0]),
        SWAPPED.replace(*EXCHANGED[1]),
        {"sizes": SIZES},
    ),
    "one element": (WHERE.replace(*WIDER), SWAPPED.replace(*WIDER), {"sizes": SIZES}),
}

_CHOICE = """g (bool[{c}] c, int64[2] s, float[{a}] a) => (float[d, e] y) <float low = {{-9}}> {{
    {body}
}}"""


def choice(body: str, c: str = "b, 1", a: str = "") -> str:
    """A Where on a mask, between a number and what is given."""
    return _CHOICE.format(body=body, c=c, a=a).replace("float[] a", "float a")


CHOSEN = "e = Expand(c, s) y = Where(e, a, low)"
EXPANDED = "w = Where(c, a, low) y = Expand(w, s)"
_SHAPES = [
    {
        "c": np.arange(n).reshape(n, 1) % 2 == 0,
        "s": np.array([1, m], dtype=np.int64),
        "a": np.array(2, dtype=np.float32),
    }
    for n, m in ((3, 4), (1, 2), (0, 3), (2, 0))
]
_VECTORS = [{**feeds, "a": feeds["a"].reshape(1, 1)} for feeds in _SHAPES]
MODELS["ExpandWhereSwap"] = {
    "an expanded branch": (
        "g (bool c, float[b, 1] x, int64[2] s, float low) => (float[d, e] y) {"
        " r = Expand(x, s) y = Where(c, r, low) }",
        "g (bool c, float[b, 1] x, int64[2] s, float low) => (float[d, e] y) {"
        " r = Where(c, x, low) y = Expand(r, s) }",
        {
            "feeds": [
                {
                    "c": np.array(True),
                    "x": np.ones((3, 1), np.float32),
                    "s": np.array([3, 4]),
                    "low": np.array(2, np.float32),
                }
            ]
        },
    ),
    "numbers": (choice(CHOSEN), choice(EXPANDED), {"feeds": _SHAPES}),
    "exchanged": (
        choice(CHOSEN.replace("a, low", "low, a")),
        choice(EXPANDED.replace("a, low", "low, a")),
        {"feeds": _SHAPES},
    ),
    "as many dimensions": (
        choice(CHOSEN, a="1, 1"),
        choice(EXPANDED, a="1, 1"),
        {"feeds": _VECTORS},
    ),
}

REFUSED = {
    "ExpandWhereSwap": [
        (choice("e = Identity(c) y = Where(e, a, low)"), "no .*Expand.* before"),
        (choice(CHOSEN, a="4"), "another operand may have more than one element"),
        (choice(CHOSEN, a="n"), "another operand may have more than one element"),
        (
            choice(CHOSEN.replace("a, low", "low, a"), a="n"),
            "another operand may have more than one",
        ),
        (
            choice(CHOSEN, a="1, 1, 1").replace("float[d, e] y", "float[d, e, f] y"),
            "another operand may have more than one element",
        ),
        (
            choice(CHOSEN).replace("(float[d, e] y)", "(float[d, e] y, bool[d, e] e)"),
            "the inner result is used elsewhere",
        ),
        (
            "g (bool[b, 1] c, int64[2] s, bfloat16 a, bfloat16 z) => (bfloat16[d, e] y) {"
            "e = Expand(c, s) y = Where(e, a, z) }",
            "runtimes do not expand this type",
        ),
    ],
    "ShapeBasedExpandCastWhereSwap": {
        "another condition": (
            WHERE.replace("Cast <to = 9> (e)", "Cast <to = 9> (z)"),
            "another operand may have more than one element",
        ),
        "another shape": (
            WHERE.replace("(m, e, low)", "(m, e, z)"),
            "another operand may have more than one element",
        ),
        "more dimensions": (
            WHERE.replace("float low", "float[1,1,1] low").replace("[b,c] y", "[d,b,c] y"),
            "another operand may have more than one element",
        ),
        "used elsewhere": (WHERE.replace("c] y)", "c] y, float[b,c] e)"), "used elsewhere"),
    },
    "ExpandSwap": [
        (
            """agraph (float[1,3] x) => (float[4,3] y, float[4,3] z) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Neg(e)
                z = Abs(e)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[1,3] x) => (float[4,3] y, float[4,3] e) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Neg(e)
            }""",
            "the inner result is used elsewhere",
        ),
        # along an expanded axis
        (
            """agraph (float[1,3] x) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Softmax <axis = 0> (e)
            }""",
            "an axis that changes does not stay whole",
        ),
        (
            """agraph (float[1,3] x, float[4,1] p) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = PRelu(e, p)
            }""",
            "another operand may have more than one element",
        ),
        (
            """agraph (float[1,3] x, float[4,3] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Pow(z, e)
            }""",
            "another operand may have more than one element",
        ),
        (
            """agraph (float[1,3] x, float[4,3] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Pow(e, z)
            }""",
            "another operand may have more than one element",
        ),
        (
            """agraph (float[1,3] x) => (bfloat16[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Cast <to = 16> (e)
            }""",
            "runtimes do not expand this type",
        ),
    ],
    "ShapeBasedExpandSwap": [
        ("agraph (float[a] x, float[a] z) => (float[a] y) { y = Add(x, z) }", "no Expand before"),
        (
            """agraph (float[1,3] x) => (float[4,3] y, float[4,3] z) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Mul(e, e)
                z = Neg(e)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[1,3] x, float[1,3] z, int64[2] t) => (float[4,3] y)
            <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                f = Expand(z, t)
                y = Mul(e, f)
            }""",
            "the shapes are not the same",
        ),
        (
            """agraph (float[1,3] x, float[n] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Mul(e, z)
            }""",
            "may have more than one element",
        ),
        # the result has three dimensions
        (
            """agraph (float[1,3] x, float[1,1,1] z) => (float[1,4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Mul(e, z)
            }""",
            "may have more than one element",
        ),
    ],
    "SwapExpandReshape": [
        (
            "agraph (float[a,b] x) => (float[c] y) <int64[1] t = {-1}> { y = Reshape(x, t) }",
            "no Expand before",
        ),
        (
            _FIRST.format(
                y="float[4,1,c] y, float[4,b,3] e", s="4,1,1", t="0,1,-1", x="x", n="s", a=""
            ),
            "the inner result is used elsewhere",
        ),
        (
            _FIRST.format(y="float[c,3,1] y", s="4,1,1", t="-1,3,1", x="x", n="s", a=""),
            "an axis that changes does not stay whole",
        ),
        (
            _FIRST.format(
                y="float[c,d,e] y", s="4,1,1", t="4,-1,1", x="x", n="s", a=" <allowzero = 1> "
            ),
            "the new shape is not",
        ),
        (
            _FIRST.format(y="float[4,1,c] y", s="4,1,1", t="0,1,-1", x="v", n="s", a=""),
            "the ranks differ",
        ),
        (
            _FIRST.format(y="float[f,1,c] y", s="4,1,3", t="0,1,-1", x="x", n="d", a=""),
            "an axis that changes does not stay whole",
        ),
    ],
    "SwapExpandUnsqueeze": [
        (
            "agraph (float[a] x) => (float[a,1] y) <int64[1] k = {1}> { y = Unsqueeze(x, k) }",
            "no Expand before",
        ),
        (
            """agraph (float[a,1] x) => (float[1,a,4] y, float[a,4] e)
            <int64[1] s = {4}, int64[1] k = {0}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[a,1] x, int64[2] s) => (float[1,a,b] y) <int64[1] k = {0}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            "the expanded shape is not constant",
        ),
        (
            """agraph (float[a] x) => (float[1,4,a] y) <int64[2] s = {4, 1}, int64[1] k = {0}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            "the ranks differ",
        ),
        (
            """agraph (float[a,1] x, int64[1] k) => (float[b,c,d] y) <int64[1] s = {4}> {
                e = Expand(x, s)
                y = Unsqueeze(e, k)
            }""",
            "a shape is not known for every size",
        ),
    ],
    "ExpandUnsqueezeExpand": [
        (
            "agraph (float[a,1] x) => (float[a,4] y) <int64[1] s = {4}> { y = Expand(x, s) }",
            "nor Unsqueeze before",
        ),
        (
            """agraph (float[a,1] x) => (float[3,a,4] y, float[a,4] e)
            <int64[2] s = {1, 4}, int64[1] k = {0}, int64[3] t = {3, 1, 4}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a] x) => (float[3,4,a] y)
            <int64[2] s = {4, 1}, int64[1] k = {0}, int64[3] t = {3, 4, 1}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            "the ranks differ",
        ),
        (
            """agraph (float[a,1] x, int64[1] k) => (float[b,c,d] y)
            <int64[2] s = {1, 4}, int64[3] t = {3, 1, 4}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            "a shape is not known for every size",
        ),
        (
            """agraph (float[a,1] x) => (float[3,a,4] y)
            <int64[2] s = {1, 4}, int64[1] k = {0}, int64[3] t = {3, 1, 1}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            "the last shape does not have every dimension",
        ),
        (
            """agraph (float[a,1] x, int64[3] t) => (float[b,c,d] y)
            <int64[2] s = {1, 4}, int64[1] k = {0}> {
                e = Expand(x, s)
                u = Unsqueeze(e, k)
                y = Expand(u, t)
            }""",
            "the last shape does not have every dimension",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
