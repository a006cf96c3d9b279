"""Transpose and Reshape."""

from __future__ import annotations

from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest

from xbuilder.dims import prove_equal
from xoptim.patterns.layout.transpose_reshape import common_groups
from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_reference,
)

#: what exporters write to exchange the last two axes of four dimensions, sizes being computed
_MATRICES = """agraph (float[{x}] x{more}) => (float[{y}] y)
<int64[1] all = {{-1}}, int64[1] n = {{8}}, int64[1] k = {{-2}}, int64[1] l = {{-1}},
int64[1] low = {{-9223372036854775808}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> {{
    d = Shape(x)
    m = Slice(d, k, l)
    b = Slice(d, low, k)
    s = Concat <axis = 0> ({first})
    t = Concat <axis = 0> ({last})
    r = Reshape <allowzero = {allow}> (x, s)
    u = Transpose <perm = {perm}> (r)
    y = Reshape <allowzero = {allow}> (u, t)
}}"""


def matrices(
    x: str = "b, 2, m, 8",
    y: str = "b, 2, 8, m",
    first: str = "all, m, n",
    last: str = "b, n, m",
    perm: str = "[0, 2, 1]",
    **others: Any,
) -> str:
    """Matrices on one axis, transposed, put back."""
    options = {"allow": 0, "more": "", **others}
    return _MATRICES.format(x=x, y=y, first=first, last=last, perm=perm, **options)


def exchanged(x: str = "b, 2, m, 8", y: str = "b, 2, 8, m", perm: str = "[0, 1, 3, 2]") -> str:
    """The last two axes are exchanged."""
    return f"agraph (float[{x}] x) => (float[{y}] y) {{ y = Transpose <perm = {perm}> (x) }}"


def around(
    first: str,
    perm: str,
    last: str,
    x: str = "n, 6, 2, 4",
    y: str = "m, 6",
    f: str = "u = Identity(t)",
    others: str = "",
) -> str:
    """Reshape, Transpose, maybe an element-wise operator, Reshape."""
    sizes = [len(v.split(",")) for v in (first, last)]
    applied = "" if f == "u = Identity(t)" else f
    return f"""agraph (float[{x}] x) => (float[{y}] y{others})
    <int64[{sizes[0]}] s = {{{first}}}, int64[{sizes[1]}] v = {{{last}}}, float two = {{2}}> {{
        r = Reshape(x, s)
        t = Transpose <perm = [{perm}]> (r)
        {applied}
        y = Reshape({"u" if applied else "t"}, v)
    }}"""


def one(*nodes: str, shape: str, x: str = "n, 6, 2, 4", y: str = "m, 6") -> str:
    """The result: one Reshape to a shape."""
    body = "\n".join(nodes)
    return f"""agraph (float[{x}] x) => (float[{y}] y)
    <int64[{len(shape.split(","))}] s = {{{shape}}}> {{
        {body}
    }}"""


#: rows of images of 2 x 4
ROWS = {"feeds": [{"x": np.arange(n * 48, dtype=np.float32).reshape((-1, 6))} for n in (3, 1, 0)]}

