"""Biases of attention that a gate of each query scales."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import refusal_tests

HEADS = "t = Transpose<perm = [0, 2, 1, 3]>(Q) "
GATES = (
    "m = MatMul(t, W) a = Add(m, C) r = Reshape(a, halves) s = ReduceSum<keepdims = 0>(r, last) "
    "h = Sigmoid(s) u, v = Split<axis = 3>(h, ones) "
)
ECO = "e = Mul(v, E) f = Sub(e, one) "
ALONE = "f = Sub(v, one) "
GATE = "i = Mul(u, f) j = Add(i, two) "
PLAIN = "y = Mul(j, R)"
#: as WavLM: the heads of the batch come first, the bias is repeated
MERGED = (
    "z = Shape<start = 0, end = 1>(Q) n = Shape<start = 1, end = 2>(Q) b = Mul(z, heads) "
    "w = Concat<axis = 0>(z, axis1, axis1, axis1) k = Tile(R, w) x = Concat<axis = 0>(b, n, n) "
    "l = Reshape(k, x) g = Concat<axis = 0>(b, rest) j1 = Reshape(j, g) y = Mul(j1, l)"
)
FULL = HEADS + GATES + ECO + GATE


def model(
    body: str,
    d: int = 6,
    y: str = "b, 2, n, n",
    r: str = "1, 2, n, n",
    e: str = "1, 2, 1, 1",
    q: str = "b, n, 2, 4",
    kind: str = "float",
    c: str = "",
    out: str = "",
    more: str = "",
) -> str:
    """Queries of two heads of four elements, weights, a bias for each pair of positions."""
    return f"""g ({kind}[{q}] Q, {kind}[4, {d}] W, {kind}[{c or d}] C, {kind}[{e}] E, {kind}[{r}] R)
    => ({kind}[{y}] y{out}) <int64[5] halves = {{0, 2, 0, 2, {d // 2}}}, int64[1] last = {{-1}},
        int64[2] ones = {{1, 1}}, {kind} one = {{1}}, {kind} two = {{2}}, int64[1] heads = {{2}},
        int64[1] axis1 = {{1}}, int64[2] rest = {{-1, 1}}{more}> {{ {body} }}"""


def written(eco: str = "E", d: int = 6, merged: bool = False, kind: str = "float") -> str:
    """The operator."""
    result = "y1" if merged else "y"
    shape = "z = Shape<start = 0, end = 1>(Q) n = Shape<start = 1, end = 2>(Q) b = Mul(z, heads) "
    shape += "x = Concat<axis = 0>(b, n, n) "
    body = (shape if merged else "") + (
        f"q = Reshape(Q, flat) {result} = com.microsoft.GatedRelativePositionBias<num_heads = 2>"
        f"(q, none, R, W, C, {eco}) "
    )
    body += "y = Reshape<allowzero = 1>(y1, x)" if merged else ""
    more = f", int64[3] flat = {{0, 0, 8}}, {kind}[8] none = {{0, 0, 0, 0, 0, 0, 0, 0}}"
    more += f", {kind}[1, 2, 1, 1] all = {{1, 1}}"
    return model(body, d, "m, n, n" if merged else "b, 2, n, n", kind=kind, more=more)


#: what the documentation draws: name -> (before, after)
MODELS = {"GatedRelativePositionBias": (model(FULL + PLAIN), written())}
SIZES = ({"b": 2, "n": 3}, {"b": 1, "n": 1}, {"b": 3, "n": 8})
NAME = "GatedRelativePositionBias"


@pytest.mark.parametrize("d", [2, 6, 32])
def test_four_dimensions(d: int) -> None:
    check(model(FULL + PLAIN, d), written(d=d), NAME, SIZES)


def test_merged() -> None:
    check(model(FULL + MERGED, y="m, n, n"), written(merged=True), NAME, SIZES)


def test_without_the_numbers_of_the_heads() -> None:
    """They are all ones before the model learns, and are not there any more."""
    check(model(HEADS + GATES + ALONE + GATE + PLAIN), written("all"), NAME, SIZES)


def test_expand() -> None:
    body = FULL + "z = Shape(m1) k = Expand(R, z) y = Mul(j, k)"
    body = body.replace("h = Sigmoid(s)", "h = Sigmoid(s) m1 = MatMul(t, tt)").replace(
        HEADS, HEADS + "tt = Transpose<perm = [0, 1, 3, 2]>(t) "
    )
    check(model(body), written(), NAME, SIZES)


def test_float16() -> None:
    bits = "float16 one = {15360}, float16 two = {16384}"
    before, after = (
        text.replace("float16 one = {1}, float16 two = {2}", bits)
        for text in (model(FULL + PLAIN, kind="float16"), written(kind="float16"))
    )
    check(before, after, NAME, ())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 16), st.booleans(), st.integers(1, 3), st.integers(1, 6))
def test_any_size(half: int, merged: bool, batch: int, steps: int) -> None:
    d = 2 * half
    before = model(FULL + (MERGED if merged else PLAIN), d, "m, n, n" if merged else "b, 2, n, n")
    check(before, written(d=d, merged=merged), NAME, [{"b": batch, "n": steps}])


ALL = FULL + PLAIN
REFUSED = {
    "on CPU": (model(ALL), "no GatedRelativePositionBias for this type", {"processor": "CPU"}),
    "double": (model(ALL, kind="double"), "no GatedRelativePositionBias for this type"),
    "too many columns": (model(ALL, 34), "does not add so many"),
    "a maximum": (model(ALL.replace("ReduceSum", "ReduceMax")), "no ReduceSum before"),
    "another axis": (
        model(ALL.replace("{0, 2, 0, 2, 3}", "{0, 2, 0, 3, 2}")).replace("{0, 2, 0, 2, 3}", "{0, 2, 0, 3, 2}")
        .replace("int64[2] ones = {1, 1}", "int64[2] ones = {1, 2}"),
        "the gates are not two numbers",
    ),
    "no bias": (model(ALL.replace("a = Add(m, C)", "a = Mul(m, C)")), "no Add before"),
    "no product": (model(ALL.replace("MatMul(t, W)", "Neg(P)").replace("a = Add", "a = Add")).replace(
        "] R)", "] R, float[b, 2, n, 6] P)"), "no MatMul before"),
    "a bias for each head": (
        model(ALL).replace("float[6] C", "float[2, 1, 6] C"), "not the one of two halves",
    ),
    "the heads are not moved": (
        model(ALL.replace(HEADS, "t = Neg(Q) "), q="b, 2, n, 4"), "the heads are not moved",
    ),
    "another number of heads": (
        model(ALL.replace("Reshape(a, halves)", "Reshape(a, others)"), more=", int64[5] others = {0, 4, -1, 2, 3}")
        .replace("b, n, 2, 4", "b, 6, 2, 4").replace("n, n", "3, 3").replace("1, 2, 1, 1] E", "1, 4, 1, 1] E")
        .replace("1, 2, 3, 3] R", "1, 4, 3, 3] R").replace("b, 2, 3, 3] y", "b, 4, 3, 3] y"),
        "not one gate for each query",
    ),
    "three gates": (
        model(ALL.replace("u, v = Split<axis = 3>(h, ones)", "u, v, v0 = Split<axis = 2>(h, threes)"),
              q="b, 3, 2, 4", more=", int64[3] threes = {1, 1, 1}", r="1, 2, 3, 3", y="b, 2, 3, 3"),
        "the gates are not two numbers",
    ),
    "a number for each position": (
        model(ALL, e="1, 2, n, 1"), "a head does not have one number",
    ),
    "something else is subtracted": (model(ALL.replace("Sub(e, one)", "Sub(e, two)")), "cannot be the constant 1"),
    "subtracted from one": (model(ALL.replace("Sub(e, one)", "Sub(one, e)")), "'one' cannot be"),
    "another gate": (model(ALL.replace("Mul(u, f)", "Mul(f, f)")), "nothing reads 'u'"),
    "the opposite of a gate": (
        model(ALL.replace("i = Mul(u, f)", "o = Neg(u) i = Mul(o, f)")), "Mul was expected, Neg was found",
    ),
    "rows of the batch": (
        model(
            FULL + MERGED.replace("(b, n, n)", "(axis1, last, n)").replace("(b, rest)", "(axis1, rest)"),
            y="1, m, n",
        ),
        "the heads of the batch are not reshaped",
    ),
    "something else is added": (model(ALL.replace("Add(i, two)", "Add(i, one)")), "cannot be the constant 2"),
    "a bias for each sequence": (model(ALL, r="b, 2, n, n"), "not the one of the heads"),
    "the same bias for all heads": (model(ALL, r="1, 1, n, n"), "not the one of the heads"),
    "more keys": (model(ALL, r="1, 2, n, k", y="b, 2, n, k"), "not the one of the heads"),
    "repeated for another batch": (
        model(FULL + "k = Tile(R, w) y = Mul(j, k)", q="1, n, 2, 4").replace("] R)", "] R, int64[4] w)"),
        "not the one of the heads|shape is not known",
    ),
    "the gate is used": (model(ALL, out=", float[b, 2, n, 1] j"), "used elsewhere|only use"),
    "merged in another way": (
        model(FULL + MERGED.replace("l = Reshape(k, x)", "l0 = Reshape(k, x) l = Transpose<perm = [0, 2, 1]>(l0)"),
              y="m, n, n"),
        "no Reshape before",
    ),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED}, processor="CUDA")
