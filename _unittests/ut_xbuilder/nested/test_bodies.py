"""Subgraphs: facts, shadowing, optimization at every depth."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from ut_xbuilder.graph_checks import check_stores, op_types, optimized, parse, run_reference

from xbuilder import GraphBuilder, InvalidModelError, OptimizationOptions
from xbuilder.passes import pipeline


def infer(text, opset=18):
    return GraphBuilder(parse(text, opset), infer_shapes_options=True)


def children(builder):
    return list(builder.iter_subgraph_builders())


IF = """
agraph (float[N,2] x, bool c{inputs}) => (float[A,B] y)
{{
    z = Neg(x)
    y0 = If (c) <
        then_branch = a () => (r) {{ {then} }},
        else_branch = b () => (s) {{ {orelse} }}
    >
    y = Neg(y0)
}}
"""


@pytest.mark.parametrize(
    "then,orelse,expected",
    [
        ("r = Abs(z)", "s = Exp(z)", ("N", 2)),
        ("r = Transpose(z)", "s = Transpose(x)", (2, "N")),
        ("r = Transpose(z)", "s = Exp(z)", (None, None)),
        ("r = Abs(z)", "s = Concat<axis=1>(x, x)", ("N", None)),
        ("r = Abs(z)", "s = Flatten<axis=0>(x)", (None, None)),
    ],
)
def test_if(then, orelse, expected):
    builder = infer(IF.format(then=then, orelse=orelse, inputs=""))
    assert builder.get_type("y0") == 1
    shape = builder.get_shape("y0")
    assert len(shape) == 2
    for found, wanted in zip(shape, expected, strict=True):
        assert found == wanted or (wanted is None and builder.is_generated(found))


def test_if_with_two_ranks():
    builder = infer(
        IF.format(
            then="r = Abs(z)", orelse="s = ReduceSum<keepdims=0>(z, ax)", inputs=", int64[1] ax"
        )
    )
    assert builder.has_type("y0") and not builder.has_shape("y0") and not builder.has_rank("y0")


def test_constraints_of_a_branch_do_not_leak():
    """x + w inside the branch says that M and K can be broadcast: only there."""
    builder = infer(
        """
        agraph (float[M] x, float[K] w, bool c) => (float[M] y)
        {
            y = If (c) <
                then_branch = a () => (float[M] r) { t = Add(x, w) u = Sub(t, x) r = Sub(u, w) },
                else_branch = b () => (float[M] s) { s = Exp(x) }
            >
        }
        """
    )
    assert not any("K" in (a, b) for _, a, b, _ in builder.constraints.items())
    from xbuilder.dims import prove_equal

    assert prove_equal("M", "K", builder.constraints) is None


def test_facts_of_the_outer_graph_are_seen_inside():
    builder = infer(IF.format(then="t = Abs(z) r = Add(t, x)", orelse="s = Exp(z)", inputs=""))
    child = children(builder)[0]
    assert child.get_shape("z") == ("N", 2)
    assert child.get_shape("t") == ("N", 2)
    assert child.has_name("z") and not builder.has_name("t")
    assert not builder.has_type("t")


def test_a_local_name_hides_the_outer_one():
    """`z` means something else inside: unknown operator, unknown type."""
    model = parse(
        """
        <ir_version: 8, opset_import: ["": 18, "custom": 1]>
        agraph (float[2] x, bool c) => (float[2] y)
        {
            z = Constant<value = int64[2] {5, 6}>()
            k = Cast<to=1>(z)
            y0 = If (c) <
                then_branch = a () => (r) { z = custom.Unknown(x) t = Neg(z) r = Add(t, k) },
                else_branch = b () => (s) { s = Exp(x) }
            >
            y = Add(y0, k)
        }
        """
    )
    builder = GraphBuilder(model, infer_shapes_options=True)
    child = children(builder)[0]
    name = child.store.nodes[0].outputs[0]
    assert name != "z" and child.store.nodes[1].inputs == (name,)
    assert not child.has_type(name) and not child.is_constant(name)
    assert not child.has_type("t")
    assert builder.is_constant("z") and child.is_constant("z")
    assert builder.shadowing_names() == {"z"}


def test_a_name_read_before_it_is_hidden():
    """Inside, the first `z` is the outer one, the second is not."""
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y)
        {
            z = Neg(x)
            y = If (c) <
                then_branch = a () => (float[2] r) { u = Abs(z) z = Exp(u) r = Add(z, u) },
                else_branch = b () => (float[2] s) { s = Exp(x) }
            >
        }
        """
    )
    after = optimized(model, run=False)
    onnx.checker.check_model(after)
    feeds = {"x": np.array([1, -2], dtype=np.float32), "c": np.array(True)}
    for a, b in zip(run_reference(model, feeds), run_reference(after, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_input_of_the_body_hides_an_outer_constant():
    builder = infer(
        """
        agraph (float[2] x, int64 n, bool c) => (float[2] y) <float[2] v = {1.0, 2.0}>
        {
            u = Add(x, v)
            y = Loop (n, c, u) <
                body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w)
                { co = Identity(ci) w = Neg(v) }
            >
        }
        """
    )
    child = children(builder)[0]
    assert not child.is_constant(child.input_names[2]) and not child.is_constant("w")
    assert builder.is_constant("v")


LOOP = """
agraph (float[N,2] x, int64 n, bool c) => (float[A,B] y, float[T,U,V] s)
{{
    y0, s0 = Loop (n, c, x) <
        body = b (int64 i, bool ci, float[P,Q] v) => (bool co, float[P,Q] w, float[P,Q] e)
        {{ co = Identity(ci) {nodes} }}
    >
    y = Neg(y0)
    s = Neg(s0)
}}
"""


def test_loop_keeps_a_shape_only_if_it_is_proven():
    builder = infer(LOOP.format(nodes="w = Neg(v) e = Abs(v)"))
    shape = builder.get_shape("y0")
    assert builder.get_type("y0") == 1 and len(shape) == 2
    assert len(builder.get_shape("s0")) == 3
    builder = infer(LOOP.format(nodes="w = Concat<axis=0>(v, v) e = Abs(v)"))
    assert builder.get_shape("y0")[0] != "N"


def test_loop_with_fixed_shapes():
    text = LOOP.replace("P,Q", "3,2").replace("N,2", "3,2")
    builder = infer(text.format(nodes="w = Neg(v) e = Abs(v)"))
    assert builder.get_shape("y0") == (3, 2)
    trip, *rest = builder.get_shape("s0")
    assert builder.is_generated(trip) and rest == [3, 2]


def test_scan():
    builder = infer(
        """
        agraph (float[2] x, float[N,2] seq) => (float[2] y, float[T,2] z)
        {
            y0, z0 = Scan <num_scan_inputs=1,
                body = b (float[2] v, float[2] e) => (float[2] w, float[2] s)
                { w = Add(v, e) s = Neg(w) }
            > (x, seq)
            y = Neg(y0)
            z = Neg(z0)
        }
        """
    )
    assert builder.get_shape("y0") == (2,)
    assert builder.get_shape("z0") == ("N", 2)


def test_optimization_at_every_depth():
    model = parse(
        """
        agraph (float[2] x, int64 n, bool c) => (float[2] y)
        {
            z = Neg(x)
            y = If (c) <
                then_branch = a () => (float[2] r)
                {
                    d = Identity(z)
                    dead = Exp(z)
                    r = Loop (n, c, d) <
                        body = l (int64 i, bool ci, float[2] v) => (bool co, float[2] w)
                        {
                            co = Identity(ci)
                            k = Constant<value = float[2] {1.0, 2.0}>()
                            m = Neg(k)
                            dd = Exp(v)
                            u = If (ci) <
                                then_branch = e () => (float[2] t) { q = Identity(v) t = Add(q, m) dead2 = Neg(q) },
                                else_branch = f () => (float[2] t2) { t2 = Neg(v) }
                            >
                            w = Identity(u)
                        }
                    >
                },
                else_branch = b () => (float[2] s) { s = Abs(z) }
            >
        }
        """
    )
    after = optimized(model)
    types = op_types(after)
    assert types == ["Neg", "If", "Loop", "Identity", "If", "Add", "Neg", "Abs"]
    assert op_types(optimized(model, recursive=False))[2:4] == ["Identity", "Exp"]


def test_subgraphs_are_optimized_without_the_pass_of_patterns():
    model = parse(
        IF.format(then="t = Identity(z) dead = Exp(t) r = Abs(t)", orelse="s = Exp(z)", inputs="")
    )
    after = optimized(model, passes=["remove_identity", "remove_unused"])
    assert op_types(after) == ["Neg", "If", "Neg", "Abs", "Exp"]


def test_statistics_name_the_graph():
    model = parse(IF.format(then="t = Identity(z) r = Abs(t)", orelse="s = Exp(z)", inputs=""))
    builder = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=None))
    rows = builder.optimize()
    graphs = {row.get("graph", "") for row in rows}
    (result,) = (n.output[0] for n in builder.to_onnx().graph.node if n.op_type == "If")
    assert graphs == {"", f"If {result!r} then_branch", f"If {result!r} else_branch"}


