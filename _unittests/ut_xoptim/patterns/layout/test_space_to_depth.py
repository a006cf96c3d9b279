"""Strided pieces of an image which become channels, and the order of these channels."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx.numpy_helper as onh
import pytest

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

H = "g (float[a, 3, h, w] x) => (float[a, 12, p, q] y)"
E = 9223372036854775807
#: bounds, axes and steps of one Slice over two axes
TWO = f"int64[2] e = {{{E}, {E}}}, int64[2] k = {{2, 3}}, int64[2] t = {{2, 2}}"
STARTS = "int64[2] s0 = {0, 0}, int64[2] s1 = {0, 1}, int64[2] s2 = {1, 0}, int64[2] s3 = {1, 1}"
#: those of one Slice for each axis
ONE = f"""int64[1] o = {{0}}, int64[1] i = {{1}}, int64[1] e = {{{E}}},
    int64[1] r = {{2}}, int64[1] c = {{3}}, int64[1] t = {{2}}"""
SLICES = "".join(f"p{i} = Slice(x, s{i}, e, k, t) " for i in range(4))
#: rows, then columns, each result of the first ones is shared
ROWS = "".join(
    f"u{i} = Slice(x, {i}, e, r, t) p{i}o = Slice(u{i}, o, e, c, t) p{i}i = Slice(u{i}, i, e, c, t) "
    for i in "oi"
)
COLUMNS = "".join(
    f"u{i}{j} = Slice(x, {j}, e, c, t) p{i}{j} = Slice(u{i}{j}, {i}, e, r, t) "
    for i, j in product("oi", "oi")
)
AFTER = f"{H} {{ y = SpaceToDepth<blocksize = 2>(x) }}"
#: YOLO: the pieces go down, then right
ORDER = "int64[12] n = {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}"
MOVED = f"{H} <{ORDER}> {{ d = SpaceToDepth<blocksize = 2>(x) y = Gather<axis = 1>(d, n) }}"
FEEDS = {
    "feeds": [
        {"x": np.arange(3 * a * h * w, dtype=np.float32).reshape((a, 3, h, w))}
        for a, h, w in ((2, 4, 6), (1, 2, 2), (1, 8, 2))
    ]
}


def _joined(slices: str, names: str, constants: str = f"{TWO}, {STARTS}", head: str = H) -> str:
    return f"{head} <{constants}> {{ {slices} y = Concat<axis = 1>({names}) }}"


def _blocks(block: int) -> str:
    """Pieces of blocks of some rows and columns."""
    places = [*product(range(block), repeat=2)]
    constants = [f"int64[2] s{i}{j} = {{{i}, {j}}}" for i, j in places]
    constants.append(TWO.replace("t = {2, 2}", f"t = {{{block}, {block}}}"))
    slices = " ".join(f"p{i}{j} = Slice(x, s{i}{j}, e, k, t)" for i, j in places)
    names = ", ".join(f"p{i}{j}" for i, j in places)
    head = H.replace("12", str(3 * block * block))
    return _joined(slices, names, ", ".join(constants), head)


W = "float[1, 4, 1, 1] w = {1, 2, 3, 4}"
CONV = "g (float[a, 4, b, c] x) => (float[a, 1, b, c] y)"
LAST = """g (float[a, 4, 6, 3] x) => (float[a, 2, 3, 12] y)
<int64[6] s = {{0, 2, 2, 3, 2, 3}}, int64[4] t = {{0, 2, 3, 12}}> {{
    u = Reshape(x, s) v = Transpose<perm = [{perm}]>(u) y = Reshape(v, t)
}}"""


def _last(names: str) -> str:
    """The same pieces when channels come last."""
    constants = f"{TWO.replace('k = {2, 3}', 'k = {1, 2}')}, {STARTS}"
    head = "g (float[a, 4, 6, 3] x) => (float[a, 2, 3, 12] y)"
    return _joined(SLICES, names, constants, head).replace("axis = 1", "axis = 3")


#: the same sums in any order
WHOLE = {
    "feeds": [{"x": np.arange(8 * n, dtype=np.float32).reshape((n, 4, 2, 1))} for n in (0, 1, 3)]
}

MODELS = {
    "SpaceToDepth": {
        "one Slice over two axes": (_joined(SLICES, "p0, p1, p2, p3"), AFTER, FEEDS),
        "columns first in each Slice": (
            _joined(
                SLICES.replace("s1", "_").replace("s2", "s1").replace("_", "s2"),
                "p0, p1, p2, p3",
                f"{TWO.replace('k = {2, 3}', 'k = {-1, 2}')}, {STARTS}",
            ),
            AFTER,
            FEEDS,
        ),
        "rows, then columns": (_joined(ROWS, "poo, poi, pio, pii", ONE), AFTER, FEEDS),
        "columns, then rows": (_joined(COLUMNS, "poo, poi, pio, pii", ONE), AFTER, FEEDS),
        "known dimensions": (
            _joined(SLICES, "p0, p1, p2, p3", head=H.replace("h, w", "4, 6")).replace(
                f"{{{E}, {E}}}", "{4, 7}"
            ),
            AFTER.replace("h, w", "4, 6"),
        ),
        "down first": (_joined(SLICES, "p0, p2, p1, p3"), MOVED, FEEDS),
        "blocks of three rows": (
            _blocks(3),
            AFTER.replace("12", "27").replace("= 2", "= 3"),
            {"feeds": [{"x": np.arange(108, dtype=np.float32).reshape((1, 3, 6, 6))}]},
        ),
        "nothing in the image": (
            _joined(SLICES, "p0, p2, p1, p3"),
            MOVED,
            {"feeds": [{"x": np.zeros(s, np.float32)} for s in ((0, 3, 2, 2), (1, 3, 0, 4))]},
        ),
    },
    "BlocksToChannels": {
        "down, then right": (_last("p0, p2, p1, p3"), LAST.format(perm="0, 1, 3, 4, 2, 5")),
        "right, then down": (_last("p0, p1, p2, p3"), LAST.format(perm="0, 1, 3, 2, 4, 5")),
    },
    "GatherConv": {
        "each channel once": (
            f"{CONV} <{W}, int64[4] n = {{0, -2, 1, 3}}> {{ d = Gather<axis = 1>(x, n)"
            " y = Conv(d, w) }",
            f"{CONV} <{W.replace('1, 2, 3, 4', '1, 3, 2, 4')}> {{ y = Conv(x, w) }}",
            WHOLE,
        ),
        "a bias, attributes": (
            f"{CONV} <{W}, float[1] b = {{0.5}}, int64[4] n = {{1, 2, 3, 0}}>"
            "{ d = Gather<axis = -3>(x, n) y = Conv<strides = [1, 1]>(d, w, b) }",
            f"{CONV} <{W.replace('1, 2, 3, 4', '4, 1, 2, 3')}, float[1] b = {{0.5}}>"
            "{ y = Conv<strides = [1, 1]>(x, w, b) }",
            WHOLE,
        ),
    },
}

_GATHERED = (
    f"{CONV} <{W}, int64[4] n = {{1, 0, 2, 3}}> {{ d = Gather<axis = 1>(x, n) y = Conv(d, w) }}"
)

REFUSED = {
    "SpaceToDepth": {
        "three pieces": (
            _joined(SLICES, "p0, p1, p2", head=H.replace("12", "9")),
            "the pieces are not those of blocks",
        ),
        "along the rows": (
            _joined(SLICES, "p0, p1, p2, p3", head=H.replace("12, p", "3, p")).replace(
                "axis = 1", "axis = 2"
            ),
            "the pieces are not joined along the channels",
        ),
        "twice the same piece": (_joined(SLICES, "p0, p1, p1, p3"), "a piece is missing"),
        "two images": (
            _joined(
                SLICES.replace("Slice(x, s3", "Slice(z, s3"),
                "p0, p1, p2, p3",
                head=H.replace("] x", "] x, float[a, 3, h, w] z"),
            ),
            "no Slice before",
        ),
        "something else than a Slice": (
            _joined(SLICES + "m = Neg(p3)", "p0, p1, p2, m"),
            "no Slice before",
        ),
        "another step": (
            _joined(SLICES, "p0, p1, p2, p3").replace("{2, 2}", "{2, 3}"),
            "the step is not the length of a block",
        ),
        "the first block is skipped": (
            _joined(SLICES, "p0, p1, p2, p3").replace("{1, 0}", "{3, 0}"),
            "the step is not the length of a block",
        ),
        "the last row is left": (
            _joined(SLICES, "p0, p1, p2, p3").replace(f"{{{E}, {E}}}", f"{{5, {E}}}"),
            "a piece may end before the image",
        ),
        "bounds that are inputs": (
            _joined(
                SLICES,
                "p0, p1, p2, p3",
                f"{TWO}, {STARTS}".replace(", int64[2] s3 = {1, 1}", ""),
                H.replace("] x", "] x, int64[2] s3"),
            ),
            "the bounds are not constant",
        ),
        "axes that are inputs": (
            _joined(SLICES, "p0, p1, p2, p3", head=H.replace("] x", "] x, int64[2] k")).replace(
                ", int64[2] k = {2, 3}", ""
            ),
            "the axes of a Slice are not known",
        ),
        "one axis": (
            _joined("u = Slice(x, o, e, r, t) v = Slice(x, i, e, r, t)", "u, u, v, v", ONE),
            "the pieces are not cut along rows and columns",
        ),
        "twice along the same axis": (
            _joined(ROWS.replace("e, c, t", "e, r, t"), "poo, poi, pio, pii", ONE),
            "an axis is cut twice",
        ),
        "a piece is used elsewhere": (
            _joined(SLICES, "p0, p1, p2, p3", head=H.replace("] y", "] y, float[a, 3, p, q] p3")),
            "an inner result is used elsewhere",
        ),
        "no kernel for integers of 64 bits": (
            _joined(SLICES, "p0, p1, p2, p3", head=H.replace("float", "int64")),
            "the operator has no kernel for this type",
        ),
        "an unknown number of channels in another order": (
            _joined(
                SLICES, "p0, p2, p1, p3", head=H.replace("a, 3, h", "a, m, h").replace("12", "n")
            ),
            "the number of channels is not known",
        ),
        "an image in three dimensions": (
            _joined(
                SLICES,
                "p0, p1, p2, p3",
                head="g (float[a, 3, h, w, z] x) => (float[a, 12, p, q, z] y)",
            ),
            "there are not rows and columns of channels",
        ),
    },
    "BlocksToChannels": {
        "another order": (_last("p0, p3, p1, p2"), "the pieces neither go right nor down"),
        "unknown rows": (
            _last("p0, p1, p2, p3")
            .replace("a, 4, 6, 3", "a, b, 6, 3")
            .replace("a, 2, 3", "a, d, 3"),
            "a dimension is not known",
        ),
        "no row": (
            _last("p0, p1, p2, p3")
            .replace("a, 4, 6, 3", "a, 0, 6, 3")
            .replace("a, 2, 3", "a, 0, 3"),
            "a dimension is null",
        ),
        "along the columns": (
            _last("p0, p1, p2, p3")
            .replace("axis = 3", "axis = 1")
            .replace("a, 2, 3, 12", "a, 8, 3, 3"),
            "the pieces are not joined along the channels",
        ),
    },
    "GatherConv": {
        "no Gather": (f"{CONV} <{W}> {{ y = Conv(x, w) }}", "no Gather before"),
        "rows": (_GATHERED.replace("axis = 1", "axis = 2"), "what is gathered is not channels"),
        "a channel is missing": (
            _GATHERED.replace("{1, 0, 2, 3}", "{1, 0, 2, 2}"),
            "each channel is not gathered once",
        ),
        "fewer channels": (
            _GATHERED.replace("a, 4, b", "a, 5, b"),
            "each channel is not gathered once",
        ),
        "an unknown number of channels": (
            _GATHERED.replace("a, 4, b", "a, m, b"),
            "the number of channels is not known",
        ),
        "several groups": (
            _GATHERED.replace("1, 4, 1, 1", "4, 1, 1, 1")
            .replace("a, 1, b", "a, 4, b")
            .replace("Conv(", "Conv<group = 4>("),
            "there are several groups",
        ),
        "indices that are inputs": (
            _GATHERED.replace(", int64[4] n = {1, 0, 2, 3}", "").replace(
                "c] x", "c] x, int64[4] n"
            ),
            "the indices are not constant",
        ),
        "used elsewhere": (
            _GATHERED.replace("c] y)", "c] y, float[a, 4, b, c] d)"),
            "an inner result is used elsewhere",
        ),
        "a weight that is an input": (
            _GATHERED.replace(f"{W}, ", "").replace("c] x", "c] x, float[1, 4, 1, 1] w"),
            "the weight is not constant",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("kind", ["double", "uint8"])
def test_other_types(kind: str) -> None:
    before, after = (
        text.replace("float", kind) for text in (_joined(SLICES, "p0, p1, p2, p3"), AFTER)
    )
    check_pattern(
        before,
        after,
        "SpaceToDepth",
        reference=False,
        feeds=[{"x": np.arange(24).reshape((1, 3, 2, 4)).astype(kind)}],
    )


def test_a_large_weight_stays() -> None:
    model = model_from_text(_GATHERED)
    weight = np.zeros((1 << 17, 4, 1, 1), dtype=np.float32)
    model.graph.initializer[0].CopyFrom(onh.from_array(weight, "w"))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = len(weight)
    check_no_match(model, "GatherConv", "the weight is large")
