"""RotaryConcatPart: parts beside zeros are concatenated instead of added."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

NAME = "RotaryConcatPart"
SIZES = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
    int64[2, 1] first = {0, 1}, int64[3, 1] last = {-3, 3, -1}, int64[2, 2] cells = {0, 0, 1, 1},
    int64[2, 1] apart = {0, 2}, int64[0, 1] none = {}, int64[3, 1] far = {3, 4, 5},
    float[1, 2] z2 = {0, 0}, float[1, 3] z3 = {0, 0, 0}, float[1, 2] z21 = {0, 1}"""


def parts(body: str, a: str = "float[1, 3] a", b: str = "float[1, 2] b", y: str = "1, 5") -> str:
    """A sum of parts."""
    return f"agraph ({a}, {b}) => (float[{y}] y) <{SIZES}> {{ {body} }}"


def rows(body: str, a: str = "float[2, n] a", b: str = "float[3, n] b") -> str:
    """A sum of rows written on zeros of the shape of one of both."""
    zeros = (
        "n = Shape<start = 1>(a) s5 = Concat<axis = 0>(five, n) z5 = ConstantOfShape(s5) "
        "s3 = Concat<axis = 0>(three, n) z3d = ConstantOfShape(s3) "
    )
    return parts(zeros + body, a, b, "5, n").replace("<int64", "<int64[1] five = {5}, int64")


SIDES = "l = Concat<axis = 1>(z2, a) r = Concat<axis = -1>(b, z3) y = Add(l, r)"
WRITTEN = "l = ScatterND(z5, first, a) r = ScatterND(z5, last, b) y = Add(l, r)"
MIXED = "l = Concat<axis = 0>(a, z3d) r = ScatterND(z5, last, b) y = Add(l, r)"
JOINED = parts("y = Concat<axis = 0>(a, b)", "float[2, n] a", "float[3, n] b", "5, n")
#: symbolic dimension before the axis, zeros made of its shape
DYNAMIC = """n = Shape<start = 0, end = 1>(a) s3 = Concat<axis = 0>(n, three) z = ConstantOfShape(s3)
    s2 = Concat<axis = 0>(n, two) w = ConstantOfShape(s2)
    l = Concat<axis = 1>(w, a) r = Concat<axis = 1>(b, z) y = Add(l, r)"""