#: pattern -> case -> (before, after)
MODELS = {
    "ReshapeAroundTranspose": {
        "the first one merges what moves together": (
            around("0, 6, 8", "0, 2, 1", "-1, 6"),
            one("t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Reshape(t, s)", shape="-1, 6"),
        ),
        "Relu": (
            around("0, 6, 8", "0, 2, 1", "-1, 6", f="u = Relu(t)"),
            one(
                "t = Transpose <perm = [0, 2, 3, 1]> (x)",
                "u = Relu(t)",
                "y = Reshape(u, s)",
                shape="-1, 6",
            ),
        ),
        "the last one splits": (
            around("-1, 8, 6", "0, 2, 1", "0, 6, 2, 4", "m, 6", "n, 6, 2, 4"),
            one(
                "r = Reshape(x, s)",
                "y = Transpose <perm = [0, 3, 1, 2]> (r)",
                shape="-1, 2, 4, 6",
                x="m, 6",
                y="n, 6, 2, 4",
            ),
            ROWS,
        ),
        "the last one splits, Neg": (
            around("-1, 8, 6", "0, 2, 1", "0, 6, 2, 4", "m, 6", "n, 6, 2, 4", "u = Neg(t)"),
            one(
                "r = Reshape(x, s)",
                "t = Transpose <perm = [0, 3, 1, 2]> (r)",
                "y = Neg(t)",
                shape="-1, 2, 4, 6",
                x="m, 6",
                y="n, 6, 2, 4",
            ),
            ROWS,
        ),
        "the first one splits": (
            around("0, 2, 3, 8", "0, 2, 1, 3", "-1, 48", "3, 6, 8", "3, 48")
            .replace("0, 2, 3, 8", "0, 6, 2, 4")
            .replace("0, 2, 1, 3", "0, 2, 3, 1"),
            one(
                "t = Transpose <perm = [0, 2, 1]> (x)",
                "y = Reshape(t, s)",
                shape="-1, 48",
                x="3, 6, 8",
                y="3, 48",
            ),
        ),
    },
    "TransposeReshapeOnes": {
        "the channels of a convolution go last": (
            """agraph (float[a,3,1,b] x) => (float[a,b,3,1] y) <int64[4] s = {0, -1, 3, 1}> {
                t = Transpose <perm = [0, 2, 3, 1]> (x)
                y = Reshape(t, s)
            }""",
            """agraph (float[a,3,1,b] x) => (float[a,b,3,1] y) {
                y = Transpose <perm = [0, 3, 1, 2]> (x)
            }""",
        ),
        "the Reshape first": (
            """agraph (float[a,1,3] x) => (float[3,a,1] y) <int64[3] s = {0, 3, 1}> {
                r = Reshape(x, s)
                y = Transpose <perm = [1, 0, 2]> (r)
            }""",
            """agraph (float[a,1,3] x) => (float[3,a,1] y) {
                y = Transpose <perm = [2, 0, 1]> (x)
            }""",
        ),
        "nothing is left": (
            """agraph (float[1,a,3] x) => (float[1,a,3] y) <int64[3] s = {1, -1, 3}> {
                t = Transpose <perm = [1, 0, 2]> (x)
                y = Reshape(t, s)
            }""",
            "agraph (float[1,a,3] x) => (float[1,a,3] y) { y = Identity(x) }",
        ),
    },
    "ReshapeTransposeReshape": {
        "sizes that are not known": (matrices(), exchanged()),
        "an empty batch": (matrices(), exchanged(), {"sizes": [{"b": 0, "m": 3}]}),
        "five dimensions": (
            matrices("b, 2, 3, m, 8", "b, 2, 3, 8, m"),
            exchanged("b, 2, 3, m, 8", "b, 2, 3, 8, m", "[0, 1, 2, 4, 3]"),
        ),
        "-1 in the last one": (matrices(last="b, n, all"), exchanged()),
        "null dimensions are allowed": (matrices(allow=1), exchanged()),
        "no null dimension is copied": (
            matrices(first="p, m, n", last="b, n, m", allow=1).replace(
                "m = Slice", "h = Gather(d, zero) p = Mul(h, two) m = Slice"
            ),
            exchanged(),
            {"sizes": [{"b": 3, "m": 0}, {"b": 0, "m": 3}, {"b": 0, "m": 0}]},
        ),
        "known sizes": (
            matrices("3, 2, 5, 8", "3, 2, 8, 5"),
            exchanged("3, 2, 5, 8", "3, 2, 8, 5"),
        ),
    },
    "TransposeReshapeTranspose": {
        "the last one goes first": (
            """agraph (float[2,3,4,5] x) => (float[4,10,3] y) <int64[3] s = {10, 3, 4}> {
                t = Transpose <perm = [0, 3, 1, 2]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [2, 0, 1]> (r)
            }""",
            """agraph (float[2,3,4,5] x) => (float[4,10,3] y) <int64[3] s = {4, 10, 3}> {
                t = Transpose <perm = [2, 0, 3, 1]> (x)
                y = Reshape(t, s)
            }""",
        ),
        "the first one goes last": (
            """agraph (float[6,4,5] x) => (float[2,4,3,5] y) <int64[4] s = {5, 4, 2, 3}> {
                t = Transpose <perm = [2, 1, 0]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [2, 1, 3, 0]> (r)
            }""",
            """agraph (float[6,4,5] x) => (float[2,4,3,5] y) <int64[4] s = {2, 3, 4, 5}> {
                r = Reshape(x, s)
                y = Transpose <perm = [0, 2, 1, 3]> (r)
            }""",
        ),
        "both cancel": (
            """agraph (float[2,3,4] x) => (float[2,3,2,2] y) <int64[4] s = {2, -1, 2, 3}> {
                t = Transpose <perm = [0, 2, 1]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [0, 3, 1, 2]> (r)
            }""",
            """agraph (float[2,3,4] x) => (float[2,3,2,2] y) <int64[4] s = {2, 3, 2, 2}> {
                y = Reshape(x, s)
            }""",
        ),
        "no perm": (
            """agraph (float[3,4] x) => (float[3,2,2] y) <int64[3] s = {2, 2, 3}> {
                t = Transpose(x)
                r = Reshape(t, s)
                y = Transpose <perm = [2, 0, 1]> (r)
            }""",
            """agraph (float[3,4] x) => (float[3,2,2] y) <int64[3] s = {3, 2, 2}> {
                y = Reshape(x, s)
            }""",
        ),
        "a recurrent layer in two directions, batch first": (
            """agraph (float[seq,2,batch,4] x) => (float[batch,seq,8] y) <int64[3] s = {0, 0, -1}> {
                t = Transpose <perm = [0, 2, 1, 3]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [1, 0, 2]> (r)
            }""",
            """agraph (float[seq,2,batch,4] x) => (float[batch,seq,8] y) <int64[3] s = {0, 0, 8}> {
                t = Transpose <perm = [2, 0, 1, 3]> (x)
                y = Reshape(t, s)
            }""",
        ),
        "both cancel, one dimension has a name": (
            """agraph (float[a,3,4] x) => (float[a,12] y) <int64[2] s = {12, -1}> {
                t = Transpose <perm = [1, 2, 0]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [1, 0]> (r)
            }""",
            """agraph (float[a,3,4] x) => (float[a,12] y) <int64[2] s = {0, 12}> {
                y = Reshape(x, s)
            }""",
        ),
        "a group ends with a name": (
            """agraph (float[a,2,n,4] x) => (float[a,M,2] y) <int64[3] s = {0, 0, -1}> {
                t = Transpose <perm = [0, 1, 3, 2]> (x)
                r = Reshape(t, s)
                y = Transpose <perm = [0, 2, 1]> (r)
            }""",
            """agraph (float[a,2,n,4] x) => (float[a,M,2] y) <int64[3] s = {0, -1, 2}> {
                t = Transpose <perm = [0, 3, 2, 1]> (x)
                y = Reshape(t, s)
            }""",
        ),
    },
}

