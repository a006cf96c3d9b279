"""Attention of sequences whose first dimension is the position."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_ort.cuda_reference import check

from xbuilder import GraphBuilder
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text

RNG = np.random.RandomState(0)
PATTERNS = "FunctionAttention,DecoderAttention"


def _numbers(*dims: int) -> str:
    return ", ".join(f"{v:.3f}" for v in RNG.randn(int(np.prod(dims))) / 2)


QKV, SHIFTS = _numbers(8, 24), _numbers(24)


def columns(first: int, last: int, text: str = QKV) -> str:
    """Some columns of the weights."""
    rows = np.array(text.split(", ")).reshape(-1, 24)[:, first:last]
    return ", ".join(rows.ravel())


def constants(**ends: tuple[int, int]) -> str:
    """Weights and biases by letter: the columns each of them has."""
    found = []
    for name, (first, last) in ends.items():
        found.append(f"float[8, {last - first}] W{name} = {{{columns(first, last)}}}")
        found.append(f"float[{last - first}] B{name} = {{{columns(first, last, SHIFTS)}}}")
    return ", ".join(found)


LINEAR = "m{0} = MatMul({1}, W{0}) a{0} = Add(m{0}, B{0}) "
SHAPES = (
    "bx = Shape<start = 1, end = 2>(X) sx = Shape<start = 0, end = 1>(X) "
    "sy = Shape<start = 0, end = 1>({0}) n = Mul(bx, heads) "
)
HEADS = (
    "c{0} = Concat<axis = 0>({2}, n, length) r{0} = Reshape({1}, c{0}) "
    "t{0} = Transpose<perm = [1, 0, 2]>(r{0}) d{0} = Concat<axis = 0>(bx, heads, {2}, length) "
    "h{0} = Reshape(t{0}, d{0}) "
)
ATTEND = (
    "kt = Transpose<perm = [0, 1, 3, 2]>(hk) s0 = MatMul(hq, kt) s = Mul(s0, scale) "
    "w = Softmax<axis = -1>(s) o = MatMul(w, hv) p = Transpose<perm = [2, 0, 1, 3]>(o) "
    "y = Reshape(p, rows)"
)
ONE = LINEAR.format("x", "X") + "q, k, v = Split<axis = -1>(ax, thirds) "
TWO = LINEAR.format("q", "X") + LINEAR.format("x", "Y") + "k, v = Split<axis = -1>(ax, halves) "
THREE = LINEAR.format("q", "X") + LINEAR.format("k", "Y") + LINEAR.format("v", "Y")


def body(products: str, key: str = "X", names: str = "q k v") -> str:
    """Products, the layout of their heads, attention."""
    q, k, v = names.split()
    steps = [HEADS.format("q", q, "sx"), HEADS.format("k", k, "sy"), HEADS.format("v", v, "sy")]
    return products + SHAPES.format(key) + "".join(steps) + ATTEND


def model(text: str, weights: str, inputs: str = "", more: str = "", x: str = "s, b, 8") -> str:
    """Sequences, constants."""
    return f"""g (float[{x}] X{inputs}) => (float[{x}] y) <{weights}, int64[1] heads = {{2}},
        int64[1] length = {{4}}, int64[3] thirds = {{8, 8, 8}}, int64[2] halves = {{8, 8}},
        float scale = {{0.5}}, int64[3] rows = {{0, 0, 8}}{more}> {{ {text} }}"""


def written(
    weights: str, key: str, bias: str, inputs: str = "", q: str = "q", kv: str = "kv"
) -> str:
    """The operator."""
    cross = int(key == "Y")
    flags = f"bool[1] yes = {{{cross}}}, bool[1] no = {{0}}, float[24] bias = {{{bias}}}"
    text = (
        f"o = com.microsoft.DecoderAttention<num_heads = 2>(X, {key}, W{q}, W{kv}, bias, , , , yes,"
        " no, no, no) p = Reshape(o, split) y = Reshape(p, rows)"
    )
    return model(text, f"{weights}, {flags}", inputs, ", int64[4] split = {0, 0, 2, 4}")


OTHER = ", float[t, b, 8] Y"
SELF = (
    model(body(ONE), constants(x=(0, 24))),
    written(constants(q=(0, 8), kv=(8, 24)), "X", SHIFTS),
)
CROSS = (
    model(body(TWO, "Y"), constants(q=(0, 8), x=(8, 24)), OTHER),
    written(constants(q=(0, 8), kv=(8, 24)), "Y", SHIFTS, OTHER),
)
SEPARATE = (
    model(body(THREE, "Y", "aq ak av"), constants(q=(0, 8), k=(8, 16), v=(16, 24)), OTHER),
    CROSS[1],
)
CROSS = (CROSS[0].replace("Reshape(q, cq)", "Reshape(aq, cq)"), CROSS[1])
#: what the documentation draws: name -> (before, after)
MODELS = {"DecoderAttention": SELF}
SIZES = ({"s": 3, "b": 2, "t": 5}, {"s": 1, "b": 1, "t": 1})


@pytest.mark.parametrize("pair", [SELF, CROSS, SEPARATE])
def test_attention(pair: tuple[str, str]) -> None:
    check(*pair, PATTERNS, SIZES)


def test_biases_first() -> None:
    text = body(ONE.replace("Add(mx, Bx)", "Add(Bx, mx)"))
    check(model(text, constants(x=(0, 24))), SELF[1], PATTERNS, SIZES)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([SELF, CROSS, SEPARATE]),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_any_size(pair: tuple[str, str], batch: int, steps: int, total: int) -> None:
    check(*pair, PATTERNS, [{"s": steps, "b": batch, "t": total}])


ALL, WEIGHTS = body(ONE), constants(x=(0, 24))
#: name -> (model, reason)
REFUSED = {
    "another scale": (model(ALL, WEIGHTS).replace("{0.5}", "{0.25}"), "another scale"),
    "a mask": (
        model(ALL.replace("s = Mul(s0, scale)", "s1 = Mul(s0, scale) s = Add(s1, M)"), WEIGHTS, ", float[b, 2, s, s] M"),
        "does not add a mask",
    ),
    "zeros instead of NaN": (
        model(ALL.replace("w = Softmax<axis = -1>(s)", "w0 = Softmax<axis = -1>(s) i = IsNaN(w0) w = Where(i, none, w0)"),
              WEIGHTS, more=", float none = {0}"),
        "does not add a mask",
    ),
    "no bias": (
        model(ALL.replace("a{0} = Add(m{0}, B{0})", "").replace("ax = Add(mx, Bx)", "ax = Neg(mx)"), WEIGHTS),
        "no Add before",
    ),
    "a bias that is not constant": (
        model(ALL, WEIGHTS.split(", float[24]")[0], ", float[24] Bx"), "the bias is not constant",
    ),
    "a weight that is not constant": (
        model(ALL, "float[24]" + WEIGHTS.split(", float[24]")[1], ", float[8, 24] Wx"),
        "the weight is not constant",
    ),
    "columns in another order": (
        model(ALL.replace("q, k, v =", "v, k, q ="), WEIGHTS), "in another order",
    ),
    "values of another sequence": (
        model(body(THREE.replace("MatMul(Y, Wv)", "MatMul(Z, Wv)"), "Y", "aq ak av"),
              constants(q=(0, 8), k=(8, 16), v=(16, 24)), OTHER + ", float[t, b, 8] Z"),
        "not those of one sequence",
    ),
    "the batch comes first": (
        model(ALL.replace("Transpose<perm = [2, 0, 1, 3]>", "Transpose<perm = [0, 2, 1, 3]>"), WEIGHTS),
        "the result is not moved back",
    ),
    "the heads are moved in another way": (
        model(ALL.replace("tq = Transpose<perm = [1, 0, 2]>(rq)", "tq = Identity(rq)"), WEIGHTS),
        "the sequence is not moved",
    ),
    "the product is used": (
        model(ALL, WEIGHTS).replace("] y)", "] y, float[s, b, 24] ax)"), "used elsewhere",
    ),
    "parts along another axis": (
        model(
            ALL.replace("Split<axis = -1>", "Split<axis = 0>").replace("end = 1>(X)", "end = 1>(q)"),
            constants(x=(0, 8)), x="24, b, 8",
        ).replace("[24, b, 8] y", "[8, b, 8] y"),
        "not split along its columns",
    ),
    "a part nothing reads": (
        model(
            ALL.replace("q, k, v = Split", "q, k, v, r = Split"),
            f"float[8, 28] Wx = {{{_numbers(8, 28)}}}, float[28] Bx = {{{_numbers(28)}}}",
        ).replace("{8, 8, 8}", "{8, 8, 8, 4}").replace("int64[3] thirds", "int64[4] thirds"),
        "the parts do not have the same length",
    ),
    "longer values": (
        model(
            body(THREE, "Y", "aq ak av").replace(
                "cv = Concat<axis = 0>(sy, n, length)", "cv = Concat<axis = 0>(sy, n, long)").replace(
                "dv = Concat<axis = 0>(bx, heads, sy, length)", "dv = Concat<axis = 0>(bx, heads, sy, long)"),
            constants(q=(0, 8), k=(8, 16), v=(12, 24)), OTHER, ", int64[1] long = {6}",
        ).replace("{0, 0, 8}", "{0, 0, 12}").replace("[s, b, 8] y", "[s, b, 12] y"),
        "the heads do not have the same length",
    ),
    "keys moved by one Transpose": (
        model(
            ALL.replace("kt = Transpose<perm = [0, 1, 3, 2]>(hk)",
                        "hm = Transpose<perm = [0, 2, 1, 3]>(hk) kt = Transpose<perm = [0, 2, 3, 1]>(hm)"),
            WEIGHTS,
        ),
        "the heads are not those of a sequence",
    ),
    "heads of other sequences": (
        model(
            re.sub(r"Concat<axis = 0>\(bx, heads,", "Concat<axis = 0>(heads, bx,", ALL), WEIGHTS, x="s, 3, 8",
        ).replace("{0, 0, 8}", "{0, 0, 12}").replace("[s, 3, 8] y", "[s, 2, 12] y"),
        "not those of each element",
    ),
    "shorter elements": (
        model(ALL, f"float[6, 24] Wx = {{{_numbers(6, 24)}}}, {WEIGHTS.split('}, ', 1)[1]}", x="s, b, 6")
        .replace("[s, b, 6] y", "[s, b, 8] y"),
        "the weight is not the one of the heads",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    """The reason; the graph is put back."""
    text, reason = REFUSED[name]
    reasons: list[str] = []
    pattern = get_pattern("DecoderAttention")
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    engine = GraphBuilderPatternOptimization(
        builder, [get_pattern("FunctionAttention"), pattern], processor="CUDA"
    )
    engine.optimize()
    assert any(part in told for part in reason.split("|") for told in reasons), reasons
    found = {n.op_type for n in builder.graph.nodes}
    assert "Softmax" in found and not {"DecoderAttention", "LocalAttention"} & found


def test_on_cpu() -> None:
    reasons: list[str] = []
    pattern = get_pattern("DecoderAttention")
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(model_from_text(SELF[0]), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [get_pattern("FunctionAttention"), pattern]).optimize()
    assert set(reasons) == {"onnxruntime has no DecoderAttention for this type"}