MODELS = {
    NAME: {
        "two halves": (parts(SIDES), parts("y = Concat<axis = 1>(b, a)")),
        "a dimension that is not known": (
            parts(DYNAMIC, "float[n, 3] a", "float[n, 2] b", "n, 5"),
            parts("y = Concat<axis = 1>(b, a)", "float[n, 3] a", "float[n, 2] b", "n, 5"),
        ),
        "several parts on a side": (
            parts(
                "l = Concat<axis = 1>(b, z3, b) r = Concat<axis = 1>(z2, a, z2) y = Add(l, r)",
                y="1, 7",
            ),
            parts("y = Concat<axis = 1>(b, a, b)", y="1, 7"),
        ),
        "zeros in pieces, an empty part": (
            parts(
                "l = Concat<axis = 1>(z2, z3, b, e) r = Concat<axis = 1>(b, a, e, z2) "
                "y = Add(l, r)",
                a="float[1, 3] a, float[1, 0] e",
                y="1, 7",
            ),
            parts("y = Concat<axis = 1>(b, a, b)", a="float[1, 3] a, float[1, 0] e", y="1, 7"),
        ),
        "rows written on zeros": (rows(WRITTEN), JOINED),
        "rows added to zeros": (
            rows(WRITTEN.replace("ScatterND(", 'ScatterND<reduction = "add">(')),
            JOINED,
        ),
        "a Concat and rows": (rows(MIXED), JOINED),
        "a side is used elsewhere": (
            parts(SIDES.replace("y = Add(l, r)", "t = Add(l, r) y = Sub(t, l)")),
            parts("l = Concat<axis = 1>(z2, a) t = Concat<axis = 1>(b, a) y = Sub(t, l)"),
        ),
    }
}
REFUSED = {
    NAME: {
        "another operand": (
            parts("l = Concat<axis = 1>(z2, a) r = Concat<axis = 1>(b, z3) n = Neg(r) y = Add(l, n)"),
            "both sides are not Concat or ScatterND",
        ),
        "not zeros": (parts(SIDES.replace("z2", "z21")), "a part is not beside zeros"),
        "both at one place": (
            parts("l = Concat<axis = 1>(z2, a) r = Concat<axis = 1>(z3, b) y = Add(l, r)"),
            "a part is not beside zeros",
        ),
        "zeros beside zeros": (
            parts(
                "l = Concat<axis = 1>(z2, a, z2) r = Concat<axis = 1>(b, z3, z2) y = Add(l, r)",
                y="1, 7",
            ),
            "zeros are beside zeros",
        ),
        "a length that is not known": (
            parts(SIDES, b="float[1, m] b", y="c, d"),
            "the length of a part is not known",
        ),
        "broadcast": (
            parts(DYNAMIC.replace("(b, z)", "(b, z3)"), "float[n, 3] a", y="n, 5"),
            "one side may be broadcast",
        ),
        "other axes": (
            "agraph (float[2, 5] a, float[4, 2] b) => (float[4, 5] y) <float[2, 5] z = "
            "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, float[4, 3] w = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}>"
            "{ l = Concat<axis = 0>(a, z) r = Concat<axis = 1>(b, w) y = Add(l, r) }",
            "the axes are not the same",
        ),
        "rows on something else": (
            rows(WRITTEN.replace("ScatterND(z5, first", "ScatterND(c, first"), "float[2, n] a, float[5, n] c"),
            "rows are not written on zeros",
        ),
        "the largest of the rows": (
            rows(WRITTEN.replace("ScatterND(", 'ScatterND<reduction = "max">(')),
            "the reduction may keep a zero",
        ),
        "rows that are not constant": (
            rows(WRITTEN.replace("last, b", "i, b"), b="float[3, n] b, int64[3, 1] i"),
            "the rows are not known",
        ),
        "cells": (
            rows(
                WRITTEN.replace("first, a", "cells, v"), "float[2, n] a, float[2] v"
            ),
            "what is written is not whole rows",
        ),
        "rows that do not follow each other": (
            rows(WRITTEN.replace("first", "apart")),
            "the rows do not follow each other",
        ),
        "a row out of range": (
            rows(WRITTEN.replace("last", "far")),
            "the rows do not follow each other",
        ),
        "no row": (
            rows(WRITTEN.replace("first, a", "none, e"), "float[2, n] a, float[0, n] e"),
            "no row is written",
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_a_half_turned() -> None:
    """The nodes FunctionHalfRotaryEmbedding matches are there afterwards."""
    check_pattern(
        "agraph (float[n, 4] x) => (float[n, 4] y) <int64[2] halves = {2, 2}, int64[1] two = {2}> {"
        "u, v = Split<axis = 1>(x, halves) w = Neg(v) n = Shape<end = 1>(x) "
        "s = Concat<axis = 0>(n, two) z = ConstantOfShape(s) "
        "l = Concat<axis = 1>(w, z) r = Concat<axis = 1>(z, u) y = Add(l, r) }",
        "agraph (float[n, 4] x) => (float[n, 4] y) <int64[2] halves = {2, 2}> {"
        "u, v = Split<axis = 1>(x, halves) w = Neg(v) y = Concat<axis = 1>(w, u) }",
        NAME,
    )


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    sides=st.integers(0, 31),
    axis=st.integers(-2, 1),
    wrong=st.integers(0, 5),
)
def test_any_parts(lengths: list[int], sides: int, axis: int, wrong: int) -> None:
    """Parts on one side or the other; zeros of one of them may be something else."""
    inputs, constants, left, right = [], [], [], []
    for i, n in enumerate(lengths):
        shape = f"2, {n}" if axis % 2 else f"{n}, 2"
        value = 1 if i == wrong else 0
        inputs.append(f"float[{shape}] p{i}")
        constants.append(f"float[{shape}] z{i} = {{{', '.join([str(value)] * (2 * n))}}}")
        a, b = (left, right) if sides >> i & 1 else (right, left)
        a.append(f"p{i}")
        b.append(f"z{i}")
    total = f"2, {sum(lengths)}" if axis % 2 else f"{sum(lengths)}, 2"
    text = (
        f"agraph ({', '.join(inputs)}) => (float[{total}] y) <{', '.join(constants)}> {{"
        f"l = Concat<axis = {axis}>({', '.join(left)}) r = Concat<axis = {axis}>({', '.join(right)})"
        "y = Add(l, r) }"
    )
    model = model_from_text(text, 18)
    done = wrong >= len(lengths) or lengths[wrong] == 0
    if done and sum(lengths):
        found = check_pattern(model, None, NAME)
        assert "Add" not in {n.op_type for n in found.graph.node}
    else:
        result, _, _ = optimize_with(model, NAME)
        assert "Add" in {n.op_type for n in result.graph.node} or not sum(lengths)
