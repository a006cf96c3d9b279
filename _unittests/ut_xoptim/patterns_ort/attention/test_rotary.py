"""RotaryEmbedding of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_no_match, check_pattern, model_from_text, rewrite_tests

ANGLES = "a = Mul(p, f) aa = Concat<axis = -1>(a, a) c0 = Cos(aa) s0 = Sin(aa) "
TABLES = ANGLES + "c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) "
BODY = (
    TABLES + "u, v = Split<axis = -1>(X, halves) n = Neg(v) t = Concat<axis = -1>(n, u) "
    "l = Mul(X, c) r = Mul(t, s) Y = Add(l, r)"
)
#: the same of the result: the tables serve twice
TWICE = (
    BODY.replace("Y =", "Z =") + " h, k = Split<axis = -1>(Z, halves) w = Neg(k) "
    "o = Concat<axis = -1>(w, h) i = Mul(Z, c) j = Mul(o, s) Y = Add(i, j)"
)
PREPARED = "FunctionHalfRotaryEmbedding,FunctionCosSinCache,"


def rotary(body: str = BODY, x: str = "b, 2, q, 4", p: str = "1, q, 1", kind: str = "float") -> str:
    """A rotary embedding, positions and frequencies are inputs."""
    return f"""agraph ({kind}[{x}] X, {kind}[{p}] p, {kind}[2] f) => ({kind}[{x}] Y) <
    int64[1] one = {{1}}, int64[2] halves = {{2, 2}}, int64[2] parts = {{4, 2}},
    int64[2] both = {{0, 1}}, int64[1] zero = {{0}}
> {{
    {body}
}}"""


WRITTEN = (
    "a = Mul(p, f) c0 = Cos(a) c1 = Unsqueeze(c0, one) c = Squeeze(c1, both) "
    "s0 = Sin(a) s1 = Unsqueeze(s0, one) s = Squeeze(s1, both) "
    "Y = com.microsoft.RotaryEmbedding(X, zero, c, s)"
)
MOVED = """agraph (float[b, q, 2, 4] X, float[q, 2] c, float[q, 2] s) => (float[b, q, 2, 4] Y) <
    int64[1] zero = {0}, int64[3] flat = {0, 0, 8}, int64[4] heads = {0, 0, 2, 4}
