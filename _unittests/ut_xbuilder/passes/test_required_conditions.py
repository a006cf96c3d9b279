"""If whose branches give ranks, one of which makes the run fail."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import op_types, optimized, parse, run_onnxruntime

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes import required_conditions as demanded_conditions

#: c tells if the first dimension of x is 1
CONDITION = "d = Shape <start = 0, end = 1> (x) c = Equal(d, one)"
#: rank 2 then 3
BRANCHES = """<then_branch = t () => (float[p, q] t1) { t1 = Squeeze(x, zero) },
 else_branch = e () => (float[p, q, r] e1) { e1 = Identity(x) }>"""
READ = "y = Transpose <perm = [1, 0]> (z)"


def model_of(body: str, outputs: str = "y", rank: int = 3) -> onnx.ModelProto:
    """A model of one input x, and the boolean i."""
    dims = ", ".join("uvwk"[:rank])
    results = ", ".join(f"float[] {name}" for name in outputs.split())
    model = parse(
        f"""g (float[{dims}] x, bool i) => ({results})
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64 two = {{2}}, int64[1] last = {{-1}}>
        {{ {body} }}"""
    )
    bodies = [a.g for n in model.graph.node for a in n.attribute if a.HasField("g")]
    for info in (i for g in (model.graph, *bodies) for i in (*g.output, *g.input)):
        if info.name not in ("x", "i"):
            info.type.tensor_type.ClearField("shape")
    return model


def types(model: onnx.ModelProto, **options) -> list[str]:
    builder = GraphBuilder(
        model, infer_shapes_options=True, optimization_options=OptimizationOptions(**options)
    )
    return op_types(builder.to_onnx())


def check(model: onnx.ModelProto, *shapes: tuple[int, ...]) -> onnx.ModelProto:
    """The same results for some inputs, if the model gives one."""
    got = optimized(model, run=False)
    for shape in shapes:
        for flag in (True, False):
            x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            feeds = {"x": x, "i": np.array(flag)}
            try:
                expected = run_onnxruntime(model, feeds)
            except Exception:
                continue
            found = run_onnxruntime(got, feeds)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    return got


def test_then() -> None:
    model = model_of(f"{CONDITION} z = If(c) {BRANCHES} {READ}")
    got = check(model, (1, 2, 3), (2, 2, 3))
    assert op_types(got) == ["Squeeze", "Transpose"]


def test_else() -> None:
    read = READ.replace("[1, 0]", "[1, 0, 2]")
    got = check(model_of(f"{CONDITION} z = If(c) {BRANCHES} {read}"), (1, 2, 3), (2, 2, 3))
    assert "Squeeze" not in op_types(got) and "If" not in op_types(got)


def test_any_condition() -> None:
    """It does not have to be on a shape."""
    got = check(model_of(f"z = If(i) {BRANCHES} {READ}"), (1, 2, 3))
    assert op_types(got) == ["Squeeze", "Transpose"]


def test_one_result_of_two() -> None:
    body = """z, u = If(i) <then_branch = t () => (float[p, q] t1, float[p] t2)
     { t1 = Squeeze(x, zero) t2 = Identity(x) },
     else_branch = e () => (float[p, q, r] e1, float[p] e2) { e1 = Relu(x) e2 = Neg(x) }>
     y = Relu(z) v = Transpose <perm = [2, 1, 0]> (u) w = Transpose <perm = [1, 0]> (y)"""
    got = check(model_of(body, "y v w"), (1, 2, 3))
    assert sorted(op_types(got)) == ["Relu", "Squeeze", "Transpose", "Transpose"]


def test_the_same_condition() -> None:
    """It is decided for each If that reads it, or reads what is computed likewise."""
    body = f"""{CONDITION} z = If(c) {BRANCHES} {READ}
      d2 = Shape <start = 0, end = 1> (x) c2 = Equal(d2, uno)
      u = If(c2) <then_branch = t () => (float[p] t2) {{ t2 = Neg(x) }},
                  else_branch = e () => (float[p] e2) {{ e2 = Abs(x) }}>
      v = If(c) <then_branch = t () => (float[p] t3) {{ t3 = Exp(x) }},
                 else_branch = e () => (float[p] e3) {{ e3 = Abs(x) }}>"""
    model = model_of(body, "y u v")
    model.graph.initializer.append(from_array(np.array([1]), "uno"))
    got = check(model, (1, 2, 3), (2, 2, 3))
    assert sorted(op_types(got)) == ["Exp", "Neg", "Squeeze", "Transpose"]


def test_conditions_that_differ() -> None:
    """Another constant, another operator, another part of the shape."""
    others = ["Equal(d, two)", "Greater(d, one)", "Equal(d3, one)", "Identity(i)"]
    branches = "<then_branch = t () => (float[p] t{0}) {{ t{0} = Neg(x) }}, "
    branches += "else_branch = e () => (float[p] e{0}) {{ e{0} = Abs(x) }}>"
    more = " ".join(
        f"c{k} = {condition} u{k} = If(c{k}) {branches.format(k + 5)}"
        for k, condition in enumerate(others)
    )
    body = f"{CONDITION} z = If(c) {BRANCHES} {READ} d3 = Shape <start = 1, end = 2> (x) {more}"
    got = check(model_of(body, "y u0 u1 u2 u3"), (1, 2, 3), (2, 2, 3), (1, 1, 1))
    assert op_types(got).count("If") == 4


def test_silero() -> None:
    """Four If of a voice detector: only one way leads to the ranks of LSTM."""
    body = """d = Shape <start = 2, end = 3> (x) c = Equal(d, one)
      z = If(c) <then_branch = t () => (float[p, q] t1) { t1 = Squeeze(x, two1) },
                 else_branch = e () => (float[p, q, r] e1) { e1 = Identity(x) }>
      n = Shape(z) k = Size(n) q = Equal(k, two) f = Not(q)
      a = If(f) <then_branch = t () => (float[p, q, r] t2) { t2 = Unsqueeze(z, one) },
                 else_branch = e () => (float[p, q] e2) { e2 = Identity(z) }>
      h = If(f) <then_branch = t () => (float[p, q, r] t3) { t3 = Unsqueeze(h0, one) },
                 else_branch = e () => (float[p, q] e3) { e3 = Identity(h0) }>
      xs = Unsqueeze(a, zero) hs = Unsqueeze(h, zero)
      s, l = RNN <hidden_size = 4> (xs, weight, recurrence, , , hs)
      o = Squeeze(l, zero)
      y = If(f) <then_branch = t () => (float[p] t4) { t4 = Squeeze(o, zero) },
                 else_branch = e () => (float[p, q] e4) { e4 = Identity(o) }>"""
    model = model_of(body)
    rng = np.random.default_rng(0)
    shapes = {"weight": (1, 4, 3), "recurrence": (1, 4, 4), "h0": (2, 4)}
    model.graph.initializer.extend(
        from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()
    )
    model.graph.initializer.append(from_array(np.array([2]), "two1"))
    got = check(model, (2, 3, 1), (2, 3, 2), (1, 1, 1))
    assert set(op_types(got)) <= {"Squeeze", "Unsqueeze", "RNN"}


def _else_branch(node: str) -> onnx.ModelProto:
    """A model whose else branch runs a node first."""
    return model_of(
        f"""y = If(i) <then_branch = t () => (float[p] t1) {{ t1 = Neg(x) }},
        else_branch = e () => (float[p] e1) {{ e0 = {node} e1 = Abs(e0) }}>"""
    )


FAILING = {
    "a permutation": "Transpose <perm = [1, 0]> (x)",
    "an axis": "Squeeze(x, three)",
    "a new axis": "Unsqueeze(x, four)",
    "a dimension": "Squeeze(w, zero)",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_branch_that_fails(name: str) -> None:
    model = _else_branch(FAILING[name])
    values = {"three": np.array([3]), "four": np.array([4]), "w": np.ones((2, 3), np.float32)}
    model.graph.initializer.extend(from_array(v, k) for k, v in values.items())
    assert types(model) == ["Neg"]


RUNNING = {
    "another axis": "Squeeze(x, zero)",
    "a new axis": "Unsqueeze(x, three)",
    "a permutation": "Transpose <perm = [2, 0, 1]> (x)",
    "another domain": "other.Squeeze(x, three)",
}


@pytest.mark.parametrize("name", RUNNING)
def test_a_branch_that_may_run(name: str) -> None:
    model = _else_branch(RUNNING[name])
    model.graph.initializer.append(from_array(np.array([3]), "three"))
    model.opset_import.append(oh.make_opsetid("other", 1))
    assert "If" in types(model)


KEPT = {
    "nothing demands a rank": f"z = If(i) {BRANCHES} y = Relu(z)",
    "a reader in a branch": f"""z = If(i) {BRANCHES}
      y = If(j) <then_branch = t () => (float[p, q] t2) {{ t2 = Transpose <perm = [1, 0]> (z) }},
                 else_branch = e () => (float[p] e2) {{ e2 = Relu(z) }}>""",
    "a reader in a loop": f"""z = If(i) {BRANCHES}
      y = Loop(n, , x) <body = b (int64 k, bool g, float[p, q, r] v) => (bool g1, float[p, q, r] v1)
      {{ g1 = Identity(g) a = Transpose <perm = [1, 0]> (z) v1 = Add(v, a) }}>""",
    "a reader nothing needs": f"z = If(i) {BRANCHES} u = Transpose <perm = [1, 0]> (z) y = Relu(z)",
    "both branches fail": f"z = If(i) {BRANCHES} y = Transpose <perm = [1, 0, 2, 3]> (z)",
    "the same rank": """z = If(i) <then_branch = t () => (float[p, q, r] t1) { t1 = Neg(x) },
       else_branch = e () => (float[p, q, r] e1) { e1 = Identity(x) }>
       y = Transpose <perm = [1, 0, 2]> (z)""",
    "unknown ranks": """z = If(i) <then_branch = t () => (float[p, q] t1) { t1 = Squeeze(x) },
       else_branch = e () => (float[p, q, r] e1) { e1 = Reshape(x, s) }>
       y = Transpose <perm = [1, 0]> (z)""",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    model = model_of(KEPT[name])
    more = {"j": (TensorProto.BOOL, []), "n": (TensorProto.INT64, []), "s": (7, ["m"])}
    model.graph.input.extend(oh.make_tensor_value_info(n, *row) for n, row in more.items())
    options = {"passes": ["control_flow"]} if name == "a reader nothing needs" else {}
    assert "If" in types(model, **options)


def test_declared_ranks_prove_nothing() -> None:
    """The branches declare ranks nothing proves."""
    model = model_of(
        """z = If(i) <then_branch = t () => (float[p, q] t1) { t1 = Squeeze(x) },
       else_branch = e () => (float[p, q, r] e1) { e1 = Squeeze(x) }>
       y = Transpose <perm = [1, 0]> (z)"""
    )
    model.graph.value_info.append(oh.make_tensor_value_info("z", TensorProto.FLOAT, ["a", "b"]))
    assert "If" in types(model)


def test_another_domain() -> None:
    """An operator of another domain may compute anything."""
    model = model_of(
        f"c = other.Test(x) e = other.Test(x) z = If(c) {BRANCHES} {READ}"
        " u = If(e) <then_branch = t () => (float[p] t2) { t2 = Neg(x) },"
        " else_branch = e () => (float[p] e2) { e2 = Abs(x) }>",
        "y u",
    )
    model.opset_import.append(oh.make_opsetid("other", 1))
    assert types(model).count("If") == 1


def test_random_conditions() -> None:
    """Two of them are not the same."""
    draw = "r{0} = RandomUniform <shape = [1]> () c{0} = Greater(r{0}, half)"
    model = model_of(
        f"{draw.format(1)} {draw.format(2)} z = If(c1) {BRANCHES} {READ}"
        " u = If(c2) <then_branch = t () => (float[p] t2) { t2 = Neg(x) },"
        " else_branch = e () => (float[p] e2) { e2 = Abs(x) }>",
        "y u",
    )
    model.graph.initializer.append(from_array(np.array([0.5], np.float32), "half"))
    assert types(model, patterns="").count("If") == 1


def test_long_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compared up to some nodes, the same name is enough beyond."""
    steps = " ".join(f"a{k + 1} = Not(a{k})" for k in range(5))
    body = f"{CONDITION} a0 = Not(c) {steps} z = If(a5) {BRANCHES} {READ}"
    body += """ b = Not(a4) u = If(b) <then_branch = t () => (float[p] t2) { t2 = Neg(x) },
      else_branch = e () => (float[p] e2) { e2 = Abs(x) }>"""
    model = model_of(body, "y u")
    assert types(model, patterns=None).count("If") == 0
    monkeypatch.setattr(demanded_conditions, "_MAX_NODES", 0)
    graph = GraphBuilder(model, infer_shapes_options=True).graph
    found = demanded_conditions.DecidedConditions(graph, graph.store.nodes)
    first, second = (r for r in graph.store.nodes if r.op_type == "If")
    assert found.condition(first) == 1 and found.condition(second) is None


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Some If, whose results go through operators that change their rank, or demand one."""
    rows, last = [], "x"
    for k in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 2))
        rows.append(
            f"n{k} = Shape({last}) k{k} = Size(n{k}) m{k} = Constant <value_int = {size + 1}> ()"
        )
        rows.append(f"s{k} = Equal(k{k}, m{k})")
        condition = draw(st.sampled_from([f"s{k}", "i", "s0"]))
        steps = ["Identity({0})", "Squeeze({0}, zero)", "Unsqueeze({0}, zero)", "Neg({0})"]
        a, b = (draw(st.sampled_from(steps)).format(last) for _ in range(2))
        rows.append(
            f"z{k} = If({condition}) <then_branch = t{k} () => (float[p] a{k}) {{ a{k} = {a} }},"
            f" else_branch = e{k} () => (float[p] b{k}) {{ b{k} = {b} }}>"
        )
        last = f"z{k}"
        more = ["Relu({0})", "Unsqueeze({0}, last)", "Transpose <perm = [1, 0]> ({0})"]
        more += ["Transpose <perm = [2, 1, 0]> ({0})", "Transpose({0})", "Squeeze({0}, zero)"]
        for j in range(draw(st.integers(0, 2))):
            rows.append(f"w{k}_{j} = {draw(st.sampled_from(more)).format(last)}")
            if draw(st.booleans()):
                last = f"w{k}_{j}"
    outputs = draw(st.sampled_from([last, f"z0 {last}" if last != "z0" else "z0"]))
    return model_of(" ".join(rows), outputs, draw(st.integers(1, 3)))


def check_any(model: onnx.ModelProto) -> None:
    """A run that does not fail gives the same results."""
    rank = len(model.graph.input[0].type.tensor_type.shape.dim)
    check(model, (1,) * rank, (1, 2, 3)[:rank], (2, 1, 3)[:rank])


@settings(max_examples=60, deadline=None)
@given(models())
def test_any(model: onnx.ModelProto) -> None:
    check_any(model)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(models())
def test_many(model: onnx.ModelProto) -> None:
    check_any(model)
