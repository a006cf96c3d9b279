"""Dimensions 1 an Unsqueeze adds first."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

AXES = """int64[1] a0 = {0}, int64[1] a1 = {1}, int64[1] last = {-1}, int64[2] a01 = {0, 1},
    int64[2] a02 = {0, 2}, int64[2] a12 = {1, 2}, int64[3] a012 = {0, 1, 2},
    int64[3] a013 = {0, 1, 3}"""


def graph(body: str, inputs: str, outputs: str, constants: str = "") -> str:
    """A graph whose axes are constants."""
    return f"g ({inputs}) => ({outputs}) <{AXES}{constants}> {{ {body} }}"


def pair(before: str, after: str, *others: str) -> tuple[str, str]:
    """Two bodies of the same graph."""
    return graph(before, *others), graph(after, *others)


TWO = "float[a] x, float[c, b, a] z"
SCORES = "int64[k] x, int64[q] z, bool[b, 1, 1, k] m"
ANGLES = ", float[3] f = {1.0, 0.1, 0.01}"
TABLE = ", float[4, 3] t = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"
COPIES = ", int64[3] copies = {2, 1, 1}, int64[2] few = {2, 1}"

INDICES = [
    {"x": np.array(x, np.int64), "z": np.ones((b, len(x), 3), np.float32)}
    for b, x in ((2, [0, 3, -4]), (1, [2]), (2, []))
]

MODELS = {
    "LeadingUnsqueeze": {
        "the other operand has as many dimensions": pair(
            "u = Unsqueeze(x, a01) y = Add(u, z)",
            "y = Add(x, z)",
            TWO,
            "float[c, b, a] y",
        ),
        "it is the first operand, a comparison": pair(
            "u = Unsqueeze(x, a01) y = Less(z, u)",
            "y = Less(z, x)",
            TWO,
            "bool[c, b, a] y",
        ),
        "negative axes": pair(
            "u = Unsqueeze(x, n) y = Add(u, z)",
            "y = Add(x, z)",
            TWO,
            "float[c, b, a] y",
            ", int64[2] n = {-2, -3}",
        ),
        "a number": pair(
            "u = Unsqueeze(x, a0) y = Mul(u, z)",
            "y = Mul(x, z)",
            "float x, float[a] z",
            "float[a] y",
        ),
        "Where": pair(
            "u = Unsqueeze(x, a0) v = Unsqueeze(z, a01) y = Where(m, u, v)",
            "y = Where(m, x, z)",
            "float[b, a] x, float[a] z, bool[c, 1, 1] m",
            "float[c, b, a] y",
        ),
        "through operators of one element": pair(
            "u = Unsqueeze(x, a01) v = Cos(u) w = Cast<to = 11>(v) y = Sub(z, w)",
            "v = Cos(x) w = Cast<to = 11>(v) y = Sub(z, w)",
            "float[a] x, double[c, b, a] z",
            "double[c, b, a] y",
        ),
        "both sides have new dimensions": pair(
            """u = Unsqueeze(x, a012) v = Unsqueeze(z, a013) l = LessOrEqual(u, v)
               y = And(l, m)""",
            "v = Unsqueeze(z, a013) l = LessOrEqual(x, v) y = And(l, m)",
            SCORES,
            "bool[b, 1, q, k] y",
        ),
        "the shorter Unsqueeze exists": pair(
            """v = Unsqueeze(z, a013) l = LessOrEqual(x, v) y = And(l, m) w = Unsqueeze(z, a1)
               o = Neg(w)""",
            "w = Unsqueeze(z, a1) l = LessOrEqual(x, w) y = And(l, m) o = Neg(w)",
            SCORES,
            "bool[b, 1, q, k] y, int64[q, 1] o",
        ),
        "an Unsqueeze with one axis less exists": pair(
            """v = Unsqueeze(z, a013) l = LessOrEqual(x, v) y = And(l, m) w = Unsqueeze(z, a02)
               o = Neg(w)""",
            "w = Unsqueeze(z, a02) l = LessOrEqual(x, w) y = And(l, m) o = Neg(w)",
            SCORES,
            "bool[b, 1, q, k] y, int64[1, q, 1] o",
        ),
        "Squeeze": pair(
            """u = Unsqueeze(x, a02) v = Cast<to = 1>(u) w = Mul(v, f) c = Cos(w) s = Sin(w)
               y = Squeeze(c, a0) o = Squeeze(s, a0)""",
            """u = Unsqueeze(x, a1) v = Cast<to = 1>(u) w = Mul(v, f) y = Cos(w) o = Sin(w)""",
            "int64[a] x",
            "float[a, 3] y, float[a, 3] o",
            ANGLES,
        ),
        "Squeeze of other dimensions": pair(
            "u = Unsqueeze(x, a01) v = Neg(u) w = Squeeze(v, a02) y = Add(w, z)",
            "v = Neg(x) w = Squeeze(v, a0) y = Add(w, z)",
            "float[1, a] x, float[b, a] z",
            "float[b, a] y",
        ),
        "indices": (
            *pair(
                "u = Unsqueeze(x, a0) r = Gather(t, u) y = Add(z, r)",
                "r = Gather(t, x) y = Add(z, r)",
                "int64[s] x, float[b, s, 3] z",
                "float[b, s, 3] y",
                TABLE,
            ),
            {"feeds": INDICES},
        ),
        "Expand": pair(
            "u = Unsqueeze(x, a0) y = Expand(u, copies)",
            "y = Expand(x, copies)",
            "float[b, a] x",
            "float[2, b, a] y",
            COPIES,
        ),
        "a longer Expand": pair(
            "u = Unsqueeze(x, a01) e = Expand(u, few) y = Add(e, z)",
            "e = Expand(x, few) y = Add(e, z)",
            "float[a] x, float[c, 2, a] z",
            "float[c, 2, a] y",
            COPIES,
        ),
        "after a dimension 1": pair(
            "u = Unsqueeze(x, a1) y = Mul(z, u)",
            "y = Mul(z, x)",
            "float[1, s, d] x, float[b, h, s, d] z",
            "float[b, h, s, d] y",
        ),
        "around a dimension 1": pair(
            "u = Unsqueeze(x, a02) y = Mul(z, u)",
            "y = Mul(z, x)",
            "float[1, s] x, float[b, c, h, s] z",
            "float[b, c, h, s] y",
        ),
        "two uses": pair(
            "u = Unsqueeze(x, a01) y = Add(u, z) v = Neg(u) o = Mul(z, v)",
            "y = Add(x, z) v = Neg(x) o = Mul(z, v)",
            TWO,
            "float[c, b, a] y, float[c, b, a] o",
        ),
    },
}

SEEN = graph("u = Unsqueeze(x, a01) v = Neg(u) y = Add(v, z)", TWO, "float[c, b, a] y")
REFUSED = {
    "LeadingUnsqueeze": {
        "the axis is the last one": (
            SEEN.replace("(x, a01)", "(x, last)"),
            "no new axis is the first one",
        ),
        "a dimension before may not be 1": (
            graph(
                "u = Unsqueeze(x, a1) y = Mul(z, u)",
                "float[k, s] x, float[k, k, s] z",
                "float[k, k, s] y",
            ),
            "no new axis is the first one",
        ),
        "the axes are an input": (
            SEEN.replace("(x, a01)", "(x, k)").replace("g (", "g (int64[k] k, "),
            "the axes are not known",
        ),
        "other axes stay, nothing goes": (
            graph("u = Unsqueeze(x, a02) y = Add(u, z)", TWO, "float[c, a, a] y").replace(
                "float[c, b, a] z", "float[c, a, a] z"
            ),
            "no node goes away",
        ),
        "fewer dimensions": (
            SEEN.replace("float[c, b, a] z", "float[b, a] z").replace("[c, b", "[1, b"),
            "seen from outside",
        ),
        "an output": (
            SEEN.replace("=> (", "=> (float[1, 1, a] u, "),
            "seen from outside",
        ),
        "a result of it is an output": (
            SEEN.replace("=> (", "=> (float[1, 1, a] v, "),
            "seen from outside",
        ),
        "a subgraph reads it": (
            graph(
                """u = Unsqueeze(x, a01) v = Neg(u)
                   y = If(c) <then_branch = h () => (float[d, b, a] t) { t = Add(u, z) },
                             else_branch = k () => (float[d, b, a] e) { e = Identity(z) }>""",
                "float[a] x, float[d, b, a] z, bool c",
                "float[d, b, a] y",
            ),
            "seen from outside",
        ),
        "the mask of an attention": (
            SEEN.replace("y = Add(v, z)", "w = Add(v, z) y = Softmax(w)"),
            "a mask keeps its dimensions",
        ),
        "something else reads it": (
            SEEN.replace("Neg(u)", "Softmax<axis = 2>(u)"),
            "does not broadcast",
        ),
        "the function of a user": (
            SEEN.replace("Neg(u)", "mine.Neg(u)").replace("> {", ">  {"),
            "does not broadcast",
        ),
        "the rank of the other operand is not known": (
            SEEN.replace("float[c, b, a]", "float[]"),
            "the rank of an operand is not known",
        ),
        "a parameter": (
            graph(
                "u = Unsqueeze(x, a01) y = Expand(z, u)",
                "int64 x, float[1, a] z",
                "float[c, a] y",
            ),
            "those of a parameter",
        ),
        "the length of a shape": (
            graph(
                "u = Unsqueeze(x, a0) y = Expand(u, s)",
                "float[a] x, int64[n] s",
                "float[] y",
            ),
            "the length of a shape is not known",
        ),
        "a shorter Expand": (
            graph(
                "u = Unsqueeze(x, a01) y = Expand(u, few)",
                "float[a] x",
                "float[1, 2, a] y",
                COPIES,
            ),
            "seen from outside",
        ),
        "indices of columns": (
            graph(
                "u = Unsqueeze(x, a0) y = Gather<axis = 1>(t, u)",
                "int64[s] x",
                "float[4, 1, s] y",
                TABLE,
            ),
            "does not read along the first axis",
        ),
        "what is read, not where": (
            graph(
                "u = Unsqueeze(x, a0) y = Gather(u, z)",
                "float[a] x, int64[s] z",
                "float[s, a] y",
            ),
            "does not read along the first axis",
        ),
        "a Squeeze whose axes are not known": (
            graph("u = Unsqueeze(x, a0) v = Neg(u) y = Squeeze(v)", "float[a] x", "float[] y"),
            "the axes of a Squeeze are not known",
        ),
        "many nodes": (
            graph(
                "v0 = Unsqueeze(x, a01) "
                + " ".join(f"v{i + 1} = Neg(v{i})" for i in range(17))
                + " y = Add(v17, z)",
                TWO,
                "float[c, b, a] y",
            ),
            "too many nodes",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
