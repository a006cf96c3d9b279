"""Nodes computing the same thing: which ones are merged, how much it costs."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from call_counts import count_calls

from xbuilder import GraphBuilder
from xoptim import MatchResult
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.patterns.whole_graph.common_subexpressions import (
    SameChildrenPattern,
)
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

F = "g (float[a, b] x) => (float[a, b] y)"
TWO = "g (float[a, b] x) => (float[a, b] y, float[a, b] z)"

MODELS = {
    "SameChildren": {
        "two consumers": (
            f"{F} {{ r = Abs(x) s = Exp(r) t = Exp(r) y = Add(s, t) }}",
            f"{F} {{ r = Abs(x) s = Exp(r) y = Add(s, s) }}",
        ),
        "three consumers": (
            f"{F} {{ r = Abs(x) s = Exp(r) t = Exp(r) u = Exp(r) v = Add(s, t) y = Mul(u, v) }}",
            f"{F} {{ r = Abs(x) s = Exp(r) v = Add(s, s) y = Mul(s, v) }}",
        ),
        "two groups": (
            f"{F} {{ r = Abs(x) s = Exp(r) t = Neg(r) u = Exp(r) v = Neg(r)"
            "  w = Add(s, t) k = Add(u, v) y = Sub(w, k) }",
            f"{F} {{ r = Abs(x) s = Exp(r) t = Neg(r) w = Add(s, t) y = Sub(w, w) }}",
        ),
        "chains": (
            f"{F} {{ r = Abs(x) s = Exp(r) t = Exp(r) u = Neg(s) v = Neg(t) w = Abs(u) k = Abs(v)"
            "  y = Add(w, k) }",
            f"{F} {{ r = Abs(x) s = Exp(r) u = Neg(s) w = Abs(u) y = Add(w, w) }}",
        ),
        "chains that meet": (
            f"{F} {{ r = Abs(x) s = Exp(r) t = Exp(r) m = Neg(s) u = Add(s, m) v = Add(t, m)"
            "  y = Add(u, v) }",
            f"{F} {{ r = Abs(x) s = Exp(r) m = Neg(s) u = Add(s, m) y = Add(u, u) }}",
        ),
        "swapped operands": (
            "g (float[a] x, float[a] k) => (float[a] y)"
            "{ r = Abs(x) q = Neg(k) s = Add(r, q) t = Add(q, r) y = Sub(s, t) }",
            "g (float[a] x, float[a] k) => (float[a] y)"
            "{ r = Abs(x) q = Neg(k) s = Add(r, q) y = Sub(s, s) }",
        ),
        "same attributes in another order": (
            f"{F} {{ r = Abs(x) s = Gemm<alpha=2.0, transB=1>(r, r) t = Gemm<transB=1,"
            f" alpha=2.0>(r, r)"
            "  k = Sub(s, t) y = MatMul(k, x) }",
            f"{F} {{ r = Abs(x) s = Gemm<alpha=2.0, transB=1>(r, r) k = Sub(s, s) y ="
            f" MatMul(k, x) }}",
        ),
        "an attribute with its default value": (
            "g (float[a, a] x) => (float[a, a] y) { r = Abs(x) s = Transpose(r)"
            "  t = Transpose<perm=[1, 0]>(r) u = Softmax(s) v = Softmax<axis=-1>(t) y = Sub(u, v) }",
            "g (float[a, a] x) => (float[a, a] y) { r = Abs(x) s = Transpose(r)"
            "  u = Softmax(s) y = Sub(u, u) }",
        ),
        "two outputs of the graph": (
            f"{TWO} {{ r = Abs(x) y = Exp(r) z = Exp(r) }}",
            f"{TWO} {{ r = Abs(x) y = Exp(r) z = Identity(y) }}",
        ),
        "chains whose ends are outputs": (
            f"{TWO} {{ r = Abs(x) s = Exp(r) t = Exp(r) y = Neg(s) z = Neg(t) }}",
            f"{TWO} {{ r = Abs(x) s = Exp(r) y = Neg(s) z = Identity(y) }}",
        ),
        "several results": (
            "g (float[a, 4] x) => (float[a, 2] y) { r = Abs(x)"
            "  s1, s2 = Split<axis=1, num_outputs=2>(r) t1, t2 = Split<axis=1, num_outputs=2>(r)"
            "  u = Sub(s1, t2) v = Sub(t1, s2) y = Sub(u, v) }",
            "g (float[a, 4] x) => (float[a, 2] y) { r = Abs(x)"
            "  s1, s2 = Split<axis=1, num_outputs=2>(r) u = Sub(s1, s2) y = Sub(u, u) }",
        ),
        "inference dropout": (
            f"{F} {{ r = Abs(x) s = Dropout(r) t = Dropout(r) y = Sub(s, t) }}",
            f"{F} {{ r = Abs(x) s = Dropout(r) y = Sub(s, s) }}",
        ),
        "a result captured by a subgraph": (
            "g (float[a] x, bool c) => (float[a] y) { r = Abs(x) s = Exp(r) t = Exp(r) k = If(c) <"
            "  then_branch = g1 () => (float[a] o1) { o1 = Neg(t) },"
            "  else_branch = g2 () => (float[a] o2) { o2 = Abs(t) } > y = Add(s, k) }",
            "g (float[a] x, bool c) => (float[a] y) { r = Abs(x) s = Exp(r) k = If(c) <"
            "  then_branch = g1 () => (float[a] o1) { o1 = Neg(s) },"
            "  else_branch = g2 () => (float[a] o2) { o2 = Abs(s) } > y = Add(s, k) }",
        ),
    },
    "SameChildrenFromInput": {
        "one input": (
            f"{F} {{ s = Exp(x) t = Exp(x) y = Add(s, t) }}",
            f"{F} {{ s = Exp(x) y = Add(s, s) }}",
        ),
        "the first consumer is alone": (
            f"{F} {{ q = Neg(x) s = Exp(x) t = Exp(x) u = Add(s, t) y = Add(q, u) }}",
            f"{F} {{ q = Neg(x) s = Exp(x) u = Add(s, s) y = Add(q, u) }}",
        ),
        "an initializer that is an input": (
            "g (float[2] x, float[2] c) => (float[2] y) <float[2] c = {1, 2}>"
            "{ s = Exp(c) t = Exp(c) u = Mul(s, t) y = Add(u, x) }",
            "g (float[2] x, float[2] c) => (float[2] y) <float[2] c = {1, 2}>"
            "{ s = Exp(c) u = Mul(s, s) y = Add(u, x) }",
        ),
        "chains": (
            f"{F} {{ s = Exp(x) t = Exp(x) u = Neg(s) v = Neg(t) y = Add(u, v) }}",
            f"{F} {{ s = Exp(x) u = Neg(s) y = Add(u, u) }}",
        ),
    },
    "ShapeBasedSameChildren": {
        "reshape": (
            "g (float[a, 6] x) => (float[a, 2, 3] y) <int64[3] s = {0, 2, 3}, int64[3] t ="
            " {-1, 2, 3}>"
            "{ u = Reshape(x, s) v = Reshape(x, t) y = Add(u, v) }",
            "g (float[a, 6] x) => (float[a, 2, 3] y) <int64[3] s = {0, 2, 3}>"
            "{ u = Reshape(x, s) y = Add(u, u) }",
        ),
        "expand": (
            "g (float[a, 1] x) => (float[a, 3] y) <int64[2] s = {1, 3}, int64[1] t = {3}>"
            "{ k = Neg(x) u = Expand(x, s) v = Expand(x, t) w = Add(u, k) y = Add(v, w) }",
            "g (float[a, 1] x) => (float[a, 3] y) <int64[2] s = {1, 3}>"
            "{ k = Neg(x) u = Expand(x, s) w = Add(u, k) y = Add(u, w) }",
        ),
        "a constant": (
            "g (float[3] x, float[b, 3] z) => (float[b, 3] y) <float[3] c = {1, 2, 3}>"
            "{ p = Shape(z) q = Shape<end = 2>(z) u = Expand(c, p) v = Expand(c, q)"
            "  w = Mul(u, v) y = Add(w, x) }",
            "g (float[3] x, float[b, 3] z) => (float[b, 3] y) <float[3] c = {1, 2, 3}>"
            "{ p = Shape(z) u = Expand(c, p) w = Mul(u, u) y = Add(w, x) }",
        ),
        "two groups": (
            "g (float[a, 6] x) => (float[a, 6] y) <int64[3] s = {0, 2, 3}, int64[3] t = {-1, 2, 3},"
            "  int64[2] k = {0, -1}, int64[2] l = {-1, 6}> { u = Reshape(x, s) p = Reshape(x, k)"
            "  v = Reshape(x, t) q = Reshape(x, l) w = Add(u, v) r = Reshape(w, k) c = Add(r, p)"
            "  y = Add(c, q) }",
            "g (float[a, 6] x) => (float[a, 6] y) <int64[3] s = {0, 2, 3}, int64[2] k = {0, -1}>"
            "{ u = Reshape(x, s) p = Reshape(x, k) w = Add(u, u) r = Reshape(w, k) c = Add(r, p)"
            "  y = Add(c, p) }",
        ),
    },
}

R = "g (float[a] x) => (float[a] y) { r = Abs(x)"
SAME_NEAR_MISSES = {
    "one consumer": (f"{R} y = Exp(r) }}", "no result has two consumers"),
    "other operators": (f"{R} s = Exp(r) t = Neg(r) y = Add(s, t) }}", "two consumers of one type"),
    "other domains": (
        "g (float[a] x) => (float[a] y)"
        "{ r = Abs(x) s = Gelu(r) t = com.microsoft.Gelu(r) y = Add(s, t) }",
        "do the same",
        {"opset": 20},
    ),
    "other attributes": (
        f"{R} s = Elu<alpha=1.0>(r) t = Elu<alpha=2.0>(r) y = Add(s, t) }}",
        "do the same",
    ),
    "other inputs": (f"{R} q = Neg(x) s = Add(r, q) t = Add(r, x) y = Add(s, t) }}", "do the same"),
    "swapped operands": (f"{R} s = Sub(r, x) t = Sub(x, r) y = Add(s, t) }}", "do the same"),
    "swapped matrices": (
        "g (float[2, 2] x) => (float[2, 2] y)"
        "{ r = Abs(x) s = MatMul(r, x) t = MatMul(x, r) y = Add(s, t) }",
        "do the same",
    ),
    "random": (
        f"{R} s = RandomUniformLike(r) t = RandomUniformLike(r) y = Add(s, t) }}",
        "do the same",
    ),
    "random with a seed": (
        f"{R} s = RandomNormalLike<seed=1.0>(r) t = RandomNormalLike<seed=1.0>(r) y = Add(s, t) }}",
        "do the same",
    ),
    "bernoulli": (f"{R} s = Bernoulli(r) t = Bernoulli(r) y = Add(s, t) }}", "do the same"),
    "training dropout": (
        "g (float[a] x, bool training) => (float[a] y) <float ratio = {0.5}> { r = Abs(x)"
        "  s = Dropout(r, ratio, training) t = Dropout(r, ratio, training) y = Add(s, t) }",
        "do the same",
    ),
    "the mask of a dropout": (
        "g (float[a] x) => (float[a] y, bool[a] z)"
        "{ r = Abs(x) s = Dropout(r) t, z = Dropout(r) y = Add(s, t) }",
        "do the same",
    ),
    "identities": (f"{R} s = Identity(r) t = Identity(r) y = Add(s, t) }}", "do the same"),
    "other number of results": (
        "g (float[4] x) => (float[4] y) { r = Abs(x) s0, s1 = Split<axis=0>(r) "
        "t0, t1, t2, t3 = Split<axis=0>(r) k = Add(s0, t0) y = Add(k, x) }",
        "do the same",
    ),
    "subgraphs": (
        "g (float[a] x) => (float[a] y) { r = ReduceMax<keepdims=0>(x) b = Cast<to=9>(r)"
        "  s = If(b) <then_branch = g1 () => (float[1] o1) { o1 = Constant<value_floats=[1.0]>() },"
        "             else_branch = g2 () => (float[1] o2) { o2 = RandomNormal<shape=[1]>() }>"
        "  t = If(b) <then_branch = g1 () => (float[1] o1) { o1 = Constant<value_floats=[1.0]>() },"
        "             else_branch = g2 () => (float[1] o2) { o2 = RandomNormal<shape=[1]>() }>"
        "  u = Add(s, t) y = Add(x, u) }",
        "do the same",
    ),
}

INPUT_NEAR_MISSES = {
    "random": (
        "g (float[a] x) => (float[a] y)"
        "{ s = RandomUniformLike(x) t = RandomUniformLike(x) y = Add(s, t) }",
        "no two consumers do the same",
    ),
}

SHAPE_NEAR_MISSES = {
    "one consumer": (
        "g (float[a, 6] x) => (float[b, 2] y) <int64[2] s = {-1, 2}> { y = Reshape(x, s) }",
        "no result has two consumers of one type",
    ),
    "other shapes": (
        "g (float[a, 6] x) => (float[b, 2] y, float[c, 3] z)"
        "<int64[2] s = {-1, 2}, int64[2] t = {-1, 3}> { y = Reshape(x, s) z = Reshape(x, t) }",
        "no two consumers do the same",
    ),
    "unknown shapes": (
        "g (float[a, 6] x, int64[2] s, int64[2] t) => (float[b, c] y, float[d, e] z)"
        "{ y = Reshape(x, s) z = Reshape(x, t) }",
        "no two consumers do the same",
    ),
    "other operators": (
        "g (float[a, 1] x) => (float[a, 1] y, float[a, 1] z) <int64[2] s = {-1, 1},"
        " int64[2] t = {1, 1}>"
        "{ y = Reshape(x, s) z = Expand(x, t) }",
        "no result has two consumers of one type",
    ),
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(
    {
        "SameChildren": SAME_NEAR_MISSES,
        "SameChildrenFromInput": INPUT_NEAR_MISSES,
        "ShapeBasedSameChildren": SHAPE_NEAR_MISSES,
    }
)


def test_two_random_results_stay_two_with_default():
    text = (
        "g (float[64] x) => (float[64] y)"
        "{ s = RandomUniformLike(x) t = RandomUniformLike(x) u = Sub(s, t) y = Add(u, x) }"
    )
    result, _, _ = optimize_with(model_from_text(text), "default")
    assert [n.op_type for n in result.graph.node].count("RandomUniformLike") == 2


def test_dropout_of_opset_6_trains():
    text = (
        "g (float[8] x) => (float[8] y) { r = Abs(x) s = Dropout(r) t = Dropout(r) y = Sub(s, t) }"
    )
    check_no_match(text, "SameChildren", "do the same", opset=6)
    tested = text.replace("Dropout", "Dropout<is_test=1>")
    once = tested.replace("t = Dropout<is_test=1>(r) ", "").replace("(s, t)", "(s, s)")
    check_pattern(tested, once, "SameChildren", opset=6, runtime=False, reference=False)


@pytest.mark.parametrize("op_type", ["RandomNormalLike", "Neg"])
def test_calls_of_local_functions(op_type: str):
    inner = oh.make_function(
        "local",
        "inner",
        ["x"],
        ["y"],
        [oh.make_node(op_type, ["x"], ["y"])],
        [oh.make_opsetid("", 18)],
    )
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("local", 1)]
    outer = oh.make_function(
        "local",
        "outer",
        ["x"],
        ["y"],
        [oh.make_node("inner", ["x"], ["y"], domain="local")],
        opsets,
    )
    info = oh.make_tensor_value_info
    nodes = [
        oh.make_node("Abs", ["x"], ["r"]),
        oh.make_node("outer", ["r"], ["s"], domain="local"),
        oh.make_node("outer", ["r"], ["t"], domain="local"),
        oh.make_node("Sub", ["s", "t"], ["y"]),
    ]
    graph = oh.make_graph(nodes, "g", [info("x", 1, [4])], [info("y", 1, [4])])
    model = oh.make_model(graph, functions=[inner, outer], opset_imports=opsets, ir_version=9)
    result, _, _ = optimize_with(model, "SameChildren")
    n_calls = sum(n.op_type == "outer" for n in result.graph.node)
    assert n_calls == (1 if op_type == "Neg" else 2)


def test_results_of_the_outer_graph_in_a_subgraph():
    text = (
        "g (float[a] x, bool c) => (float[a] y) { r = Abs(x) y = If(c) <"
        "  then_branch = g1 () => (float[a] o1) { s = Exp(r) t = Exp(r) o1 = Add(s, t) },"
        "  else_branch = g2 () => (float[a] o2) { o2 = Neg(r) } > }"
    )
    result, _, _ = optimize_with(model_from_text(text), "SameChildrenFromInput")
    branch = next(a.g for n in result.graph.node for a in n.attribute if a.name == "then_branch")
    assert [n.op_type for n in branch.node] == ["Exp", "Add"]


def test_an_input_the_outer_node_captures() -> None:
    """The If is the first consumer of x left, it does not read x by itself."""
    text = (
        "g (int32[a] x, bool c) => (int32[a] y, int32[a] t) <int32[1] zero = {0}> {"
        " r = Max(zero, x) s = Max(x, zero) t = Neg(r) y = If(c) <"
        "  then_branch = g1 () => (int32[a] o1) { o1 = Sub(s, x) },"
        "  else_branch = g2 () => (int32[a] o2) { o2 = Add(s, x) } > }"
    )
    result, _, _ = optimize_with(model_from_text(text), "MaxRelu+SameChildrenFromInput")
    assert [n.op_type for n in result.graph.node] == ["Relu", "Neg", "If"]


def test_a_hidden_name():
    """The subgraph that reads t has its own s: it gets another name, then t may become s."""
    text = (
        "g (float[a] x, bool c) => (float[a] y) { r = Abs(x) s = Exp(r) t = Exp(r) k = If(c) <"
        "  then_branch = g1 () => (float[a] o1) { s = Neg(t) o1 = Abs(s) },"
        "  else_branch = g2 () => (float[a] o2) { o2 = Abs(t) } > y = Add(s, k) }"
    )
    # onnxruntime refuses a model that hides a name
    result = check_pattern(text, None, "SameChildren", runtime=False)
    assert [n.op_type for n in result.graph.node] == ["Abs", "Exp", "If", "Add"]
    branch = next(a.g for n in result.graph.node for a in n.attribute if a.name == "then_branch")
    assert branch.node[0].input[0] == "s"
    assert branch.node[0].output[0] != "s"


def _fan_out(n: int, op: str) -> onnx.ModelProto:
    info = oh.make_tensor_value_info
    nodes = [oh.make_node("Abs", ["x"], ["r"])]
    shape = ["shape"] if op == "Reshape" else []
    nodes.extend(oh.make_node(op, ["r", *shape], [f"n{i}"]) for i in range(n))
    nodes.append(oh.make_node("Sum", [f"n{i}" for i in range(n)], ["y"]))
    return oh.make_model(
        oh.make_graph(
            nodes,
            "g",
            [info("x", 1, ["a"])],
            [info("y", 1, None)],
            [onnx.numpy_helper.from_array(np.array([-1], dtype=np.int64), "shape")],
        ),
        opset_imports=[oh.make_opsetid("", 18)],
        ir_version=9,
    )


def _matching_calls(pattern: str, n: int, op: str) -> int:
    optimizer = GraphBuilderPatternOptimization(
        GraphBuilder(_fan_out(n, op), infer_shapes_options=True), [pattern]
    )
    found: list[MatchResult] = []
    calls = count_calls(lambda: found.extend(optimizer.patterns[0].enumerate_matches(optimizer)))
    assert len(found) == 1
    assert len(found[0].nodes) == n - 1
    return calls


@pytest.mark.parametrize(
    "pattern,op", [("SameChildren", "Exp"), ("ShapeBasedSameChildren", "Reshape")]
)
def test_thousands_of_consumers_are_hashed_once(pattern: str, op: str):
    assert _matching_calls(pattern, 8000, op) < 17 * _matching_calls(pattern, 500, op)


def test_one_iteration_merges_thousands_of_consumers():
    model = _fan_out(3000, "Exp")
    result, rows, _ = optimize_with(model, "SameChildren")
    assert [n.op_type for n in result.graph.node] == ["Abs", "Exp", "Sum"]
    assert sum(r.get("instances", 0) for r in rows if r["pattern"].startswith("apply_")) == 1


def test_roots_that_may_have_twins() -> None:
    """Readers of one type that read something else besides are not looked at."""
    text = """agraph (float[a] X, float[a] Z) => (float[a] Y)
        { r = Neg(X) a = Add(r, Z) b = Add(r, X) s = Abs(X) c = Mul(s, Z) d = Mul(Z, s)
          t = Exp(X) e = Sub(t, t) f = Sub(t, t) Y = Sum(a, b, c, d, e, f) }"""
    store = GraphBuilder(model_from_text(text)).store
    found = SameChildrenPattern.candidate_roots(store, store.nodes)
    assert [r.outputs[0] for r in found] == list("ast")