> {
    BODY
}"""
BETWEEN = (
    "t = Transpose<perm = [0, 2, 1, 3]>(X) r = com.microsoft.RotaryEmbedding(t, zero, c, s) "
    "Y = Transpose<perm = [0, 2, 1, 3]>(r)"
)
#: what the documentation draws: name -> (before, after)
MODELS = {
    "ContribRotaryEmbedding": (rotary(), rotary(WRITTEN)),
    "ContribRotaryEmbedding3D": (
        MOVED.replace("BODY", BETWEEN),
        MOVED.replace(
            "BODY",
            "t = Reshape(X, flat) r = com.microsoft.RotaryEmbedding<num_heads = 2>(t, zero, c, s) "
            "Y = Reshape(r, heads)",
        ),
    ),
}


def test_operator() -> None:
    before, after = MODELS["ContribRotaryEmbedding"]
    check_pattern(before, after, PREPARED + "ContribRotaryEmbedding", atol=1e-5)


test_rewrites = rewrite_tests({"ContribRotaryEmbedding3D": MODELS["ContribRotaryEmbedding3D"]})


@pytest.mark.parametrize("sizes", [{"b": 0, "q": 3}, {"b": 2, "q": 0}, {"b": 3, "q": 70}])
def test_sizes(sizes: dict[str, int]) -> None:
    model = check_pattern(
        rotary(), None, PREPARED + "ContribRotaryEmbedding", sizes=sizes, atol=1e-4
    )
    assert "RotaryEmbedding" in {n.op_type for n in model.graph.node}


def test_a_part_of_the_heads() -> None:
    inner = BODY.replace("X", "X4").replace(TABLES, "").replace("Y =", "Y4 =")
    body = f"{TABLES} X4, X2 = Split<axis = 3>(X, parts) {inner} Y = Concat<axis = 3>(Y4, X2)"
    model = check_pattern(
        rotary(body, "b, 2, q, 6"), None, PREPARED + "ContribRotaryEmbedding", atol=1e-5
    )
    assert not {"Concat", "Split", "Neg"} & {n.op_type for n in model.graph.node}


@pytest.mark.parametrize("p", ["q, 1", "1, q, 1"])
def test_tables_of_less_dimensions(p: str) -> None:
    body = BODY.replace("(X, c)", "(X, c0)").replace("(t, s)", "(t, s0)")
    body = body.replace("c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) ", "")
    model = check_pattern(rotary(body, p=p), None, PREPARED + "ContribRotaryEmbedding", atol=1e-5)
    assert not {"Neg", "Add"} & {n.op_type for n in model.graph.node}


def test_a_cosine_without_dimension() -> None:
    """One position, two elements: the cosine is a number."""
    text = """g (float[b, 3, 1, 2] X, float c, float s) => (float[b, 3, 1, 2] Y)
    <int64[2] halves = {1, 1}> { u, v = Split<axis = -1>(X, halves) n = Neg(v)
    t = Concat<axis = -1>(n, u) l = Mul(X, c) r = Mul(t, s) Y = Add(l, r) }"""
    model = check_pattern(text, None, PREPARED + "ContribRotaryEmbedding", atol=1e-5)
    assert not {"Neg", "Add"} & {n.op_type for n in model.graph.node}


@pytest.mark.parametrize("p", ["b, q, 1", "2, 1, 1"])
def test_tables_of_other_dimensions(p: str) -> None:
    """Three dimensions: the first one is the one of the heads, it is not 1; one position."""
    body = BODY.replace("(X, c)", "(X, c0)").replace("(t, s)", "(t, s0)")
    body = body.replace("c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) ", "")
    model = model_from_text(rotary(body, p=p).replace("4] Y", "n] Y"))
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, PREPARED + "ContribRotaryEmbedding").optimize()
    assert "RotaryEmbedding" not in {n.op_type for n in builder.graph.nodes}


def test_float16() -> None:
    text = rotary(kind="float16")
    model = check_pattern(text, None, PREPARED + "ContribRotaryEmbedding", atol=4e-3, rtol=4e-3)
    assert "RotaryEmbedding" in {n.op_type for n in model.graph.node}


@pytest.mark.parametrize("size", [(2, 3), (1, 1), (3, 70), (0, 3), (2, 0)])
@pytest.mark.parametrize("later", [True, False])
def test_positions_of_each_sequence(later: bool, size: tuple[int, int]) -> None:
    body = TWICE
    if later:
        body = body.replace("c0, one)", "c0, two)").replace("s0, one)", "s0, two)")
    text = rotary(body, "b, q, 2, 4" if later else "b, 2, q, 4", "b, q, 1")
    text = text.replace("zero = {0}", "zero = {0}, int64[1] two = {2}")
    found = check_pattern(
        text, None, PREPARED + "ContribRotaryEmbedding",
        sizes={"b": size[0], "q": size[1]}, atol=1e-4, rtol=1e-5,
    )  # fmt: skip
    assert not {"Neg", "Add"} & {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("length", [0, 3])
def test_positions_of_two_sequences(length: int) -> None:
    """There is a sequence, nothing comes after the tables."""
    text = rotary(TWICE, x="2, 2, q, 4", p="2, q, 1")
    found = check_pattern(
        text, None, PREPARED + "ContribRotaryEmbedding", sizes={"q": length}, atol=1e-4
    )
    names = {n.op_type for n in found.graph.node}
    assert "RotaryEmbedding" in names and "Pad" not in names


def test_positions_of_each_sequence_opset() -> None:
    model = model_from_text(rotary(TWICE, p="b, q, 1"), 14)
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, PREPARED + "ContribRotaryEmbedding").optimize()
    assert "RotaryEmbedding" not in {n.op_type for n in builder.graph.nodes}


def test_positions_of_known_sizes() -> None:
    """The positions are a constant, one embedding is enough."""
    text = rotary(x="2, 2, 3, 4", p="2, 3, 1")
    found = check_pattern(text, None, PREPARED + "ContribRotaryEmbedding", atol=1e-4)
    assert "RotaryEmbedding" in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize(
    ("x", "p", "kind"),
    [
        ("b, 2, q, 4", "d, q, 1", "float"),
        ("b, 2, q, 4", "1, q, 1", "double"),
        ("b, 2, q, 4", "b, q, 1", "float"),
        ("2, 2, q, 4", "2, q, 1", "float"),
    ],
)
def test_stays(x: str, p: str, kind: str) -> None:
    """As many positions as nobody knows, a type without kernel, positions of one embedding: the
    nodes are put back."""
    model = model_from_text(rotary(x=x, p=p, kind=kind))
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, PREPARED + "ContribRotaryEmbedding").optimize()
    found = sorted(n.op_type for n in builder.graph.nodes)
    assert found == sorted(n.op_type for n in model.graph.node)


#: name -> (body, reason)
MOVES = {
    "not moved before": (BETWEEN.replace("[0, 2, 1, 3]>(X)", "[2, 0, 1, 3]>(X)"), "before"),
    "not moved back": (BETWEEN.replace("[0, 2, 1, 3]>(r)", "[2, 0, 1, 3]>(r)"), "back"),
    "read elsewhere": (
        BETWEEN.replace("Y =", "Y0 =") + " w = Transpose<perm = [0, 2, 1, 3]>(t) Y = Add(Y0, w)",
        "used elsewhere",
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_refuses_to_move(name: str) -> None:
    body, reason = MOVES[name]
    check_no_match(
        MOVED.replace("BODY", body).replace("[b, q, 2, 4] Y", "[i, j, k, l] Y"),
        "ContribRotaryEmbedding3D",
        reason,
    )


def test_positions_start_at_zero() -> None:
    """Row i of the tables is position i."""
    feeds = {
        "X": np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4),
        "p": np.array([5, 1, 7], dtype=np.float32).reshape(1, 3, 1),
        "f": np.array([1, 0.1], dtype=np.float32),
    }
    check_pattern(rotary(), None, PREPARED + "ContribRotaryEmbedding", feeds=[feeds], atol=1e-5)
