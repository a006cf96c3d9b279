"""Attention of opset 23 that moves and repeats the heads by itself."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, make_feeds, model_from_text

NAME = "AttentionTranspose"
MOVED = "{0}t = Transpose<perm = [0, 2, 1, 3]>({0}) "
HEADS = "".join(MOVED.format(name) for name in "qkv")
CALL = "o = Attention<scale = 0.25>(qt, kt, vt, mask) "
BACK = "y = Transpose<perm = [0, 2, 1, 3]>(o)"
INPUTS = "float[b, s, 4, 8] q, float[b, t, 2, 8] k, float[b, t, 2, 6] v"
MASK = ", bool[b, 1, s, t] mask"


def model(
    body: str = HEADS + CALL + BACK,
    inputs: str = INPUTS + MASK,
    out: str = "b, s, 4, 6",
    outputs: str = "",
) -> str:
    """An attention, its heads are moved before and after."""
    return f"""g ({inputs}) => (float[{out}] y{outputs}) <
        int64[3] q3 = {{0, 0, 32}}, int64[3] k3 = {{0, 0, 16}}, int64[3] v3 = {{0, 0, 12}},
        int64[4] heads = {{0, 0, 4, 6}}, int64[1] one = {{1}}
    > {{ {body} }}"""


WRITTEN = model(
    "qf = Reshape(q, q3) kf = Reshape(k, k3) vf = Reshape(v, v3) "
    "of = Attention<kv_num_heads = 2, q_num_heads = 4, scale = 0.25>(qf, kf, vf, mask) "
    "y = Reshape(of, heads)"
)
REPEAT = "u{0} = Unsqueeze({0}, two) e{0} = Expand(u{0}, spread) r{0} = Reshape<allowzero = 0>(e{0}, to{1}) "
SHARED = """g (float[b, 4, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 6] v, bool[b, 1, s, t] mask) =>
    (float[b, 4, s, 6] y) <int64[1] two = {2}, int64[5] spread = {1, 1, 2, 1, 1},
    int64[4] to8 = {0, 4, -1, 8}, int64[4] to6 = {0, 4, -1, 6}, int64[5] triple = {1, 1, 3, 1, 1}> { BODY }"""
BOTH = REPEAT.format("k", 8) + REPEAT.format("v", 6)
GATHERED = """rows = Constant<value_ints = [0, 0, 1, 1]>() turns = Constant<value_ints = [0, 1, 0, 1]>()
    rk = Gather<axis = -3>(k, rows) rv = Gather<axis = 1>(v, rows)
    y = Attention<scale = 0.25>(q, rk, rv, mask)"""
#: what the documentation draws: name -> (before, after)
MODELS = {
    NAME: (model(), WRITTEN),
    "AttentionSharedHeads": (
        SHARED.replace("BODY", BOTH + "y = Attention<scale = 0.25>(q, rk, rv, mask)"),
        SHARED.replace("BODY", "y = Attention<scale = 0.25>(q, k, v, mask)"),
    ),
}
SIZES = [{"b": 2, "s": 3, "t": 5}, {"b": 1, "s": 1, "t": 4}, {"b": 3, "s": 20, "t": 20}]


@pytest.mark.parametrize("sizes", SIZES)
def test_mask(sizes: dict[str, int]) -> None:
    """Rows that see nothing are zeros, as they were."""
    feeds = make_feeds(model_from_text(model(), 23), sizes)
    feeds["mask"][0, :, 0] = False
    feeds["mask"][0, :, 1:, 0] = True
    check_pattern(*MODELS[NAME], NAME, opset=23, feeds=[feeds], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("options", ["is_causal = 1", "softcap = 2.0", "scale = 0.5"])
def test_attributes(options: str, sizes: dict[str, int]) -> None:
    body = HEADS + f"o = Attention<{options}>(qt, kt, vt) " + BACK
    found = check_pattern(
        model(body, INPUTS), None, NAME, opset=23, sizes=sizes, atol=1e-6, rtol=1e-6
    )
    (node,) = [n for n in found.graph.node if n.op_type == "Attention"]
    assert {a.name for a in node.attribute} == {
        options.split()[0], "q_num_heads", "kv_num_heads",
    }  # fmt: skip
    assert "Transpose" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("sizes", SIZES)
def test_one_head(sizes: dict[str, int]) -> None:
    body = (
        "qt = Unsqueeze(q, one) kt = Unsqueeze(k, one) vt = Unsqueeze(v, one) "
        "o = Attention(qt, kt, vt) y = Squeeze(o, one)"
    )
    inputs = "float[b, s, 8] q, float[b, t, 8] k, float[b, t, 6] v"
    found = check_pattern(
        model(body, inputs, "b, s, 6"), None, NAME, opset=23, sizes=sizes, atol=1e-6, rtol=1e-6
    )
    assert [n.op_type for n in found.graph.node] == ["Attention"]


@pytest.mark.parametrize("sizes", SIZES)
def test_queries_of_every_sequence(sizes: dict[str, int]) -> None:
    """The same queries for each sequence, there is nothing to move."""
    body = (
        "d = Shape<start = 0, end = 1>(k) i = Constant<value = int64[3] {4, 3, 8}>() "
        "z = Constant<value = float[1] {2}>() e = Concat<axis = 0>(d, i) qt = Expand(z, e) "
        + HEADS.replace(MOVED.format("q"), "")
        + CALL.replace(", mask", "")
        + BACK
    )
    found = check_pattern(
        model(body, INPUTS, "b, 3, 4, 6"), None, f"{NAME},FilledMove", opset=23, sizes=sizes,
        atol=1e-6, rtol=1e-6,
    )  # fmt: skip
    assert "Transpose" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("sizes", SIZES)
def test_turned(sizes: dict[str, int]) -> None:
    """RotaryEmbedding comes after the heads are moved."""
    body = (
        HEADS + "qr = RotaryEmbedding(qt, c, w) kr = RotaryEmbedding(kt, c, w) "
        "o = Attention(qr, kr, vt, mask) " + BACK
    )
    inputs = (INPUTS + MASK).replace("t,", "s,").replace("s, t]", "s, s]")
    tables = ", float[b, s, 4] c, float[b, s, 4] w"
    found = check_pattern(
        model(body, inputs + tables), None, f"{NAME},RotaryEmbedding3D,ReshapeReshape",
        opset=23, sizes=sizes, atol=1e-6, rtol=1e-6,
    )  # fmt: skip
    types = [n.op_type for n in found.graph.node]
    assert types.count("RotaryEmbedding") == 2 and "Transpose" not in types


@pytest.mark.parametrize("sizes", SIZES)
def test_shared_heads(sizes: dict[str, int]) -> None:
    """Rows that see nothing are zeros, as they were."""
    before, after = MODELS["AttentionSharedHeads"]
    feeds = make_feeds(model_from_text(before, 23), sizes)
    feeds["mask"][0, :, 0] = False
    check_pattern(
        before, after, "AttentionSharedHeads", opset=23, feeds=[feeds], atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_gathered_heads(sizes: dict[str, int]) -> None:
    """A Gather repeats the heads, as ExpandReshapeGather writes it."""
    before, after = SHARED.replace("BODY", GATHERED), MODELS["AttentionSharedHeads"][1]
    check_pattern(
        before, after, "AttentionSharedHeads", opset=23, sizes=sizes, atol=1e-6, rtol=1e-6
    )


PAST = "kj = Concat<axis = 2>(m, kt) vj = Concat<axis = 2>(n, vt) o = Attention<{0}>(qt, kj, vj, mask) "
#: keys and values of the steps before are m and n
JOINED = (
    "float[2, {s}, 4, 8] q, float[2, {s}, 2, 8] k, float[2, {s}, 2, 6] v, float[2, 2, {p}, 8] m, "
    "float[2, 2, {p}, 6] n, bool[2, 1, {s}, {t}] mask"
)
KEPT = ", float[2, 2, {t}, 8] kj, float[2, 2, {t}, 6] vj"


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("steps", "past"), [(1, 5), (3, 4), (2, 0)])
def test_joined(steps: int, past: int, kept: bool) -> None:
    """Keys and values of the steps before: the operator joins them; rows that see nothing."""
    sizes = {"s": steps, "p": past, "t": steps + past}
    text = model(
        HEADS + PAST.format("scale = 0.25") + BACK, JOINED.format(**sizes), f"2, {steps}, 4, 6",
        KEPT.format(**sizes) if kept else "",
    )  # fmt: skip
    feeds = make_feeds(model_from_text(text, 23), {})
    feeds["mask"][0, :, 0] = False
    found = check_pattern(text, None, NAME, opset=23, feeds=[feeds], atol=1e-6, rtol=1e-6)
    (node,) = [n for n in found.graph.node if n.op_type == "Attention"]
    assert list(node.input[4:]) == ["m", "n"]
    assert not {"Concat", "Transpose"} & {n.op_type for n in found.graph.node}


def test_nan_stays() -> None:
    """Values that are not finite give the same results."""
    feeds = make_feeds(model_from_text(model(), 23), SIZES[0])
    feeds["q"][0, 0, 0, 0], feeds["v"][1, 0, 0, 1] = np.nan, np.inf
    found = check_pattern(model(), None, NAME, opset=23, feeds=[feeds], atol=1e-6, rtol=1e-6)
    assert "Transpose" not in {n.op_type for n in found.graph.node}


#: name -> (model, reason)
REFUSED = {
    "three dimensions": (
        WRITTEN, "the operator moves the heads already",
    ),
    "a cache": (
        model(
            HEADS + "o, j, l = Attention(qt, kt, vt, , m, n) " + BACK,
            "float[b, s, 4, 8] q, float[b, t, 4, 8] k, float[b, t, 4, 8] v, float[b, 4, p, 8] m, "
            "float[b, 4, p, 8] n", "b, s, 4, 8",
            ", float[b, 4, u, 8] j, float[b, 4, u, 8] l",
        ),
        "other results",
    ),
    "a cache nothing reads": (
        model(
            HEADS + "o = Attention(qt, kt, vt, , m, n) " + BACK,
            "float[b, s, 4, 8] q, float[b, t, 4, 8] k, float[b, t, 4, 8] v, float[b, 4, p, 8] m, "
            "float[b, 4, p, 8] n", "b, s, 4, 8",
        ),
        "the steps before are read",
    ),
    "causal, keys of the steps before": (
        model(
            HEADS + PAST.format("is_causal = 1") + BACK, JOINED.format(s=2, p=3, t=5), "2, 2, 4, 6"
        ),
        "the place of the queries would be another one",
    ),
    "keys that are not moved": (
        model(
            MOVED.format("q") + MOVED.format("v") + "o = Attention(qt, k, vt) " + BACK,
            "float[b, s, 4, 8] q, float[b, 2, t, 8] k, float[b, t, 2, 6] v",
        ),
        "not moved before",
    ),
    "a result that is not moved back": (
        model(HEADS + CALL + "y = Relu(o)", out="b, 4, s, 6"), "not moved back",
    ),
    "a result that is read": (
        model(HEADS + CALL + BACK, outputs=", float[b, 4, s, 6] o"), "not moved back",
    ),
    "unknown heads": (
        model(inputs="float[b, s, h, 8] q, float[b, t, h, 8] k, float[b, t, h, 6] v" + MASK,
            out="b, s, h, 6"),
        "the heads are not known",
    ),
}  # fmt: skip


CACHE = ", float[b, 4, p, 8] pk, float[b, 4, p, 6] pv) =>"
#: name -> (model, reason)
REPEATED = {
    "keys alone": (
        SHARED.replace("BODY", BOTH + "y = Attention(q, rk, v, mask)").replace("2, t, 6]", "4, t, 6]"),
        "a head is not repeated",
    ),
    "another number of heads": (
        SHARED.replace("BODY", BOTH.replace("ev = Expand(uv, spread)", "ev = Expand(uv, triple)")
            + "y = Attention(q, rk, rv, mask)")
        .replace("4, -1", "6, -1").replace("2, t, 8]", "3, t, 8]").replace("[b, 4,", "[b, 12,"),
        "do not have as many heads",
    ),
    "keys gathered in another order": (
        SHARED.replace("BODY", GATHERED.replace("rows)", "turns)", 1)),
        "a head is not repeated",
    ),
    "a cache": (
        SHARED.replace("BODY", BOTH + "y = Attention(q, rk, rv, , pk, pv)").replace(") =>", CACHE),
        "the steps before are read",
    ),
    "keys that are given": (
        SHARED.replace("BODY", BOTH + "y, j, l = Attention(q, rk, rv, , pk, pv)")
        .replace(") =>", CACHE).replace("6] y)", "6] y, float[b, 4, u, 8] j, float[b, 4, u, 6] l)"),
        "the steps before are read",
    ),
    "keys that are given, no cache": (
        SHARED.replace("BODY", BOTH + "y, j, l = Attention(q, rk, rv)")
        .replace("6] y)", "6] y, float[b, 4, t, 8] j, float[b, 4, t, 6] l)"),
        "keys and values are given",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_keeps_repeated_heads(name: str) -> None:
    text, reason = REPEATED[name]
    check_no_match(text, "AttentionSharedHeads", reason, opset=23)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    text, reason = REFUSED[name]
    check_no_match(text, NAME, reason, opset=23)
