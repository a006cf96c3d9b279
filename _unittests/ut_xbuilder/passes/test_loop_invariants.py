"""Loop-invariant nodes."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xbuilder.graph_checks import initializer_names, op_types, optimized, parse

INVARIANT = """
agraph (float[2,2] x, float[2,2] a, float[K,N] p, float[N,M] q, float[K,M] r, float u, int64[2] d,
        int64 t, bool k) => (float[2,2] y)
    <int64 three = {{3}}, int64 zero = {{0}}, bool c = {{1}}, int64[1] one = {{1}}, int64 two = {{2}},
     int64[2] flat = {{-1, 2}}, int64[3] wrong = {{-1, 3, 5}}, int64[2] swap = {{1, 4}},
     int64[3] five = {{0, 1, -1}}>
{{
    y = Loop ({trip}, {cond}, x) <
        body = b (int64 i, bool ci, float[2,2] v) => (bool co, float[2,2] w)
        {inits} {{ co = Identity(ci) {nodes} }}
    >
}}
"""
FEEDS = {
    "x": np.ones((2, 2), np.float32),
    "a": np.arange(1, 5, dtype=np.float32).reshape((2, 2)),
    "p": np.ones((4, 3), np.float32),
    "q": np.ones((3, 5), np.float32),
    "r": np.ones((4, 5), np.float32),
    "u": np.array(2, np.float32),
    "d": np.array([2, 2], np.int64),
    "k": np.array(True),
}


def model_of(nodes, trip="t", cond="c", inits=""):
    return parse(INVARIANT.format(nodes=nodes, trip=trip, cond=cond, inits=inits))


def inside(nodes, **kwargs):
    """Operators left in the body; the model gives the same results at 0 and 3 iterations."""
    model = model_of(nodes, **kwargs)
    for count in (0, 3):
        after = optimized(model, {**FEEDS, "t": np.array(count)})
    (owner,) = (n for n in after.graph.node if n.op_type == "Loop")
    return [n.op_type for n in owner.attribute[0].g.node if n.op_type != "Identity"]


#: proven: the loop may run zero times
SAFE = [
    "kk = Transpose(a)",
    "k0 = Transpose(a) kk = Neg(k0)",
    "kk = Add(a, a)",
    "kk = Div(a, a)",
    "kk = Pow(a, u)",
    "kk = MatMul(a, a)",
    "k1 = MatMul(p, q) k2 = ReduceSum<keepdims=0>(a) kk = Add(a, k2)",
    "k0 = Concat<axis=1>(a, a) k1 = Flatten<axis=0>(k0) kk = ReduceSum<keepdims=1>(k1)",
    "k0 = Reshape(a, swap) k1 = Reshape(k0, flat) kk = MatMul(k1, k1)",
    "kk = Gemm<transA=1>(a, a, u)",
    "k0 = Unsqueeze(a, one) kk = Squeeze(k0, one)",
    "kk = Softmax<axis=1>(a)",
    "k0 = Cast<to=11>(a) k1 = Neg(k0) kk = Cast<to=1>(k1)",
    "kk = Gather<axis=1>(a, one)",
    "k0 = Flatten<axis=0>(a) kk = ReduceMax<keepdims=1>(k0)",
    "kk = Where(c, a, x)",
]


@pytest.mark.parametrize("nodes", SAFE)
@pytest.mark.parametrize("trip", ["t", "three"])
def test_what_cannot_fail_moves(nodes, trip):
    assert inside(f"{nodes} w = Add(v, kk)", trip=trip) == ["Add"]


#: they fail at run time with some shapes: an element `KxN` is not `5`, an index is out of range...
UNSAFE = [
    ("k0 = Reshape(a, d) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = MatMul(p, r) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Concat<axis=0>(p, q) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Add(p, q) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Gemm(p, r) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Gemm(a, a, p) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Reshape(p, flat) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("kk = ReduceMax<keepdims=0>(p)", 1),
    ("k0 = Gather(p, two) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Gather(a, two) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Squeeze(p, one) kk = ReduceSum<keepdims=0>(k0)", 2),
    ("k0 = Div(d, d) k1 = Cast<to=1>(k0) kk = ReduceSum<keepdims=0>(k1)", 3),
    ("k0 = Expand(a, d) kk = ReduceSum<keepdims=0>(k0)", 2),
]


@pytest.mark.parametrize("nodes,count", UNSAFE)
def test_what_may_fail_stays_in_a_loop_that_may_not_run(nodes, count):
    model = model_of(f"{nodes} w = Add(v, kk)")
    after = optimized(model, run=False)
    assert op_types(after)[0] == "Loop"
    assert len(op_types(after)) == 2 + count + 1
    # it is not only refused, it is right: the loop runs zero times
    assert "Loop" in op_types(optimized(model, {**FEEDS, "t": np.array(0)}))


@pytest.mark.parametrize("nodes,count", UNSAFE)
@pytest.mark.parametrize("trip,cond", [("three", "c"), ("three", '""'), ("t", "c")])
def test_anything_moves_out_of_a_loop_that_runs(nodes, count, trip, cond):
    model = model_of(f"{nodes} w = Add(v, kk)", trip=trip, cond=cond.replace('""', "absent"))
    for node in model.graph.node:
        names = ["" if n == "absent" else n for n in node.input]
        del node.input[:]
        node.input.extend(names)
    after = optimized(model, run=False)
    body = next(n for n in after.graph.node if n.op_type == "Loop").attribute[0].g
    left = [n.op_type for n in body.node if n.op_type != "Identity"]
    assert len(left) == (1 if trip == "three" else count + 1)


@pytest.mark.parametrize(
    "nodes",
    [
        # depends on what is carried
        "k = Transpose(v) w = Add(k, a)",
        # random: a new draw each time
        "k = RandomNormalLike(a) w = Add(v, k)",
        # an output of the body
        "w = Abs(a)",
        # a subgraph
        "e = If (k) <then_branch = g () => (float[2,2] f) { f = Abs(a) },"
        " else_branch = h () => (float[2,2] g) { g = Neg(a) }> w = Add(v, e)",
    ],
)
def test_what_stays(nodes):
    model = model_of(nodes, trip="three")
    assert op_types(optimized(model, run=False)) == op_types(model)


def test_constants_of_the_body_follow():
    """A weight of the body, as an initializer or as a node, leaves with what reads it."""
    inits = "<float[2,2] weight = {1.0, 2.0, 3.0, 4.0}>"
    nodes = (
        "one_more = Constant <value = float[2,2] {1.0, 1.0, 2.0, 2.0}> () "
        "k0 = MatMul(a, weight) k1 = Sub(k0, one_more) k2 = Mul(k1, weight) "
        "w0 = Add(v, k2) w = Mul(w0, one_more)"
    )
    assert inside(nodes, inits=inits) == ["Add", "Mul"]
    after = optimized(model_of(nodes, inits=inits), {**FEEDS, "t": np.array(2)})
    assert "weight" in initializer_names(after)


def test_weights_of_two_bodies_with_one_name():
    body = (
        "body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w)"
        " <float[2] k = {%s}> { co = Identity(ci) t = Mul(a, k) w0 = Add(v, t) w = Mul(w0, k) }"
    )
    model = parse(
        f"""
        agraph (float[2] x, float[2] a, int64 n, bool c) => (float[2] y)
        {{
            u = Loop (n, c, x) < {body % "1.0, 2.0"} >
            y = Loop (n, c, u) < {body % "3.0, 4.0"} >
        }}
        """
    )
    feeds = {"x": np.ones(2, np.float32), "a": np.ones(2, np.float32), "c": np.array(True)}
    for n in (0, 2):
        after = optimized(model, {**feeds, "n": np.array(n)})
    assert [n.op_type for n in after.graph.node] == ["Mul", "Loop", "Mul", "Loop"]


def test_a_node_with_several_results():
    nodes = "k1, k2 = Split<axis=0, num_outputs=2>(a) k3 = Mul(k1, k2) w = Add(v, k3)"
    assert inside(nodes, trip="three") == ["Add"]
    assert inside(nodes) == ["Split", "Mul", "Add"]


@pytest.mark.parametrize("trip", ["t", "three"])
def test_only_one_of_two_casts_moves(trip):
    """onnxruntime removes two casts in a row without seeing that a subgraph reads the result."""
    nodes = "k0 = Cast<to=11>(a) kk = Cast<to=1>(k0) w = Add(v, kk)"
    assert inside(nodes, trip=trip) == ["Cast", "Add"]


@pytest.mark.parametrize("length,moves", [("2", True), ("N", False), ("0", False)])
def test_length_of_a_scan(length, moves):
    model = parse(
        f"""
        agraph (float[2] x, float[{length},2] seq, float[4] a, int64[1] d) => (float[2] y)
        {{
            y = Scan <num_scan_inputs=1,
                body = b (float[2] v, float[2] e) => (float[2] w)
                {{ t = Expand(a, d) s = ReduceSum<keepdims=0>(t) m = Add(v, s) w = Mul(m, e) }}
            > (x, seq)
        }}
        """
    )
    feeds = {"x": np.ones(2, np.float32), "a": np.ones(4, np.float32), "d": np.array([1])}
    size = 3 if length == "N" else int(length)
    # onnxruntime refuses an empty sequence
    seq = np.ones((size, 2), np.float32)
    after = optimized(model, {**feeds, "seq": seq}, run=size > 0)
    assert (op_types(after)[0] == "Scan") != moves


def test_what_the_body_supposes_is_not_known_outside():
    """`p` and `r` are broadcast in the body only: if it does not run they are not."""
    nodes = (
        "s = Add(v, u) k0 = Add(p, z) k1 = Mul(p, z) "
        "k2 = ReduceSum<keepdims=0>(k0) k3 = ReduceSum<keepdims=0>(k1) kk = Add(k2, k3) w = Add(s, kk)"
    )
    model = model_of(nodes)
    model.graph.input.add().CopyFrom(
        parse("agraph (float[A,B] z) => (float[A,B] o) { o = Neg(z) }").graph.input[0]
    )
    feeds = {**FEEDS, "z": np.ones((7, 7), np.float32), "t": np.array(0)}
    after = optimized(model, feeds)
    assert op_types(after)[0] == "Loop"


def test_invariant_of_a_scan():
    model = parse(
        """
        agraph (float[2] x, float[N,2] seq, float[2] a) => (float[2] y, float[N,2] z)
        {
            y, z = Scan <num_scan_inputs=1,
                body = b (float[2] v, float[2] e) => (float[2] w, float[2] s)
                { t = Exp(a) w = Add(v, t) s = Mul(w, e) }
            > (x, seq)
        }
        """
    )
    assert op_types(optimized(model)) == ["Exp", "Scan", "Add", "Mul"]


def test_nodes_of_branches_do_not_move():
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y)
        {
            y = If (c) <
                then_branch = a () => (float[2] r) { t = Exp(x) r = Neg(t) },
                else_branch = b () => (float[2] s) { s = Abs(x) }
            >
        }
        """
    )
    assert op_types(optimized(model)) == ["If", "Exp", "Neg", "Abs"]


