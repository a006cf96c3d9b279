"""Dimensions a Reshape requires not to be 0: runtimes refuse them, nothing else counts."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.dims import prove_ge
from xbuilder.inference.required_sizes import note_required_sizes

#: a target made of the dimensions of the inputs and of integers
BODY = """(float[b, s, 12] x, float[c, d] z) => (float[R] y) <
    int64[1] zero = {{0}}, int64[1] none = {{-1}}, int64[1] four = {{4}}, int64[1] twelve = {{12}}> {{
    b = Shape<start: int = 0, end: int = 1>(x)
    s = Shape<start: int = 1, end: int = 2>(x)
    d = Shape<start: int = 1, end: int = 2>(z)
    both = Mul(b, s)
    sum = Add(s, d)
    column = Unsqueeze(z, none)
    flat = Reshape(x, none)
    t = Concat<axis: int = 0>({target})
    y = Reshape{options}({data}, t)
}}"""


def model(target: str, data: str = "x", options: str = "", rank: int = 4, opset: int = 18):
    text = BODY.format(target=target, data=data, options=options)
    text = text.replace("float[R]", f"float[{', '.join(f'r{i}' for i in range(rank))}]")
    return parse(f"g {text}", opset)


def bounds(proto) -> dict[str, int]:
    return dict(GraphBuilder(proto).constraints.lower_bounds())


def runs(proto, **sizes: int) -> bool:
    """Whether both runtimes run a model; they agree."""
    found = {"b": 2, "s": 3, "c": 2, "d": 5} | sizes
    feeds = {
        "x": np.zeros((found["b"], found["s"], 12), np.float32),
        "z": np.zeros((found["c"], found["d"]), np.float32),
    }
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    answers = []
    for run in (session.run, ReferenceEvaluator(proto).run):
        try:
            run(None, feeds)
            answers.append(True)
        except Exception:
            answers.append(False)
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize(
    ("target", "data", "rank", "expected"),
    [
        ("b, s, none, four", "x", 4, {"b": 1, "s": 1}),  # kept dimensions beside -1
        ("zero, zero, none, four", "x", 4, {"b": 1, "s": 1}),  # copied
        ("zero, none, four", "x", 3, {"b": 1}),
        ("none, s, twelve", "x", 3, {"s": 1}),
        ("b, four, twelve, d", "x", 4, {"d": 1}),  # no dimension to copy
        ("four, twelve, both", "flat", 3, {"b": 1, "s": 1}),
        ("four, none, both", "flat", 3, {"b": 1, "s": 1}),
        ("four, none, sum", "flat", 3, {"d+s": 1}),
    ],
)
@pytest.mark.parametrize("opset", [15, 18])
def test_required(target: str, data: str, rank: int, expected: dict[str, int], opset: int) -> None:
    proto = model(target, data, rank=rank, opset=opset)
    assert bounds(proto) == expected
    for names in expected:
        sizes = dict.fromkeys(names.split("+"), 0)
        assert not runs(proto, **sizes)


@pytest.mark.parametrize(
    ("target", "data", "rank", "empty"),
    [
        ("both, none", "x", 2, "s"),  # 0 copies another dimension, -1 is 0
        ("b, s, four, four", "x", 4, "s"),  # no -1
        ("none, four", "x", 2, "s"),
        ("d, none", "x", 2, "d"),  # a 0 copies the batch
    ],
)
def test_not_required(target: str, data: str, rank: int, empty: str) -> None:
    proto = model(target, data, rank=rank)
    assert bounds(proto) == {}
    if target != "b, s, four, four":
        assert runs(proto, **{empty: 0})


def test_allowzero_requires_nothing() -> None:
    # the specification refuses 0 beside -1, onnxruntime does not if the target is not constant
    proto = model("b, s, none, four", options="<allowzero: int = 1>")
    assert bounds(proto) == {}
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    empty = np.zeros((2, 0, 12), np.float32)
    (found,) = session.run(None, {"x": empty, "z": np.zeros((1, 1), np.float32)})
    assert found.shape == (2, 0, 3, 4)


def test_a_rank_that_is_not_known() -> None:
    proto = model("b, s, none, four")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert bounds(proto) == {}


def test_a_node_that_may_not_run() -> None:
    dead = parse("""g (float[b, s, 12] x) => (float[b, s, 12] y) <int64[4] t = {0, 0, -1, 4}> {
        r = Reshape(x, t)
        y = Identity(x)
    }""")
    assert bounds(dead) == {}
    body = parse("""g (float[b, s, 12] x, bool c) => (float[i, j, k, l] y) <
        int64[4] t = {0, 0, -1, 4}, int64[1] a = {3}> {
        y = If (c) <
            then_branch = yes () => (float[i, j, k, l] p) { p = Reshape(x, t) },
            else_branch = no () => (float[i, j, k, l] q) { q = Unsqueeze(x, a) }>
    }""")
    assert bounds(body) == {}


def test_a_built_graph() -> None:
    g = GraphBuilder(18)
    g.make_tensor_input("x", 1, ("b", "s", 12))
    g.op.Reshape("x", np.array([0, 0, -1, 4]), outputs=["y"])
    g.make_tensor_output("y", 1, None)
    assert note_required_sizes(g.graph) is True
    assert note_required_sizes(g.graph) is False
    assert prove_ge("b", 1, g.constraints) is True


def test_the_fact_stays_when_the_node_is_rewritten() -> None:
    # both Reshape become one, that does not fail, the dimension is still positive
    proto = parse("""g (float[b, s, 12] x) => (float[b, s, 12] y) <
        int64[4] t = {0, 0, -1, 4}, int64[3] u = {0, 0, 12}> {
        r = Reshape(x, t)
        y = Reshape(r, u)
    }""")
    builder = GraphBuilder(proto)
    out = builder.to_onnx()
    assert [n.op_type for n in out.graph.node] == ["Identity"]
    assert prove_ge("s", 1, builder.constraints) is True