_TEXT = """agraph (float[{x}] x) => (float[] y{o}) <int64[{n}] s = {{{s}}}> {{
    t = Transpose <perm = [{p}]> (x)
    r = Reshape(t, s)
    y = Transpose <perm = [{q}]> (r)
}}"""

#: pattern -> [(model, reason)]
REFUSED = {
    "ReshapeAroundTranspose": [
        (
            around("0, 6, 2, 4", "1, 0, 2, 3", "-1, 8", "3, 6, 8", "m, 8"),
            "the first axis moves",
        ),
        (around("0, 4, 12", "0, 2, 1", "-1, 16", y="m, 16"), "the Reshape mixes dimensions"),
        (
            around("0, 6, -1", "0, 2, 1", "-1, 6", "n, 6, a, 4"),
            "a dimension is not known",
        ),
        (
            around("0, 6, 8", "0, 2, 1", "-1, 6", f="u = Add(t, two)"),
            "Reshape",
        ),
        (
            around("0, 6, 8", "0, 2, 1", "-1, 6", f="u = Relu(t)", others=", float[n, 8, 6] t"),
            "is not the only use|an inner result is used elsewhere",
        ),
        (
            around("0, 6, 8", "0, 2, 1", "-1, 6", others=", float[n, 6, 8] r"),
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[1, 3] x) => (float[3] y, float[a, b] z)
            <int64[2] s = {3, 1}, float[3] f = {1, 2, 3}> {
                r = Reshape(x, s)
                t = Transpose <perm = [1, 0]> (r)
                c = Cast <to = 7> (t)
                y = Squeeze(t)
                z = Reshape(x, c)
            }""",
            "is not the only use|Reshape",
        ),
    ],
    "TransposeReshapeOnes": [
        (
            "agraph (float[a,b] x) => (float[b,a] y) { y = Transpose(x) }",
            "no Reshape before",
        ),
        (
            """agraph (float[a,b] x) => (float[b,a,1] y) <int64[3] s = {0, 0, 1}> {
                t = Transpose(x)
                y = Reshape(t, s)
            }""",
            "the rank changes",
        ),
        (
            """agraph (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> {
                t = Transpose(x)
                y = Reshape(t, s)
            }""",
            "the Reshape moves more than dimensions 1",
        ),
        (
            """agraph (float[a,1] x, int64[2] s) => (float[c,d] y) {
                t = Transpose(x)
                y = Reshape(t, s)
            }""",
            "the Reshape moves more than dimensions 1",
        ),
        (
            """agraph (float[] x) => (float[c,d] y) <int64[2] s = {2, -1}> {
                t = Transpose(x)
                y = Reshape(t, s)
            }""",
            "the shape is not known",
        ),
        (
            """agraph (float[1,a,3] x) => (float[1,a,3] y, float[a,1,3] t)
            <int64[3] s = {1, -1, 3}> {
                t = Transpose <perm = [1, 0, 2]> (x)
                y = Reshape(t, s)
            }""",
            "an inner result is used elsewhere",
        ),
    ],
    "ReshapeTransposeReshape": [
        (matrices("m, 8", "8, m", "all, m, n", "n, m"), "nothing to put on one axis"),
        (matrices(perm="[1, 0, 2]", y="c, d, e, f"), "the matrices are not transposed"),
        (matrices("b, h, m, 8", "b, h, 8, m"), "a dimension may be null"),
        (
            matrices("b, 2, m, c", "b, 2, c, m", "all, m, k2", "b, k2, m").replace(
                "m = Slice", "e = Shape <start = 3>(x) k2 = Identity(e) m = Slice"
            ),
            "a dimension may be null",
        ),
        (matrices("b, 2, 8, 8", "c, d, e, f", "all, two, n"), "the first Reshape does something"),
        (
            matrices("b, 2, 8, 4", "c, d, e, f", "all, n, k4")
            .replace("int64[1] two", "int64[1] k4 = {4}, int64[1] two")
            .replace("b, n, m", "b, n, k4"),
            "the last Reshape does something else",
        ),
        (matrices(last="all, n, m", y="c, 8, m"), "the last Reshape does something else"),
        (
            matrices(last="i", more=", int64[4] i", y="c, d, e, f"),
            "the last Reshape does something",
        ),
        (
            matrices("b, 2, m, 8", first="i", more=", int64[3] i"),
            "the first Reshape does something",
        ),
        (matrices().replace("y)\n<", "y, float[e, 8, f] u)\n<"), "an inner result is used"),
    ],
    "TransposeReshapeTranspose": [
        (
            """agraph (float[2,3] x) => (float[2,3] y) <int64[2] s = {3, 2}> {
                r = Reshape(x, s)
                y = Transpose(r)
            }""",
            "no Transpose, Reshape before",
        ),
        (
            _TEXT.format(x="2,3,4", n=2, s="12,2", p="1,2,0", q="1,0", o=", float[12,2] r"),
            "an inner result is used elsewhere",
        ),
        (
            _TEXT.format(x="a,3,4", n=2, s="-1,2", p="1,2,0", q="1,0", o=""),
            "the Reshape mixes dimensions",
        ),
        # two dimensions have a name and move
        (
            _TEXT.format(x="a,b,4", n=2, s="0,-1", p="1,2,0", q="1,0", o=""),
            "the new shape is no constant",
        ),
        (
            """agraph (float[4,2,a] x) => (float[b,c] y) <int64[1] all = {-1}> {
                t = Transpose <perm = [1, 0, 2]> (x)
                d = Shape <start: int = 2> (x)
                s = Concat <axis: int = 0> (d, all)
                r = Reshape(t, s)
                y = Transpose(r)
            }""",
            "a shape is not known for every size",
        ),
        (
            _TEXT.format(x="4,3", n=2, s="6,2", p="1,0", q="1,0", o=""),
            "the Reshape mixes dimensions",
        ),
        # null dimensions do not tell what the Reshape does
        (
            _TEXT.format(x="2,0,4", n=2, s="0,2", p="1,2,0", q="1,0", o=""),
            "the Reshape mixes dimensions",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


def test_a_reshape_before_does_not_hide_the_others() -> None:
    """ReshapeReshape would merge the first two Reshape: their common shape is what is proven."""
    before = """agraph (float[a,1,4,5,8] x) => (float[a,4,8,5] y)
    <int64[4] p = {-1, 4, 5, 8}, int64[3] s = {-1, 5, 8}, int64[4] v = {-1, 4, 8, 5}> {
        q = Reshape(x, p)
        r = Reshape(q, s)
        t = Transpose <perm = [0, 2, 1]> (r)
        y = Reshape(t, v)
    }"""
    after = """agraph (float[a,1,4,5,8] x) => (float[a,4,8,5] y) <int64[4] p = {-1, 4, 5, 8}> {
        q = Reshape(x, p)
        y = Transpose <perm = [0, 1, 3, 2]> (q)
    }"""
    check_pattern(before, after, "ReshapeReshape,ReshapeTransposeReshape")


def test_common_groups_hold_the_same_elements() -> None:
    shapes = [s for n in range(1, 4) for s in product((1, 2, 3, 6), repeat=n) if prod(s) == 6]
    for before, after in product(shapes, shapes):
        groups = common_groups(before, after)
        assert [a for left, _ in groups for a in left] == list(range(len(before)))
        assert [a for _, right in groups for a in right] == list(range(len(after)))
        for left, right in groups:
            assert prod(before[i] for i in left) == prod(after[i] for i in right)
    assert common_groups((2, 0), (0, 2)) is None
    assert common_groups(("a", 2, 3), ("a", 6), prove_equal) == [((0,), (0,)), ((1, 2), (1,))]
    assert common_groups(("a", "b"), ("b", "a"), prove_equal) is None, "depends on the sizes"
    assert common_groups(("a", "b"), ("a*b", 1), prove_equal) == [((0, 1), (0, 1))]
    assert common_groups(("a",), ("a", "b"), prove_equal) is None
    assert common_groups((), (1,)) is None


@pytest.mark.parametrize(
    ("middle", "after"), [((2, 4, 3), (2, 2, 2, 3)), ((2, 2, 3), (4, 3)), ((1, 2, 3), (2, 1, 3))]
)
def test_any_permutations(middle: tuple[int, ...], after: tuple[int, ...]) -> None:
    applied = 0
    for p, q in product(permutations(range(len(middle))), permutations(range(len(after)))):
        x = [0] * len(p)
        for i, axis in enumerate(p):
            x[axis] = middle[i]
        texts = [",".join(map(str, v)) for v in (x, after, p, q)]
        model = model_from_text(
            _TEXT.format(x=texts[0], n=len(after), s=texts[1], p=texts[2], q=texts[3], o="")
        )
        result, _, _ = optimize_with(model, "TransposeReshapeTranspose")
        applied += len(result.graph.node) < 3
        data = {"x": np.arange(prod(x), dtype=np.float32).reshape(x)}
        np.testing.assert_array_equal(run_reference(model, data)[0], run_reference(result, data)[0])
    assert applied > 10
