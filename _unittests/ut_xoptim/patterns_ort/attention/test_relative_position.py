"""Biases of attention that depend on the distance between a query and a key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_ort.cuda_reference import check, run

from xoptim.testing import assert_same_outputs, model_from_text, optimize_with, refusal_tests

POSITIONS = "r = Range(i0, n, i1) q = Unsqueeze(r, one) k = Unsqueeze(r, zero) d = Sub(k, q) "
AFTER = "g = Greater(d, i0) h = Cast<to = 7>(g) p = Mul(h, half) x = Abs(d) "
BEFORE = "s = Shape(d) z = ConstantOfShape<value = int64[1] {0}>(s) t = Min(d, z) x = Neg(t) "
LOG = (
    "l = Less(x, exact) f = Cast<to = 1>(x) u = Div(f, e) v = Log(u) w = Div(v, c) a = Mul(w, m) "
    "b = Cast<to = 7>(a) j = Add(b, exact) sj = Shape(j) o = Expand(last, sj) y0 = Min(j, o) "
    "y1 = Where(l, x, y0) "
)
GATHER = "y3 = Gather({}, {}) y4 = Transpose<perm = [2, 0, 1]>(y3) y = Unsqueeze(y4, zero)"
BOTH = POSITIONS + AFTER + LOG + "y2 = Add(p, y1) " + GATHER.format("T", "y2")
CAUSAL = POSITIONS + BEFORE + LOG + GATHER.format("T", "y1")


def model(
    body: str,
    buckets: int = 8,
    both: bool = True,
    kind: str = "float",
    far: float = 128,
    m: int = 0,
    last: int = 0,
    inputs: str = "int64 n",
    y: str = "1, 3, s, s",
    out: str = "",
) -> str:
    """A table of three heads."""
    count = buckets // 2 if both else buckets
    exact = count // 2
    scale = float(np.float32(np.log(far / exact)))
    return f"""g ({kind}[{buckets}, 3] T, {inputs}) => ({kind}[{y}] y{out}) <
        int64 i0 = {{0}}, int64 i1 = {{1}}, int64[1] zero = {{0}}, int64[1] one = {{1}},
        int64 half = {{{count}}}, int64 exact = {{{exact}}}, float e = {{{exact}}},
        float c = {{{scale}}}, float m = {{{m or count - exact}}},
        int64 last = {{{last or count - 1}}}> {{ {body} }}"""


def written(buckets: int = 8, both: bool = True, far: int = 128, kind: str = "float") -> str:
    """The table by head, the operator."""
    return f"""g ({kind}[{buckets}, 3] T, int64 n) => ({kind}[1, 3, s, s] y) <
        int64[1] zero = {{0}}, int64[2] shape = {{{buckets}, 3}}> {{
        t = Transpose<perm = [1, 0]>(T) u = Reshape(t, shape) l = Unsqueeze(n, zero)
        y = com.microsoft.RelativePositionBias<is_bidirectional = {int(both)}, max_distance = {far}>
        (u, l, l) }}"""


#: what the documentation draws: name -> (before, after)
MODELS = {"RelativePositionBias": (model(BOTH), written())}


def compare(body: str, after: str, lengths: tuple[int, ...], **options) -> None:
    """The graph, then the results for some lengths."""
    before = model(body, **options)
    check(before, after, "RelativePositionBias", sizes=())
    result, _, _ = optimize_with(model_from_text(before), "RelativePositionBias", processor="CUDA")
    dtype = np.float16 if "16" in options.get("kind", "") else np.float32
    table = np.random.default_rng(0).standard_normal((options.get("buckets", 8), 3)).astype(dtype)
    for length in lengths:
        feeds = {"T": table, "n": np.array(length)}
        expected, got = run(model_from_text(before), feeds), run(result, feeds)
        assert_same_outputs(expected, got, 0, 0, "RelativePositionBias")


@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize(("buckets", "far"), [(8, 128), (32, 128), (32, 20), (320, 800)])
def test_both_sides(kind: str, buckets: int, far: int) -> None:
    """T5, WavLM; distances under and above the largest one."""
    after = written(buckets, True, far, kind)
    compare(BOTH, after, (1, 7, far + 3), buckets=buckets, far=far, kind=kind)


@pytest.mark.parametrize(("buckets", "far"), [(8, 128), (32, 128)])
def test_keys_before(buckets: int, far: int) -> None:
    after = written(buckets, False, far)
    compare(CAUSAL, after, (1, 7, far + 3), buckets=buckets, far=far, both=False)


def test_orders() -> None:
    """Operands exchanged."""
    body = BOTH.replace("Add(p, y1)", "Add(y1, p)").replace("Mul(h, half)", "Mul(half, h)")
    compare(body, written(), (5, 40))


def test_vector_of_keys() -> None:
    """The model is the result of LeadingUnsqueeze."""
    body = BOTH.replace("k = Unsqueeze(r, zero) d = Sub(k, q)", "d = Sub(r, q)")
    compare(body, written(), (5, 40))


@pytest.mark.parametrize("buckets", [8, 32, 320])
def test_sum_before_the_cast(buckets: int) -> None:
    """As WavLM writes it."""
    body = BOTH.replace(
        "b = Cast<to = 7>(a) j = Add(b, exact)", "b = Add(a, e) j = Cast<to = 7>(b)"
    )
    compare(body, written(buckets, True, 800), (1, 7, 803), buckets=buckets, far=800)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([4, 8, 16, 20, 64]), st.integers(20, 300), st.booleans())
def test_any_formula(buckets: int, far: int, both: bool) -> None:
    """Where it is written, the rows are the same at every distance."""
    body = BOTH if both else CAUSAL
    before = model(body, buckets, both, far=far)
    result, _, _ = optimize_with(model_from_text(before), "RelativePositionBias", processor="CUDA")
    if "Gather" in {n.op_type for n in result.graph.node}:
        return
    table = np.arange(buckets * 3, dtype=np.float32).reshape(-1, 3)
    feeds = {"T": table, "n": np.array(far + 5)}
    expected, got = run(model_from_text(before), feeds), run(result, feeds)
    assert_same_outputs(expected, got, 0, 0, "RelativePositionBias")


REFUSED = {
    "on CPU": (model(BOTH), "no RelativePositionBias for this type", {"processor": "CPU"}),
    "double": (model(BOTH, kind="double"), "no RelativePositionBias for this type"),
    "another order": (
        model(BOTH.replace("[2, 0, 1]", "[2, 1, 0]")), "perm is .2, 1, 0., .2, 0, 1. is expected",
    ),
    "another axis": (
        model(BOTH.replace("Unsqueeze(y4, zero)", "Unsqueeze(y4, one)"), y="3, 1, s, s"),
        "the heads do not come first",
    ),
    "the rows are used": (model(BOTH, out=", float[s, s, 3] y3"), "is used before the heads"),
    "columns of the table": (
        model(BOTH.replace("Gather(", "Gather<axis = 1>("), y="1, s, 8, s"), "axis is 1, 0 is expected",
    ),
    "an unknown table": (
        model(BOTH).replace("float[8, 3] T", "float[k, 3] T"), "the table is not static",
    ),
    "more keys": (
        model(BOTH.replace("k = Unsqueeze(r, zero)", "r2 = Range(i0, n2, i1) k = Unsqueeze(r2, zero)"),
              inputs="int64 n, int64 n2", y="1, 3, s, t"),
        "not as many keys as queries",
    ),
    "positions of 32 bits": (
        model(BOTH.replace("to = 7", "to = 6"), inputs="int32 n").replace("int64 ", "int32 "),
        "to is 6, 7 is expected",
    ),
    "positions from one": (
        model(BOTH.replace("Range(i0, n, i1)", "Range(i1, n, i1)")), "the positions are not 0, 1, 2",
    ),
    "queries minus keys": (
        model(BOTH.replace("Sub(k, q)", "Sub(q, k)")), "the positions are not 0, 1, 2",
    ),
    "two sides": (model(BOTH.replace("Add(p, y1)", "Add(y1, y1)")), "no Mul before Add"),
    "another limit": (
        model(BOTH.replace("Less(x, exact)", "Less(x, i1)")), "are not buckets",
    ),
    "another last bucket": (model(BOTH, last=2), "are not buckets"),
    "another number of buckets": (model(BOTH, m=1), "another bucket"),
    "another sum": (
        model(BOTH.replace("Add(b, exact)", "Add(b, half)")), "are not buckets",
    ),
    "another half": (
        model(BOTH.replace("Mul(h, half)", "Mul(h, exact)")), "are not buckets",
    ),
    "another difference": (
        model(BOTH.replace("Greater(d, i0)", "Greater(q, i0)")), "cannot be 'd'",
    ),
    "another zero": (
        model(BOTH.replace("Greater(d, i0)", "Greater(d, i1)")), "cannot be the constant 0",
    ),
    "the logarithm of something else": (
        model(BOTH.replace("Cast<to = 1>(x)", "Cast<to = 1>(d)")), "cannot be 'r'",
    ),
    "float16 logarithms": (
        model(BOTH.replace("f = Cast<to = 1>(x)", "f0 = Cast<to = 11>(x) f1 = Div(f0, ed)")
              .replace("u = Div(f, e)", "u = Cast<to = 1>(f1)")).replace(
            "float e =", "double ed = {2}, float e ="),
        "are not buckets|no Div before",
    ),
    "a distance that is too small": (model(BOTH, far=2), "are not buckets"),
    "keys after are not hidden": (
        model(CAUSAL.replace("int64[1] {0}", "int64[1] {1}"), both=False), "are not buckets",
    ),
}  # fmt: skip

test_refuses = refusal_tests({"RelativePositionBias": REFUSED}, processor="CUDA")
