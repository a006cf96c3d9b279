"""Linear attention over several steps: Scan, or nodes one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_pattern, model_from_text, reasons_of, refusal_tests, rewrite_tests

RULES = ("gated_delta", "delta", "gated", "linear")
#: rule -> inputs it reads after the state
READ = {"gated_delta": "g1, b1", "delta": ", b1", "gated": "g1", "linear": ""}


def operator(rule: str, heads: int = 2, scale: float = 0.5) -> str:
    options = f"q_num_heads = {heads}, kv_num_heads = {heads}, scale = {scale}"
    return f'com.microsoft.LinearAttention<{options}, update_rule = "{rule}">'


BODY = (
    "q1 = Reshape(q, wide_k) k1 = Reshape(k, wide_k) v1 = Reshape(v, wide_v) "
    "g1 = Unsqueeze(g, one) b0 = Unsqueeze(b, last) b1 = Reshape(b0, wide_h) "
)
WIDE = "int64[3] wide_k = {0, 1, 12}, int64[3] wide_v = {0, 1, 8}, int64[3] wide_h = {0, 1, 2}"
OUT = "o = Reshape(o1, back) "


def scan(
    rule: str = "gated_delta",
    body: str = "",
    s: str = "n, 2, 6, 4",
    k: str = "t, n, 2, 6",
    options: str = "",
    inputs: str = "S, Q, K, V, G, B",
    outputs: str = "U, Y",
    step: str = "",
    more: str = "",
    y: str = "t, n, 2, 4",
) -> str:
    """Scan over the first axis of queries, keys, values, decays, rates."""
    count = inputs.count(",")
    read = ", ".join(["q1, k1, v1, s", *filter(None, [READ[rule]])])
    run = f"o1, u = {operator(rule)}({read}) "
    body = body or BODY + run + OUT
    return f"""h (float[{s}] S, float[t, n, 2, 6] Q, float[{k}] K, float[t, n, 2, 4] V,
        float[t, n, 2] G, float[t, n, 2] B{more}) => (float[{s}] U, float[{y}] Y) <
        int64[2] rows = {{0, -1}}> {{
        {outputs} = Scan <num_scan_inputs = {count}{options}, body = step (
            {step or "float[n, 2, 6, 4] s, float[n, 2, 6] q, float[n, 2, 6] k, float[n, 2, 4] v, float[n, 2] g, float[n, 2] b"}
        ) => (float[n, 2, 6, 4] u, float[n, 2, 4] o) <{WIDE}, int64[1] one = {{1}},
            int64[1] last = {{-1}}, int64[3] back = {{0, 2, 4}}> {{ {body} }}>({inputs}) }}"""


def written(rule: str = "gated_delta") -> str:
    """One operator for all the steps."""
    read = {"gated_delta": "G1, B1", "delta": ", B1", "gated": "G1", "linear": ""}[rule]
    names = ", ".join(["Q2, K2, V2, S", *filter(None, [read])])
    body = (
        "Q1 = Transpose<perm = [1, 0, 2, 3]>(Q) Q2 = Reshape(Q1, wide_k) "
        "K1 = Transpose<perm = [1, 0, 2, 3]>(K) K2 = Reshape(K1, wide_k) "
        "V1 = Transpose<perm = [1, 0, 2, 3]>(V) V2 = Reshape(V1, wide_v) "
    )
    if "G1" in read:
        body += "G1 = Transpose<perm = [1, 0, 2]>(G) "
    if "B1" in read:
        body += "B1 = Transpose<perm = [1, 0, 2]>(B) "
    wide = WIDE.split(", int64[3] wide_h")[0].replace("0, 1", "0, 0")
    return f"""h (float[n, 2, 6, 4] S, float[t, n, 2, 6] Q, float[t, n, 2, 6] K,
        float[t, n, 2, 4] V, float[t, n, 2] G, float[t, n, 2] B) => (float[n, 2, 6, 4] U,
        float[t, n, 2, 4] Y) <{wide}, int64[4] back = {{0, 0, 2, 4}}> {{ {body}
        O, U = {operator(rule)}({names}) O1 = Reshape(O, back)
        Y = Transpose<perm = [1, 0, 2, 3]>(O1) }}"""


def steps(
    body: str,
    q: str = "n, 2, 3, 6",
    past: str = "n, 2, 6, 4",
    out: str = "",
    y: str = "n, 1, 8",
    rows: str = "n, 1, 12",
) -> str:
    """Operators of one step, the elements of the queries and of rows that are not of one result."""
    more = ", int64[1] one = {1}, int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}"
    return f"""h (float[{past}] S, float[{q}] Q, float[{rows}] k0, float[{rows}] k1, float[{rows}] k2,
        float[n, 1, 8] v0, float[n, 3, 2, 4] V, float[n, 3, 2] B) => (float[n, 1, 8] y0, float[{y}] y1,
        float[n, 1, 8] y2, float[{past}] U{out}) <{WIDE}{more}> {{ {body} }}"""


GATHERS = " ".join(
    f"q{i} = Gather<axis = 2>(Q, i{i}) r{i} = Reshape(q{i}, wide_k) w{i} = Gather<axis = 1>(V, i{i}) "
    f"v{i}_ = Reshape(w{i}, wide_v) c{i} = Gather<axis = 1>(B, i{i}) b{i} = Unsqueeze(c{i}, one)"
    for i in range(3)
)
RUN = "{y}, {u} = " + operator("delta") + "({q}, {k}, {v}, {s}, , {b}) "
STEPS = [
    RUN.format(y=f"y{i}", u=u, q=f"r{i}", k=f"k{i}", v=f"v{i}_", s=s, b=f"b{i}")
    for i, (s, u) in enumerate([("S", "s0"), ("s0", "s1"), ("s1", "U")])
]
THREE = GATHERS + " " + "".join(STEPS)
THREE_AFTER = (
    "m = Transpose<perm = [0, 2, 1, 3]>(Q) q = Reshape(m, all_k) k = Concat<axis = 1>(k0, k1, k2) "
    "v = Reshape(V, all_v) y, U = " + operator("delta") + "(q, k, v, S, , B) "
    "y0, y1, y2 = Split<axis = 1>(y, ones)"
)
ALL = "int64[3] all_k = {0, 0, 12}, int64[3] all_v = {0, 0, 8}, int64[3] ones = {1, 1, 1}, int64[3] wide_k"

#: pattern -> case -> (before, after)
MODELS = {
    "LinearAttentionScan": {
        **{rule: (scan(rule), written(rule)) for rule in RULES},
        "axes": (
            scan(options=", scan_input_axes = [0, 0, -4, 0, 0], scan_output_axes = [-4]"),
            written(),
        ),
    },
    "LinearAttentionSteps": {
        "three": (steps(THREE), steps(THREE_AFTER).replace("int64[3] wide_k", ALL)),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-5, sizes=[{"n": 3, "t": 4}, {"n": 1, "t": 1}])


def test_other_axes() -> None:
    """The steps are the second axis, the results are joined on the last one."""
    text = scan(options=", scan_input_axes = [1, 0, 0, 0, 0], scan_output_axes = [3]")
    text = text.replace("float[t, n, 2, 6] Q", "float[n, t, 2, 6] Q").replace(
        "float[t, n, 2, 4] Y", "float[n, 2, 4, t] Y"
    )
    found = check_pattern(
        text, None, "LinearAttentionScan", sizes=[{"n": 3, "t": 4}, {"n": 1, "t": 1}], atol=1e-5
    )
    moved = [n.attribute[0].ints for n in found.graph.node if n.op_type == "Transpose"]
    assert [*moved[-1]] == [0, 2, 3, 1] and len(moved) == 5


def test_no_result() -> None:
    """Only the last state is read."""
    text = scan(outputs="U").replace(", float[t, n, 2, 4] Y", "")
    text = text.replace("(float[n, 2, 6, 4] u, float[n, 2, 4] o)", "(float[n, 2, 6, 4] u)")
    found = check_pattern(text, None, "LinearAttentionScan", sizes={"n": 2, "t": 3}, atol=1e-5)
    assert "Scan" not in {n.op_type for n in found.graph.node}


def test_longer_steps() -> None:
    """A step may be several ones already: their rows are joined."""
    body = THREE.replace("k1, v1_, s0, , b1", "kk, vv, s0, , bb").replace("(r1,", "(rr,")
    body = "rr = Concat<axis = 1>(r1, r1) kk = Concat<axis = 1>(k1, k1) " + (
        "vv = Concat<axis = 1>(v1_, v1_) bb = Concat<axis = 1>(b1, b1) "
    ) + body  # fmt: skip
    found = check_pattern(
        steps(body, y="n, 2, 8"), None, "LinearAttentionSteps", sizes={"n": 2}, atol=1e-5
    )
    assert [n.op_type for n in found.graph.node].count("LinearAttention") == 1


@settings(max_examples=15, deadline=None)
@given(
    rule=st.sampled_from(RULES),
    batch=st.integers(1, 3),
    length=st.integers(1, 9),
    past=st.sampled_from([0.0, 1.0, np.inf, np.nan]),
)
def test_any_values(rule: str, batch: int, length: int, past: float) -> None:
    """Any rule, any number of steps, states that are not finite."""
    rng = np.random.default_rng(length)
    shapes = {"S": (batch, 2, 6, 4), **dict.fromkeys("QK", (length, batch, 2, 6))}
    shapes.update({"V": (length, batch, 2, 4), "G": (length, batch, 2), "B": (length, batch, 2)})
    feeds = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    feeds["S"] *= np.float32(past)
    check_pattern(scan(rule), None, "LinearAttentionScan", feeds=[feeds], atol=1e-3, rtol=1e-3)


_RUN = BODY + f"o1, u = {operator('gated_delta')}(q1, k1, v1, s, g1, b1) "
REFUSED = {
    "LinearAttentionScan": {
        "backwards": (scan(options=", scan_input_directions = [1, 0, 0, 0, 0]"), "read backwards"),
        "results backwards": (scan(options=", scan_output_directions = [1]"), "read backwards"),
        "another state": (scan(body=_RUN.replace("o1, u =", "o1, u0 =") + "u = Neg(u0) " + OUT), "not the one of LinearAttention"),
        "the state is changed": (
            scan(body="z = Neg(s) " + _RUN.replace("v1, s,", "v1, z,") + OUT),
            "not the one of LinearAttention",
        ),
        "the state is another result": (
            scan(body=_RUN.replace("o1, u =", "o1, u0 =") + "u = Identity(s) " + OUT),
            "not the one of LinearAttention",
        ),
        "a row that is computed": (
            scan(body=_RUN.replace("Reshape(k,", "Reshape(k0,").replace("q1 =", "k0 = Neg(k) q1 =") + OUT),
            "is not the one of the step",
        ),
        "a row of the state": (
            scan(body=_RUN.replace("b0 = Unsqueeze(b, last)", "b0 = Unsqueeze(s, last)") + OUT),
            "is not the one of the step|not the one of LinearAttention",
        ),
        "the same row for all": (
            scan(body=_RUN.replace("Reshape(k,", "Reshape(C,") + OUT, more=", float[n, 2, 6] C"),
            "is not the one of the step",
        ),
        "the result is computed": (scan(body=_RUN + "o2 = Neg(o1) o = Reshape(o2, back) "), "not the one of a step"),
        "two states": (
            scan(inputs="S, Q, K, V, G, B").replace("num_scan_inputs = 5", "num_scan_inputs = 4")
            .replace("(float[n, 2, 6, 4] u, float[n, 2, 4] o)", "(float[n, 2, 6, 4] u, float[n, 2, 6] w, float[n, 2, 4] o)")
            .replace("U, Y = Scan", "U, W, Y = Scan").replace("o = Reshape(o1", "w = Identity(q) o = Reshape(o1")
            .replace("float[t, n, 2, 6] Q", "float[n, 2, 6] Q"),
            "there is not one state",
        ),
        "several results": (
            scan(body=_RUN + OUT + "w = Identity(k) ", outputs="U, Y, W")
            .replace("float[n, 2, 4] o)", "float[n, 2, 4] o, float[n, 2, 6] w)"),
            "several results",
        ),
        "a result of unknown dimensions": (
            scan(body=_RUN + "e = Shape<end = 1>(o1) f = Shape(D) d = Concat<axis = 0>(e, last, f) o = Reshape(o1, d) ", more=", float[m] D").replace("4] u, float[n, 2, 4] o", "4] u, float[n, c, d] o"),
            "the dimensions of a result are not known",
        ),
        "a batch that is not proven": (scan(k="t, m, 2, 6"), "the dimensions of a step"),
        "on CUDA": (scan(), "no LinearAttention for this type", {"processor": "CUDA"}),
    },
    "LinearAttentionSteps": {
        "one step": (
            steps(GATHERS + STEPS[0].replace("s0", "U") + "y1 = Neg(v0) y2 = Neg(v0)"),
            "no step comes before",
        ),
        "another rule": (
            steps(GATHERS + STEPS[0].replace("scale = 0.5", "scale = 1.0") + STEPS[1].replace("s1", "U") + "y2 = Neg(v0)"),
            "no step comes before",
        ),
        "a state that is used": (
            steps(GATHERS + STEPS[0] + STEPS[1].replace("s1", "U") + "y2 = Neg(v0) w = Neg(s0)", out=", float[n, 2, 6, 4] w"),
            "no step comes before",
        ),
        "steps of unknown lengths": (
            steps(
                f"y0, s0 = {operator('linear')}(k0, k1, v0, S) y1, U = {operator('linear')}(k1, k2, v0, s0) y2 = Neg(v0)",
            ).replace("n, 1,", "n, t,"),
            "the lengths are not known",
        ),
        "a result is read": (
            steps(GATHERS + STEPS[0] + "z = Add(y0, v0) " + STEPS[1].replace("v1_", "z").replace("s1", "U") + "y2 = Neg(v0)"),
            "reads the result of another one",
        ),
    },
}  # fmt: skip

test_refuses = refusal_tests(REFUSED)


def test_the_last_step_is_the_root() -> None:
    found = reasons_of(model_from_text(steps(THREE)), "LinearAttentionSteps")
    first, second, third = (told for _, told in found)
    assert first.startswith("no step comes before") and second.startswith("steps come after")
    assert third.startswith("MatchResult")
