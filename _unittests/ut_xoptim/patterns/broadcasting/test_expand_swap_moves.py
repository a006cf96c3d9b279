"""Expand goes after an operator that moves whole axes, or leaves those that change as they are."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, refusal_tests, rewrite_tests

#: an Expand towards 4 rows, when the other dimensions do not change
ROWS = "float[1, b, 3] x"
#: operands whose number of rows and columns differ, and an empty one
FEEDS = {"feeds": [{"x": np.arange(3 * n, dtype=np.float32).reshape((1, n, 3))} for n in (2, 1, 0)]}


def _texts(
    y: str, node: str, after: str, s: str = "4, 1, 1", t: str = "", x: str = ROWS
) -> tuple[str, str]:
    """The models before and after: Expand, then an operator; the operator, then Expand.

    :param y: the shape of the result
    :param node: the operator, its operand is @
    :param after: the shape Expand reads once it is moved
    :param s: the shape it reads before
    :param t: other constants
    :param x: the input
    """
    head = f"g ({x}) => (float[{y}] y)"
    sizes, moved = (f"int64[{len(v.split(','))}] s = {{{v}}}" for v in (s, after))
    others = f", {t}" if t else ""
    first, last = node.replace("@", "e"), node.replace("@", "x")
    return (
        f"{head} <{sizes}{others}> {{ e = Expand(x, s) y = {first} }}",
        f"{head} <{moved}{others}> {{ m = {last} y = Expand(m, s) }}",
    )


def _shape(*dims: int, name: str = "t") -> str:
    return f"int64[{len(dims)}] {name} = {{{', '.join(map(str, dims))}}}"


SAME = _texts("4, 3, b", "Reshape(@, t)", "4, 1, 1", t=_shape(4, 3, -1))
#: the dimension that changes is 1 in the new shape
ONE = SAME[0], SAME[1].replace("{4, 3, -1}", "{1, 3, -1}")
FLAT = _texts("4, c, 1", "Reshape(@, t)", "4, 1, 1", t=_shape(-1, 6, 1), x="float[1, 2, 3] x")
LAST = _texts("c, 1, 5", "Reshape(@, t)", "1, 1, 5", "5", _shape(-1, 1, 5), "float[2, b, 1] x")
NUMBER = {"feeds": [{"x": np.arange(6, dtype=np.float32).reshape((1, 2, 3))}]}
BOTH = _texts(
    "4, 2, 1, 5", "Reshape(@, t)", "4, 1, 1, 5", "4, 1, 5", _shape(0, 2, 1, 5), "float[1, 2, 1] x"
)
NORM = "float[3] w = {1, 2, 3}"
CUT = "int64[1] b = {0}, int64[1] c = {2}, int64[1] k = {-1}"

MODELS = {
    "SwapExpandReshape": {
        "the first axis": (*ONE, FEEDS),
        "the rows are -1": (FLAT[0], FLAT[1].replace("{-1, 6, 1}", "{1, 6, 1}"), NUMBER),
        "the last axis": (
            LAST[0],
            LAST[1].replace("{-1, 1, 5}", "{-1, 1, 1}"),
            {
                "feeds": [
                    {"x": np.arange(2 * n, dtype=np.float32).reshape((2, n, 1))} for n in (3, 1)
                ]
            },
        ),
        "two axes": (
            BOTH[0],
            BOTH[1].replace("{0, 2, 1, 5}", "{0, 2, 1, 1}"),
            {"feeds": [{"x": np.array([[[1], [2]]], np.float32)}]},
        ),
        "what does not change is written": (
            *_texts("4, 1, c", "Reshape(@, t)", "4, 1, 1", "4, 1, 3", _shape(0, 1, -1)),
            FEEDS,
        ),
        "a column": (*_texts("4, c, 1", "Reshape(@, t)", "4, 1, 1", t=_shape(0, -1, 1)), FEEDS),
    },
    "ShapeBasedExpandSwap": {
        "Softmax": (*_texts("4, b, 3", "Softmax<axis = 1>(@)", "4, 1, 1"), FEEDS),
        "CumSum": (*_texts("4, b, 3", "CumSum(@, t)", "4, 1, 1", t="int64 t = {-2}"), FEEDS),
        "LayerNormalization": (
            *_texts("4, b, 3", "LayerNormalization<axis = -1>(@, w)", "4, 1, 1", t=NORM),
            FEEDS,
        ),
        "Slice": (*_texts("4, b, 2", "Slice(@, b, c, k)", "4, 1, 1", "4, 1, 3", CUT), FEEDS),
        "the same shape, not constant": (
            "g (float[1, b, 3] x, float[n] z) => (float[n, b, 3] y) <int64[2] ones = {1, 1}> {"
            " d = Shape(z) s = Concat<axis = 0>(d, ones) e = Expand(x, s)"
            " y = Softmax<axis = -1>(e) }",
            "g (float[1, b, 3] x, float[n] z) => (float[n, b, 3] y) <int64[2] ones = {1, 1}> {"
            " m = Softmax<axis = -1>(x) d = Shape(z) s = Concat<axis = 0>(d, ones)"
            " y = Expand(m, s) }",
            {
                "feeds": [
                    {"x": np.ones((1, 2, 3), np.float32), "z": np.ones(n, np.float32)}
                    for n in (4, 1, 0)
                ]
            },
        ),
        "PRelu": (
            *_texts("4, b, 3", "PRelu(@, t)", "4, 1, 1", t="float[1] t = {0.5}"),
            {"feeds": [{"x": np.array([[[-1, 0, 2]]], np.float32)}]},
        ),
        "an operand twice": (*_texts("4, b, 3", "Mul(@, @)", "4, 1, 1"), FEEDS),
        "several operands": (
            *_texts("4, b, 3", "Max(@, t, @)", "4, 1, 1", t="float t = {0.5}"),
            FEEDS,
        ),
        "with what is computed of it": (
            "g (float[1, b, 3] x) => (float[4, b, 3] y) <int64[3] s = {4, 1, 1}> {"
            " e = Expand(x, s) i = Sigmoid(e) y = Mul(e, i) }",
            "g (float[1, b, 3] x) => (float[4, b, 3] y) <int64[3] s = {4, 1, 1}> {"
            " i = Sigmoid(x) m = Mul(x, i) y = Expand(m, s) }",
            FEEDS,
        ),
        "both branches": (
            "g (float[1, b, 3] x) => (float[4, b, 3] y) <int64[3] s = {4, 1, 1}> {"
            " e = Expand(x, s) m = Cast<to = 9>(e) y = Where(m, e, e) }",
            "g (float[1, b, 3] x) => (float[4, b, 3] y) <int64[3] s = {4, 1, 1}> {"
            " m = Cast<to = 9>(x) w = Where(m, x, x) y = Expand(w, s) }",
            FEEDS,
        ),
    },
}

TWICE = "g (float[1, b, 3] x) => (float[{y}] y) <int64[3] s = {{4, 1, 1}}, {t}> {{ {body} }}"


def _twice(y: str, move: str, t: str, target: str) -> tuple[str, str]:
    """Expand, a move, Expand; the move, then the second Expand."""
    last = f"{t}, int64[{len(target.split(','))}] k = {{{target}}}"
    return (
        TWICE.format(y=y, t=last, body=f"e = Expand(x, s) m = {move.replace('@', 'e')}"
                     " y = Expand(m, k)"),
        TWICE.format(y=y, t=last, body=f"m = {move.replace('@', 'x')} y = Expand(m, k)"),
    )  # fmt: skip


_SQUEEZED = _twice("5, 4, 3", "Squeeze(@, t)", _shape(1), "5, 4, 1")
SQUEEZED = [text.replace("[1, b, 3]", "[1, 1, 3]") for text in _SQUEEZED]
ROW = {"feeds": [{"x": np.array([[[1, 2, 3]]], np.float32)}]}

MODELS["ExpandUnsqueezeExpand"] = {
    "Squeeze": (*SQUEEZED, ROW),
    # without axes it would remove the axis that changes
    "Squeeze of every dimension 1": (SQUEEZED[0].replace("(e, t)", "(e)"), SQUEEZED[1], ROW),
    "Reshape": (*_twice("4, 5, b, 3", "Reshape(@, t)", _shape(0, 1, -1, 3), "4, 5, 1, 1"), FEEDS),
    "Transpose": (
        *_twice("5, b, 4, 3", "Transpose<perm = [1, 0, 2]>(@)", _shape(0), "5, 1, 4, 1"),
        FEEDS,
    ),
    "Unsqueeze": (
        *_twice("5, 4, b, 3", "Unsqueeze(@, t)", _shape(0), "5, 4, 1, 1"),
        FEEDS,
    ),
}

MIXED = "an axis that changes does not stay whole"
REFUSED = {
    "ExpandUnsqueezeExpand": {
        "the last shape is smaller": (
            _twice("b, 4, 3", "Transpose<perm = [1, 0, 2]>(@)", _shape(0), "1, 1, 3")[0],
            "the last shape does not have every dimension",
        ),
        "the axis that changes is cut": (
            _twice("2, 2, b, 3", "Reshape(@, t)", _shape(2, 2, -1, 3), "2, 2, 1, 1")[0],
            "an axis that changes does not stay whole",
        ),
    },
    "ShapeBasedExpandSwap": {
        "one repeated head": (
            _texts("b, 4, 3", "Reshape(@, t)", "", "1, 1, 4, 1", _shape(0, 4, 3),
                   "float[b, 1, 1, 3] x")[0],
            "an attention may read the heads it repeats",
        ),
        "repeated heads": (
            _texts("b, 8, 3", "Reshape(@, t)", "", "1, 1, 4, 1", _shape(0, 8, 3),
                   "float[b, 2, 1, 3] x")[0],
            MIXED,
        ),
        "along the axis that changes": (_texts("4, b, 3", "CumSum(@, t)", "", t="int64 t = {0}")[0], MIXED),
        "along an unknown axis": (
            _texts("4, b, 3", "CumSum(@, t)", "", x=f"{ROWS}, int64 t")[0],
            MIXED,
        ),
        "the axes that change are cut": (
            _texts("2, b, 3", "Slice(@, b, c, k)", "", t=CUT.replace("-1", "0"))[0],
            MIXED,
        ),
        "an unknown shape": (
            _texts("4, b, 3", "Reshape(@, t)", "", x=f"{ROWS}, int64[3] t")[0],
            "a shape is not known|an axis that changes does not stay whole",
        ),
        "a shape that is not constant": (
            "g (float[1, b, 3] x, float[4, b, 3] z) => (float[4, b, 3] y) <int64[3] s = {4, 1, 1}>"
            "{ e = Expand(x, s) t = Shape(z) y = Reshape(e, t) }",
            "the new shape is not constant",
        ),
        "a copy of the dimension that changes, elsewhere": (
            _texts("4, 4, 2", "Reshape(@, t)", "", "1, 4, 1", _shape(4, 0, -1), "float[1, 1, 8] x")[
                0
            ],
            "the new shape is not one that copies other dimensions",
        ),
        "a dimension that may already be 4": (
            _texts("4, 3, b", "Reshape(@, t)", "", t=_shape(4, 3, -1), x="float[a, b, 3] x")[0],
            "a dimension that changes is not known to be 1",
        ),
        "an expanded shape that has to change": (
            "g (float[1, b, 3] x, float[n] z) => (float[n, 1, b, 3] y) <int64[2] ones = {1, 1}, int64[1] t = {1}> {"
            " d = Shape(z) s = Concat<axis = 0>(d, ones) e = Expand(x, s)"
            " y = Unsqueeze(e, t) }",
            "the expanded shape is not constant, and has to change",
        ),
        "several results": (
            "g (float[1, b, 3] x) => (float[4, b, 3] y, float[4, b, 1] m)"
            f" <int64[3] s = {{4, 1, 1}}, {NORM}> {{"
            " e = Expand(x, s) y, m = LayerNormalization<axis = -1>(e, w) }",
            "it gives several results",
        ),
        "a parameter": (
            "g (float[4, b, 3] z, float[1] x) => (float[4, b, 3] y) <int64[1] s = {3}> {"
            " e = Expand(x, s) y = LayerNormalization<axis = -1>(z, e) }",
            "the result of Expand is a parameter",
        ),
        "a slope": (
            "g (float[1] z, float[1] x) => (float[4] y) <int64[1] s = {4}> {"
            " e = Expand(x, s) y = PRelu(z, e) }",
            "the result of Expand is a parameter",
        ),
        "a slope of more dimensions": (
            _texts("4, 3", "PRelu(@, t)", "", "4, 3", "float[1, 1] t = {0.5}", "float[3] x")[0],
            "another operand may have more than one element",
        ),
        "what is computed of it is read elsewhere": (
            "g (float[1, b, 3] x) => (float[4, b, 3] y, float[4, b, 3] i)"
            " <int64[3] s = {4, 1, 1}> { e = Expand(x, s) i = Sigmoid(e) y = Mul(e, i) }",
            "the inner result is used elsewhere",
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_softmax_flattens_before_opset_13(op_type: str) -> None:
    """It mixes the axes after its own one as well."""
    text = _texts("3, b, 4", f"{op_type}<axis = 1>(@)", "", "1, 1, 4", x="float[3, b, 1] x")[0]
    check_no_match(text, "ShapeBasedExpandSwap", MIXED, opset=12)