def test_moved_nodes_with_equal_names():
    """Both loops define `t`: the ones that leave get different names."""
    body = "body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w) { co = Identity(ci) t = %s(a) w = Add(v, t) }"
    model = parse(
        f"""
        agraph (float[2] x, float[2] a) => (float[2] y) <int64 three = {{3}}, bool c = {{1}}>
        {{
            u = Loop (three, c, x) < {body % "Exp"} >
            y = Loop (three, c, u) < {body % "Neg"} >
        }}
        """
    )
    after = optimized(model)
    assert sorted(op_types(after)) == [
        "Add",
        "Add",
        "Exp",
        "Identity",
        "Identity",
        "Loop",
        "Loop",
        "Neg",
    ]


def test_a_moved_node_has_a_name_of_its_own():
    """A body numbers its nodes as the graph does: onnxruntime refuses two nodes of one name."""
    model = parse(
        """
        agraph (float[2] x, float[2] a, int64 t) => (float[2] y) <bool c = {1}>
        {
            [n0] u = Exp(x)
            [n1] y = Loop (t, c, u) <
                body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w)
                { [n0] co = Identity(ci) [n1] k = Neg(a) [n2] w = Add(v, k) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Exp", "Neg", "Loop", "Identity", "Add"]
    names = [node.name for node in after.graph.node]
    assert len(set(names)) == len(names)