def test_names_made_inside_are_unique_everywhere():
    builder = infer(
        IF.format(then="t = Abs(z) r = Neg(t)", orelse="t = Exp(z) s = Neg(t)", inputs="")
    )
    first, second = children(builder)
    names = {b.unique_name("t") for b in (builder, first, second)}
    assert len(names) == 3 and "t" not in names
    assert builder.unique_node_name("Neg") != first.unique_node_name("Neg")


def test_names_of_a_subgraph_added_later_are_reserved():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, (2,))
    builder.make_tensor_input("c", 9, ())
    graphs = [
        oh.make_graph(
            [oh.make_node("Neg", ["x"], [f"inside_{i}"])],
            f"g{i}",
            [],
            [oh.make_tensor_value_info(f"inside_{i}", 1, [2])],
        )
        for i in range(2)
    ]
    builder.make_node("If", ["c"], ["y"], then_branch=graphs[0], else_branch=graphs[1])
    assert builder.unique_name("inside_0") != "inside_0"
    assert builder.get_shape("y") == (2,)
    builder.make_tensor_output("y")
    onnx.checker.check_model(builder.to_onnx())


def test_undefined_name_inside_a_branch():
    model = parse(IF.format(then="r = Add(z, unknown)", orelse="s = Exp(z)", inputs=""))
    with pytest.raises(InvalidModelError, match="'unknown'"):
        GraphBuilder(model)


