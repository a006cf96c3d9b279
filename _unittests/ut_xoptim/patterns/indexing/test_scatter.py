"""ScatterND on zeros, ScatterND and ScatterElements that write everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.catalogue.registry import all_patterns
from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

HEAD = "g (float[3, 2] u, int64[3, 1] i) => (float[4, 2] y)"
ZEROS = "int64[2] s = {4, 2}"
ROWS = "g (float[n, a] x, float[n, a] u) => (float[n, a] y)"
RANGE = (
    "<int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}, int64[1] first = {0}>"
    "{ s = Shape<start = 0, end = 1>(x) n = Squeeze(s, first) r0 = Range(zero, n, one)"
    " i = Unsqueeze(r0, last)"
)
ADD = 'ScatterND <reduction = "add">'
#: both rows along axis 1, the second one first
_BOTH = """g (float[a, 2, 3] x, float[a, 1, 3] u, float[a, 1, 3] v) => (float[a, 2, 3] y)
    <int64[1] one = {1}, int64[1] zero = {0}> {
        s = Shape(u) i = Expand(one, s) j = Expand(zero, s)
        r = ScatterElements<axis = 1>(x, i, u) y = ScatterElements<axis = -2>(r, j, v)
    }"""
_ONE = """g (float[1, 2] x, float[1, 2] u) => (float[1, 2] y) <int64[1, 2] i = {0, 0}> {
    r = ScatterElements(x, i, u) y = Neg(r)
}"""
_COLUMNS = """g (float[2, 2] x, float[2, 1] u, float[2, 1] v, float[2, 1] w) => (float[2, 2] y)
    <int64[2, 1] i = {0, 0}, int64[2, 1] j = {-1, -1}> {
        r0 = ScatterElements<axis = 1>(x, j, w) r = ScatterElements<axis = 1>(r0, i, u)
        y = ScatterElements<axis = 1>(r, j, v)
    }"""
TWO = (
    "g (float[3, a] x, float[2, a] u, float[1, a] v) => (float[3, a] y)"
    "<int64[2, 1] i = {{{0}}}, int64[1, 1] j = {{{1}}}>"
)
#: x[..., 0::2] = u, x[..., 1::2] = v
_COLUMNS_IN_TURN = """g (float[a, b, 4] x, float[a, b, 2] u, float[a, b, 2] v) => (float[a, b, 4] y)
    <int64[2, 1] i = {0, 2}, int64[2, 1] j = {1, -1}> {
        t = Transpose<perm = [2, 1, 0]>(x) tu = Transpose<perm = [2, 1, 0]>(u)
        tv = Transpose<perm = [2, 1, 0]>(v) r = ScatterND(t, i, tu) q = ScatterND(r, j, tv)
        y = Transpose<perm = [2, 1, 0]>(q)
    }"""
_STACKED = """g (float[a, b, 4] x, float[a, b, 2] u, float[a, b, 2] v) => (float[a, b, 4] y)
    <int64[1] i = {3}, int64[3] s = {0, 0, 4}> {
        tu = Transpose<perm = [2, 1, 0]>(u) tv = Transpose<perm = [2, 1, 0]>(v)
        bu = Transpose<perm = [2, 1, 0]>(tu) bv = Transpose<perm = [2, 1, 0]>(tv)
        cu = Unsqueeze(bu, i) cv = Unsqueeze(bv, i) c = Concat<axis = 3>(cu, cv) y = Reshape(c, s)
    }"""
_IN_ANY_ORDER = _COLUMNS_IN_TURN.replace("(t, i, tu)", "(t, j, tv)").replace(
    "(r, j, tv)", "(r, i, tu)"
)
_THREE = """g (float[a, 3] x, float[a, 1] u, float[a, 1] v, float[a, 1] w) => (float[a, 3] y)
    <int64[1, 1] i = {2}, int64[1, 1] j = {0}, int64[1, 1] k = {1}> {
        t = Transpose(x) tu = Transpose(u) tv = Transpose(v) tw = Transpose(w)
        r = ScatterND(t, i, tu) q = ScatterND(r, j, tv) p = ScatterND(q, k, tw) y = Transpose(p)
    }"""
MODELS = {
    "ScatterNDInterleaved": {
        "every other column": (_COLUMNS_IN_TURN, _STACKED),
        "the second ones first": (_IN_ANY_ORDER, _STACKED),
        "three columns": (_THREE, None),
    },
    "ScatterElementsConcat": {
        "two rows": (
            _BOTH,
            "g (float[a, 2, 3] x, float[a, 1, 3] u, float[a, 1, 3] v) => (float[a, 2, 3] y)"
            "{ y = Concat<axis = 1>(v, u) }",
        ),
        "one row": (_ONE, "g (float[1, 2] x, float[1, 2] u) => (float[1, 2] y) { y = Neg(u) }"),
        "constant indices, a negative one, a row is written again": (
            _COLUMNS,
            """g (float[2, 2] x, float[2, 1] u, float[2, 1] v, float[2, 1] w) => (float[2, 2] y)
            <int64[2, 1] j = {-1, -1}> {
                r0 = ScatterElements<axis = 1>(x, j, w) y = Concat<axis = 1>(u, v)
            }""".replace("<int64[2, 1] j = {-1, -1}> {", "{").replace(
                "r0 = ScatterElements<axis = 1>(x, j, w)", ""
            ),
        ),
    },
    "AddReductionScatterND": {
        "a shape": (
            f"{HEAD} <{ZEROS}> {{ z = ConstantOfShape(s) y = ScatterND(z, i, u) }}",
            f"{HEAD} <{ZEROS}> {{ z = ConstantOfShape(s) y = {ADD} (z, i, u) }}",
            {"feeds": [{"u": np.ones((3, 2), np.float32), "i": np.array([[1], [0], [-1]])}]},
        ),
        "a constant, indices that are not repeated": (
            "g (float[2] u) => (float[3] y) <float[3] z = {0, 0, 0}, int64[2, 1] i = {2, 0}>"
            "{ y = ScatterND(z, i, u) }",
            "g (float[2] u) => (float[3] y) <float[3] z = {0, 0, 0}, int64[2, 1] i = {2, 0}>"
            f"{{ y = {ADD} (z, i, u) }}",
        ),
    },
    "ScatterNDEverything": {
        "constant indices": (
            "g (float[3, a] x, float[3, a] u) => (float[3, a] y) <int64[3, 1] i = {0, 1, 2}>"
            "{ r = ScatterND(x, i, u) y = Neg(r) }",
            "g (float[3, a] x, float[3, a] u) => (float[3, a] y) { y = Neg(u) }",
        ),
        "as many as there are rows": (
            f"{ROWS} {RANGE} r = ScatterND(x, i, u) y = Neg(r) }}",
            "g (float[n, a] x, float[n, a] u) => (float[n, a] y) { y = Neg(u) }",
        ),
        "two that write every row": (
            f"{TWO.format('1, 2', '0')} {{ r = ScatterND(x, i, u) s = ScatterND(r, j, v) y = Neg(s) }}",
            "g (float[3, a] x, float[2, a] u, float[1, a] v) => (float[3, a] y)"
            "{ r = Concat<axis = 0>(v, u) y = Neg(r) }",
        ),
        "negative rows": (
            f"{TWO.format('0, 1', '-1')} {{ r = ScatterND(x, i, u) s = ScatterND(r, j, v) y = Neg(s) }}",
            "g (float[3, a] x, float[2, a] u, float[1, a] v) => (float[3, a] y)"
            "{ r = Concat<axis = 0>(u, v) y = Neg(r) }",
        ),
    },
    "GatherGrad": (
        "g (int64[2] s, int64[n] j, float[n, 2] u) => (float[a, b] y) <int64[1] last = {-1}> {"
        f"z = ConstantOfShape(s) i = Unsqueeze(j, last) y = {ADD} (z, i, u) }}",
        "g (int64[2] s, int64[n] j, float[n, 2] u) => (float[a, b] y)"
        "{ y = com.microsoft.GatherGrad <axis = 0> (s, j, u) }",
        # onnxruntime has no kernel for it outside of its builds for training
        {"runtime": False},
    ),
}
_COLUMN = (
    f"g (int64[2] s, int64[n, 1] i, float[n, 2] u) => (float[a, b] y) {{ z = ConstantOfShape(s) y = {ADD} (z, i, u) }}",
    "g (int64[2] s, int64[n, 1] i, float[n, 2] u) => (float[a, b] y) <int64[1] last = {1}>"
    "{ j = Squeeze(i, last) y = com.microsoft.GatherGrad <axis = 0> (s, j, u) }",
)  # fmt: skip
_ZEROS = (
    "g (int64[n] j, float[n, 2] u) => (float[3, 2] y) <int64[1] last = {-1},"
    f"float[3, 2] z = {{0, 0, 0, 0, 0, 0}}> {{ i = Unsqueeze(j, last) y = {ADD} (z, i, u) }}",
    "g (int64[n] j, float[n, 2] u) => (float[3, 2] y) <int64[2] s = {3, 2}>"
    "{ y = com.microsoft.GatherGrad <axis = 0> (s, j, u) }",
)
#: the gradient of a gather along the second axis
_MOVED = (
    "g (int64[2] s, int64[n] j, float[n, a] u) => (float[b, a] y) <int64[1] last = {-1}> {"
    "z0 = ConstantOfShape(s) z = Transpose<perm = [1, 0]>(z0) "
    f"i = Unsqueeze(j, last) y = {ADD} (z, i, u) }}",
    "g (int64[2] s, int64[n] j, float[n, a] u) => (float[b, a] y) <int64[2] p = {1, 0}>"
    "{ t = Gather(s, p) y = com.microsoft.GatherGrad <axis = 0> (t, j, u) }",
)
_SHAPE = MODELS["AddReductionScatterND"]["a shape"][0]
_CONSTANT = MODELS["AddReductionScatterND"]["a constant, indices that are not repeated"][0]
_GRAD = MODELS["GatherGrad"][0]
REFUSED = {
    "ScatterNDInterleaved": {
        "one of both": (
            _COLUMNS_IN_TURN.replace("ScatterND(r, j, tv)", "Neg(r)"),
            "no ScatterND before",
        ),
        "one": (
            "g (float[a, 2] x, float[a, 1] u) => (float[a, 2] y) <int64[1, 1] i = {0}> {"
            "t = Transpose(x) tu = Transpose(u) r = ScatterND(t, i, tu) y = Transpose(r) }",
            "there is one ScatterND",
        ),
        "the same twice": (_COLUMNS_IN_TURN.replace("{1, -1}", "{0, 2}"), "not written in turn"),
        "rows that follow each other": (
            _COLUMNS_IN_TURN.replace("{0, 2}", "{0, 1}").replace("{1, -1}", "{2, 3}"),
            "do not follow each other",
        ),
        "some stay": (
            _COLUMNS_IN_TURN.replace("4]", "6]").replace("-1", "3"),
            "not written in turn",
        ),
        "a reduction": (
            _COLUMNS_IN_TURN.replace("ScatterND(r", f"{ADD} (r"),
            "there is a reduction",
        ),
        "another axis": (
            _COLUMNS_IN_TURN.replace(
                "y = Transpose<perm = [2, 1, 0]>", "y = Transpose<perm = [1, 0, 2]>"
            ).replace("=> (float[a, b, 4] y)", "=> (float[b, 4, a] y)"),
            "do not become the last axis",
        ),
        "an inner result is read": (
            _COLUMNS_IN_TURN.replace(
                "y = Transpose<perm = [2, 1, 0]>(q)",
                "s = Add(q, r) y = Transpose<perm = [2, 1, 0]>(q)",
            ).replace("[a, b, 4] y)", "[a, b, 4] y, float[4, b, a] s)"),
            "used elsewhere",
        ),
        "a number of columns that is not known": (
            _COLUMNS_IN_TURN.replace("4]", "c]"),
            "their number is not known",
        ),
    },
    "ScatterElementsConcat": {
        "the last one is looked at": (
            _BOTH.replace("[a, 2, 3] x", "[a, 3, 3] x").replace("[a, 2, 3] y", "[a, 3, 3] y"),
            "another one follows",
        ),
        "some rows": (
            _BOTH.replace("[a, 2, 3] x", "[a, 3, 3] x").replace("[a, 2, 3] y", "[a, 3, 3] y"),
            "some rows may stay",
        ),
        "twice the same one": (_BOTH.replace("zero = {0}", "zero = {1}"), "some rows may stay"),
        "the inner result is an output": (
            _BOTH.replace("[a, 2, 3] y", "[a, 2, 3] y, float[a, 2, 3] r"),
            "some rows may stay",
        ),
        "a number of rows that is not known": (
            _BOTH.replace("[a, 2, 3] x", "[a, n, 3] x").replace("[a, 2, 3] y", "[a, n, 3] y"),
            "some rows may stay",
        ),
        "a reduction": (
            _ONE.replace("Elements(", 'Elements<reduction = "add">('),
            "it may not write a row",
        ),
        "another axis": (_BOTH.replace("axis = 1", "axis = 2"), "it may not write a row"),
        "a part of a row": (
            _ONE.replace("[1, 2] x", "[1, 3] x").replace("[1, 2] y", "[1, 3] y"),
            "it may not write a row",
        ),
        "two rows at once": (
            _ONE.replace("[1, 2]", "[2, 2]").replace("{0, 0}", "{0, 0, 0, 0}"),
            "it may not write a row",
        ),
        "several indices": (
            _COLUMNS.replace("j = {-1, -1}", "j = {-1, 0}"),
            "it may not write a row",
        ),
        "any indices": (
            _ONE.replace("<int64[1, 2] i = {0, 0}>", "").replace("u)", "u, int64[1, 2] i)", 1),
            "it may not write a row",
        ),
    },
    "ScatterNDEverything": {
        "two that write a row twice": (
            f"{TWO.format('0, 1', '1')} {{ r = ScatterND(x, i, u) y = ScatterND(r, j, v) }}",
            "some rows may stay",
        ),
        "two, rows that do not follow": (
            f"{TWO.format('2, 0', '1')} {{ r = ScatterND(x, i, u) y = ScatterND(r, j, v) }}",
            "the rows do not follow each other",
        ),
        "two, a reduction inside": (
            f"{TWO.format('1, 2', '0')} {{ r = {ADD} (x, i, u) y = ScatterND(r, j, v) }}",
            "there is a reduction",
        ),
        "two, an inner result is used": (
            f"{TWO.format('1, 2', '0')} {{ r = ScatterND(x, i, u) s = ScatterND(r, j, v) y = Add(r, s) }}",
            "an inner result is used elsewhere",
        ),
        "the first of two": (
            f"{TWO.format('1, 2', '0')} {{ q = ScatterND(x, j, v) r = ScatterND(q, j, v) y = ScatterND(r, j, v) }}",
            "another one follows",
        ),
        "a reduction": (
            "g (float[2, a] x, float[2, a] u) => (float[2, a] y) <int64[2, 1] i = {0, 1}>"
            f"{{ y = {ADD} (x, i, u) }}",
            "there is a reduction",
        ),
        "some rows": (
            "g (float[3, a] x, float[2, a] u) => (float[3, a] y) <int64[2, 1] i = {0, 1}>"
            "{ y = ScatterND(x, i, u) }",
            "some rows may stay",
        ),
        "updates of an unknown type": (
            "g (float[2, a] x, float[2, a] u) => (float[2, a] y) <int64[2, 1] i = {0, 1}>"
            "{ w = com.unknown.Op(u) y = ScatterND(x, i, w) }",
            "the type of the updates is not known",
        ),
        "another number of rows": (
            "g (float[n, a] x, float[2, a] u) => (float[n, a] y) <int64[2, 1] i = {0, 1}>"
            "{ y = ScatterND(x, i, u) }",
            "some rows may stay",
        ),
        "another order": (
            "g (float[2, a] x, float[2, a] u) => (float[2, a] y) <int64[2, 1] i = {1, 0}>"
            "{ y = ScatterND(x, i, u) }",
            "the indices are not 0, 1, 2",
        ),
        "two coordinates": (
            "g (float[1, 2] x, float[1] u) => (float[1, 2] y) <int64[1, 2] i = {0, 0}>"
            "{ y = ScatterND(x, i, u) }",
            "the indices are not 0, 1, 2",
        ),
        "any indices": (
            "g (float[2, a] x, float[2, a] u, int64[2, 1] i) => (float[2, a] y)"
            "{ y = ScatterND(x, i, u) }",
            "the indices are not 0, 1, 2",
        ),
        "from 1": (
            f"{ROWS} {RANGE} y = ScatterND(x, i, u) }}".replace("Range(zero", "Range(one"),
            "the indices are not 0, 1, 2",
        ),
        "the rows of something else": (
            "g (float[n, a] x, float[m, a] z, float[m, a] u) => (float[n, a] y)"
            f"{RANGE} y = ScatterND(x, i, u) }}".replace("end = 1>(x)", "end = 1>(z)"),
            "some rows may stay",
        ),
    },
    "AddReductionScatterND": {
        "a reduction": (_SHAPE.replace("ScatterND(", f"{ADD} ("), "already a reduction"),
        "not zeros": (
            _SHAPE.replace("OfShape(s)", "OfShape <value = float[1] {1}> (s)"),
            "not made of zeros",
        ),
        "any data": (
            "g (float[4, 2] z, float[3, 2] u, int64[3, 1] i) => (float[4, 2] y)"
            "{ y = ScatterND(z, i, u) }",
            "not made of zeros",
        ),
        # the last one wins, the sum is something else
        "a repeated index": (_CONSTANT.replace("{2, 0}", "{2, 2}"), "an index is repeated"),
        "a negative index": (_CONSTANT.replace("{2, 0}", "{2, -1}"), "an index is repeated"),
        "booleans": (
            "g (bool[2] u, int64[2, 1] i) => (bool[3] y) <bool[3] z = {0, 0, 0}>"
            "{ y = ScatterND(z, i, u) }",
            "runtimes may not add this type",
        ),
    },
    "GatherGrad": {
        "nothing is added": (_GRAD.replace(ADD, "ScatterND"), "the updates are not added"),
        "not zeros": (
            _GRAD.replace("OfShape(s)", "OfShape <value = float[1] {1}> (s)"),
            "not made of zeros",
        ),
        "a constant that is not zeros": (_ZEROS[0].replace("0, 0}", "0, 1}"), "not made of zeros"),
        "zeros of unknown shape": (
            _GRAD.replace("z = C", "w = C").replace("(s)", "(s) z = Reshape<allowzero = 1>(w, s)"),
            "the shape is not known",
        ),
        "two coordinates": (_GRAD.replace("last = {-1}", "last = {0}"), "several coordinates"),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_a_column_of_indices() -> None:
    check_pattern(*_COLUMN, "GatherGrad", runtime=False)


def test_zeros_that_are_moved() -> None:
    check_pattern(*_MOVED, "GatherGrad", runtime=False)


def test_constant_zeros() -> None:
    check_pattern(*_ZEROS, "GatherGrad", runtime=False)


def test_sets() -> None:
    assert all_patterns()["AddReductionScatterND"].tags == ("fix", "approximate")
    assert all_patterns()["GatherGrad"].tags == ("rounding",)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 4), st.booleans())
def test_any_order_of_indices(order: list[int], count: int, negative: bool) -> None:
    """Indices that are not repeated, none, negative ones."""
    places = np.array(order[:count], np.int64).reshape(-1, 1) - (4 if negative else 0)
    feeds = {"u": np.arange(2 * count, dtype=np.float32).reshape(-1, 2), "i": places}
    text = _SHAPE.replace("[3, 2] u", "[n, 2] u").replace("[3, 1] i", "[n, 1] i")
    check_pattern(text, None, "AddReductionScatterND", feeds=[feeds])


def test_a_repeated_index_is_why_it_is_approximate() -> None:
    feeds = {"u": np.ones((3, 2), np.float32), "i": np.zeros((3, 1), np.int64)}
    with pytest.raises(AssertionError, match="values differ"):
        check_pattern(_SHAPE, None, "AddReductionScatterND", feeds=[feeds])
