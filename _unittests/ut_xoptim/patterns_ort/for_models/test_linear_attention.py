"""One step of linear attention."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

CONSTANTS = (
    "int64[1] last = {-1}, int64[1] rows = {-2}, int64[2] both = {2, 3}, int64[1] axis1 = {1},"
    " int64[3] wide_k = {0, 1, 12}, int64[3] wide_v = {0, 1, 8}, int64[3] wide_h = {0, 1, 2},"
    " int64[3] back = {0, 2, 4}"
)
DECAY = "x = Exp(g) e = Unsqueeze(x, both) t = Mul(s, e) "
KEY = "k3 = Unsqueeze(k, last) "
DELTA = (
    "m = Mul(t, k3) r = ReduceSum<keepdims = 0>(m, rows) d = Sub(v, r) b1 = Unsqueeze(b, last)"
    " c = Mul(d, b1) c3 = Unsqueeze(c, rows) "
)
PLAIN = "c3 = Unsqueeze(v, rows) "
WRITE = "w = Mul(k3, c3) u = Add(t, w) "
READ = "q3 = Unsqueeze(q, last) z = Mul(u, q3) y = ReduceSum<keepdims = 0>(z, rows)"
#: the four rules
RULES = {
    "gated_delta": DECAY + KEY + DELTA + WRITE + READ,
    "delta": (KEY + DELTA + WRITE + READ).replace("(t, ", "(s, "),
    "gated": DECAY + KEY + PLAIN + WRITE + READ,
    "linear": (KEY + PLAIN + WRITE + READ).replace("(t, ", "(s, "),
}
#: the difference keeps the dimension the sum leaves
KEPT_DELTA = (
    RULES["delta"].replace("keepdims = 0>(m", "keepdims = 1>(m")
    .replace("(b, last)", "(b, both)").replace("c3 = Unsqueeze(c, rows)", "").replace("c3", "c")
)  # fmt: skip
#: inputs that have two dimensions, those of the rule
INPUTS = {"gated_delta": "gb", "delta": "b", "gated": "g", "linear": ""}


def model(
    body: str,
    inputs: str = "gb",
    kind: str = "float",
    s: str = "n, 2, 6, 4",
    g: str = "n, 2",
    q: str = "n, 2, 6",
    v: str = "n, 2, 4",
    out: str = "",
) -> str:
    """A state, a key, a query, a value, a decay, a rate."""
    dims = {"g": g, "b": "n, 2"}
    more = "".join(f", {kind}[{dims[i]}] {i}" for i in inputs)
    return f"""h ({kind}[{s}] s, {kind}[n, 2, 6] k, {kind}[{q}] q, {kind}[{v}] v{more})
    => ({kind}[n, 2, 4] y, {kind}[n, 2, 6, 4] u{out}) <{CONSTANTS}> {{ {body} }}"""


def written(rule: str, more: str = "", key: str = "Unsqueeze(k, last)", **options: str) -> str:
    """The operator, and what makes rows of its inputs."""
    inputs = INPUTS[rule]
    body = f"k3 = {key} q3 = Unsqueeze(q, last) q1 = Reshape(q3, wide_k) k1 = Reshape(k3, wide_k) "
    if "delta" in rule:
        body += "v1 = Reshape(v, wide_v) b1 = Unsqueeze(b, last) b2 = Reshape(b1, wide_h) "
    else:
        body += "c3 = Unsqueeze(v, rows) v1 = Reshape(c3, wide_v) "
    decay = "g1" if "g" in inputs else ""
    body += f"g1 = Reshape(g, {more or 'wide_h'}) " if decay else ""
    names = f"q1, k1, v1, s, {decay}" + (", b2" if "b" in inputs else "")
    names = names.rstrip(", ") if rule == "linear" else names
    body += (
        'o, u = com.microsoft.LinearAttention<q_num_heads = 2, kv_num_heads = 2, scale = 1.0,'
        f' update_rule = "{rule}">({names}) y = Reshape(o, back)'
    )  # fmt: skip
    return model(body, inputs, **options)


#: pattern -> case -> (before, after)
MODELS = {
    "LinearAttention": {
        **{rule: (model(body, INPUTS[rule]), written(rule)) for rule, body in RULES.items()},
        "operands exchanged": (
            model(
                RULES["gated_delta"].replace("(s, e)", "(e, s)").replace("(t, k3)", "(k3, t)")
                .replace("(k3, c3)", "(c3, k3)").replace("(t, w)", "(w, t)")
                .replace("(u, q3)", "(q3, u)").replace("(d, b1)", "(b1, d)")
            ),
            written("gated_delta"),
        ),
        "the key is written twice": (
            model(RULES["delta"].replace("(s, k3)", "(s, k4)") + " k4 = Unsqueeze(k, last)", "b")
            .replace(KEY, KEY + "k4 = Unsqueeze(k, last) ").replace("rows) k4 = Unsqueeze(k, last)", "rows)"),
            written("delta"),
        ),
        "the sum that is read keeps its dimension": (
            model(RULES["gated"].replace("keepdims = 0>(z", "keepdims = 1>(z"), "g").replace(
                "2, 4] y", "2, 1, 4] y"),
            written("gated").replace("2, 4] y", "2, 1, 4] y").replace(
                "int64[3] back = {0, 2, 4}", "int64[4] back = {0, 2, 1, 4}"),
        ),
        "the sum of the difference keeps its dimension": (
            model(KEPT_DELTA, "b", v="n, 2, 1, 4"),
            written("delta", v="n, 2, 1, 4").replace("b1 = Unsqueeze(b, last)", "b1 = Unsqueeze(b, both)"),
        ),
        "a decay for each element of the keys": (
            model(RULES["gated"].replace("(x, both)", "(x, last)"), "g", g="n, 2, 6"),
            written("gated", "wide_k", g="n, 2, 6"),
        ),
    }
}  # fmt: skip

# ReduceSum of an empty batch has a wrong shape in onnxruntime 1.31.1
test_rewrites = rewrite_tests(MODELS, atol=1e-5, sizes=[{"n": 3}, {"n": 1}])

ALL = RULES["gated_delta"]
REFUSED = {
    "the sum is along another axis": (
        model(ALL.replace("(z, rows)", "(z, last)")).replace("n, 2, 4] y", "n, 2, 6] y"),
        "the sum is not along the keys",
    ),
    "nothing is read": (model(ALL.replace("Mul(u, q3)", "Add(u, q3)")), "no Mul before"),
    "no state": (model(ALL.replace("Mul(u, q3)", "Mul(s, q3)")), "no state is updated before"),
    "the query of another batch": (model(ALL, q="1, 2, 6"), "the query is not a vector"),
    "the query of another head": (model(ALL, q="n, 1, 6"), "the query is not a vector"),
    "heads are not known": (
        model(ALL).replace("2, 6", "h, 6").replace("n, 2", "n, h"), "of the heads are not known",
    ),
    "the state is broadcast": (
        model(RULES["delta"], "b", s="1, 2, 6, 4"), "no product of a key and of a value",
    ),
    "no product": (model(ALL.replace("w = Mul(k3, c3)", "w = Sub(k3, c3)")), "no product of a key"),
    "another key": (
        model(ALL.replace("(t, k3)", "(t, k5)").replace(KEY, KEY + "k5 = Neg(k3) ")),
        "another key is read",
    ),
    "another state is read": (model(ALL.replace("(t, k3)", "(s, k3)")), "another key is read"),
    "the difference is along another axis": (
        model(ALL.replace("(m, rows)", "(m, axis1)")).replace("n, 2, 6, 4] s", "n, 2, 2, 4] s")
        .replace("2, 6", "2, 2"),
        "the sum is not along the keys",
    ),
    "one head that is not an axis": (
        model(RULES["linear"], "").replace("n, 2, ", "n, "), "does not have four dimensions",
    ),
    "a value for all": (model(RULES["delta"], "b", v="1, 2, 4"), "not a vector of each head"),
    "a value for all, dimensions are kept": (
        model(KEPT_DELTA, "b", v="1, 2, 1, 4"), "not a vector of each head",
    ),
    "the batch of the decay is not its first axis": (
        model(ALL.replace("Unsqueeze(x, both)", "Reshape(x, four)"), g="2, n").replace(
            "int64[1] last", "int64[4] four = {-1, 2, 1, 1}, int64[1] last"),
        "a vector does not have the batch first",
    ),
    "double": (model(ALL, kind="double"), "no LinearAttention for this type"),
    "on CUDA": (model(ALL), "no LinearAttention for this type", {"processor": "CUDA"}),
}  # fmt: skip

test_refuses = refusal_tests({"LinearAttention": REFUSED})