def test_a_redirection_of_the_outer_graph_reaches_a_child_already_made():
    builder = infer(IF.format(then="r = Abs(z)", orelse="s = Exp(z)", inputs=""))
    assert len(children(builder)) == 2
    builder.store.rename_result("z", "other")
    first = children(builder)[0]
    assert list(first.store.nodes[0].inputs) == ["other"]
    check_stores(builder)


def test_initializers_of_a_branch():
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y)
        {
            y = If (c) <
                then_branch = a () => (float[2] r) <float[2] w = {1.0, 2.0}, float[2] dead = {1.0, 2.0}>
                    { n = Neg(w) r = Add(x, n) },
                else_branch = b () => (float[2] s) <float[2] w = {3.0, 4.0}> { s = Add(x, w) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["If", "Add", "Add"]
    graph = after.graph.node[0].attribute[0].g
    assert [i.name for i in graph.initializer] == ["w"]
    assert onnx.numpy_helper.to_array(graph.initializer[0]).tolist() == [-1, -2]


def test_facts_of_sequences_through_if():
    builder = infer(
        """
        agraph (float[2] x, bool c) => (seq(float[2]) q)
        {
            q = If (c) <
                then_branch = a () => (seq(float[2]) r) { r = SequenceConstruct(x) },
                else_branch = b () => (seq(float[2]) s) { s = SequenceConstruct(x, x) }
            >
        }
        """
    )
    assert builder.is_sequence("q")
    assert builder.get_sequence("q").type == 1


def test_wrong_shape_is_read_in_the_right_graph():
    """regression 9: y = Concat(state, x + Shape(x)[1]) with If(Shape(state)[0] == 1)."""
    model = parse(
        """
        agraph (float[N,2] state, float[N,5] x) => (float[N,M] y)
        <int64 one = {1}, int64 zero = {0}>
        {
            sh = Shape(state)
            first = Gather(sh, zero)
            c = Equal(first, one)
            part = If (c) <
                then_branch = a () => (float[N,5] r)
                { sx = Shape(x) d = Gather(sx, one) f = Cast<to=1>(d) r = Add(x, f) },
                else_branch = b () => (float[N,5] s)
                { sx = Shape(state) d = Gather(sx, one) f = Cast<to=1>(d) s = Add(x, f) }
            >
            y = Concat<axis=1>(state, part)
        }
        """
    )
    for n in (1, 3):
        feeds = {
            "state": np.ones((n, 2), dtype=np.float32),
            "x": np.ones((n, 5), dtype=np.float32),
        }
        optimized(model, feeds=feeds)


MERGED = """
agraph (float[3,4] X, bool c) => (float[3,4] Y, float[3,4] Z)
{
    d = Cast<to=11>(X)
    x2 = Cast<to=1>(d)
    Y, Z = If (c) <
        then_branch = t () => (float[3,4] a, float[3,4] b) { a = Neg(x2) b = Neg(X) },
        else_branch = e () => (float[3,4] a1, float[3,4] b1) { a1 = Exp(X) b1 = Abs(X) }
    >
}
"""


def test_a_subgraph_is_optimized_again_when_what_it_captures_is_merged():
    options = OptimizationOptions(patterns="default")
    builder = GraphBuilder(parse(MERGED), optimization_options=options)
    new = builder.to_onnx()
    check_stores(builder)
    branch = next(a.g for a in new.graph.node[0].attribute if a.name == "then_branch")
    assert [n.op_type for n in branch.node] == ["Neg", "Identity"]
    again = GraphBuilder(new, optimization_options=options).to_onnx()
    assert again.SerializeToString() == new.SerializeToString()


def test_a_subgraph_is_optimized_once_when_nothing_it_captures_changes(monkeypatch):
    text = MERGED.replace("Neg(x2)", "Sin(X)").replace("d = Cast<to=11>(X)", "d = Identity(X)")
    done = []
    run_passes = pipeline._run_passes

    def counting(graph, rows, inside, again=False):
        done.append(graph)
        return run_passes(graph, rows, inside, again)

    monkeypatch.setattr(pipeline, "_run_passes", counting)
    options = OptimizationOptions(patterns="default")
    GraphBuilder(parse(text), optimization_options=options).to_onnx()
    assert len(done) == 3
