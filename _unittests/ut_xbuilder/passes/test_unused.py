"""Dead nodes and initializers."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from ut_xbuilder.graph_checks import initializer_names, op_types, optimized, parse

from xbuilder import GraphBuilder


def test_dead_chain_and_initializers():
    model = parse(
        """
        agraph (float[N] x) => (float[N] y) <float[1] used = {1.0}, float[1] dead = {2.0}>
        {
            a = Add(x, dead)
            b = Neg(a)
            y = Add(x, used)
            c = Exp(y)
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Add"]
    assert initializer_names(after) == ["used"]
    builder = GraphBuilder(model)
    assert builder.remove_unused() == 4
    builder.store.check()


def test_one_output_of_several_is_enough():
    model = parse(
        """
        agraph (float[6] x) => (float[3] a) {
            a, b = Split<axis=0, num_outputs=2>(x)
        }
        """
    )
    assert op_types(optimized(model)) == ["Split"]


def test_captured_results_stay():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y) <float[1] w = {3.0}>
        {
            a = Neg(x)
            dead = Abs(a)
            y = If (c) <
                then_branch = t () => (float[N] r) { r = Add(a, w) },
                else_branch = e () => (float[N] s) { s = Sub(a, w) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "If", "Add", "Sub"]
    assert initializer_names(after) == ["w"]


def test_dead_nodes_inside_branches():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y)
        {
            a = Neg(x)
            b = Exp(x)
            y = If (c) <
                then_branch = t () => (float[N] r) { u = Abs(b) r = Neg(a) },
                else_branch = e () => (float[N] s) { s = Abs(a) }
            >
        }
        """
    )
    after = optimized(model)
    # what the dead node of the branch read is dead as well
    assert op_types(after) == ["Neg", "If", "Neg", "Abs"]


def test_an_initializer_that_is_an_input_survives():
    model = parse(
        """
        agraph (float[N] x, float[1] w) => (float[N] y) <float[1] w = {3.0}> { y = Neg(x) }
        """
    )
    after = optimized(model)
    assert initializer_names(after) == ["w"]
    assert [i.name for i in after.graph.input] == ["x", "w"]


def test_do_not_remove():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, (2,))
    builder.make_node("Neg", ["x"], ["kept"], do_not_remove=True)
    builder.make_node("Identity", ["x"], ["kept_too"], do_not_remove=True)
    builder.make_node("Neg", ["x"], ["gone"])
    builder.make_node("Abs", ["x"], ["y"])
    builder.make_tensor_output("y")
    builder.optimization_options.patterns = None
    assert op_types(builder.to_onnx()) == ["Neg", "Identity", "Abs"]


def test_sparse_initializers():
    def sparse(name):
        values = oh.make_tensor(name, 1, [1], [5.0])
        return oh.make_sparse_tensor(values, oh.make_tensor("i", 7, [1], [1]), [3])

    model = parse("agraph (float[3] x) => (float[3] y) { y = Add(x, w) }")
    model.graph.sparse_initializer.extend([sparse("w"), sparse("unused")])
    after = optimized(model, run=False)
    assert [s.values.name for s in after.graph.sparse_initializer] == ["w"]
    assert GraphBuilder(model).has_name("w")


def test_unused_functions_are_removed():
    model = parse(
        """
        <ir_version: 8, opset_import: ["": 18, "f": 1]>
        agraph (float[N] x) => (float[N] y) { y = f.used(x) }
        <opset_import: ["": 18], domain: "f"> used (a) => (b) { b = f2(a) }
        """.replace("f2", "Neg")
        + '<opset_import: ["": 18], domain: "f"> unused (a) => (b) { b = Abs(a) }'
    )
    after = optimized(model, inline=False)
    assert [f.name for f in after.functions] == ["used"]


def test_results_nobody_reads_are_counted():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, (2,))
    builder.make_initializer("w", np.array([1], dtype=np.float32))
    builder.op.Add("x", "w", outputs=["a"])
    builder.op.Neg("a", outputs=["b"])
    builder.op.Abs("x", outputs=["y"])
    builder.make_tensor_output("y")
    assert builder.remove_unused() == 3
    assert builder.remove_unused() == 0
    assert not builder.has_name("a") and not builder.has_type("a")


def test_a_node_without_any_named_result():
    """No result of it can be read, whatever the others are."""
    model = parse("agraph (float[N] x) => (float[N] y) { y = Neg(x) }")
    model.graph.node.insert(0, oh.make_node("Split", ["x"], ["", ""], num_outputs=2))
    builder = GraphBuilder(model)
    assert builder.remove_unused() == 1 and builder.remove_unused() == 0
    assert op_types(builder.to_onnx(optimize=False)) == ["Neg"]
    builder.store.check()
