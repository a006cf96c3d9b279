"""The folds that may add to a model: their budget, their order."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.folding_rows import reasons
from ut_xbuilder.graph_checks import op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions


def test_the_budget_is_shared_with_functions_and_subgraphs():
    """Each fold adds 600 bytes, two of the three fit in what is left."""
    model = parse(
        """
        <ir_version: 10, opset_import: ["": 18, "f": 1]>
        agraph (float[N,1] x, bool c) => (float[N,152] y) <int64[1] s = {152}>
        {
            a = ConstantOfShape(s)
            z = f.g(x)
            v = Add(z, a)
            y = If (c) <
                then_branch = p () => (float[N,152] r) { b = ConstantOfShape(s) r = Add(v, b) },
                else_branch = q () => (float[N,152] e) { e = Neg(v) }
            >
        }
        <opset_import: ["": 18], domain: "f"> g (u) => (v)
        { s = Constant<value_ints=[152]>() a = ConstantOfShape(s) v = Add(u, a) }
        """
    )
    builder = GraphBuilder(
        model, optimization_options=OptimizationOptions(patterns=None, constant_size=610)
    )
    growth = builder.graph.scope.totals.growth
    growth.spent = 64 * 610 - 1300
    after = builder.to_onnx(inline=False)
    types = [*op_types(after), *op_types(after.functions[0])]
    assert types.count("ConstantOfShape") == 1
    assert growth.total == 64 * 610 and growth.spent <= growth.total


def test_budget_of_one_fold():
    model = parse(
        """
        agraph (float[N,1] x) => (float[N,500] y) <int64[2] shape = {1, 500}>
        { z = ConstantOfShape(shape) y = Add(x, z) }
        """
    )
    assert op_types(optimized(model)) == ["Add"]
    assert op_types(optimized(model, constant_size=1000)) == ["ConstantOfShape", "Add"]
    assert op_types(optimized(model, constant_size=4000)) == ["Add"]
    assert op_types(optimized(model, constant_size=0)) == ["ConstantOfShape", "Add"]


@pytest.mark.parametrize("weights,folded", [(1 << 10, False), (100 << 17, True)])
def test_the_budget_follows_the_weights(weights: int, folded: bool) -> None:
    """One percent of the weights, 64 kilobytes at least; the fold needs 128."""
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.FLOAT, ("N", 1))
    zeros = builder.op.ConstantOfShape(np.array([1, 1 << 15], dtype=np.int64))
    weight = builder.make_initializer("w", np.ones((1, weights // 4), dtype=np.float32))
    total = builder.op.ReduceSum(builder.op.Mul("x", weight))
    builder.op.Add(builder.op.Add("x", zeros), total, outputs=["y"])
    builder.make_tensor_output("y")
    onx, statistics = builder.to_onnx(return_optimize_report=True)
    assert ("ConstantOfShape" in op_types(onx)) == (not folded)
    assert ("the model would grow" in reasons(statistics)) == (not folded)


def expanded(n: int, chained: int = 0) -> onnx.ModelProto:
    """y = x + c0 + c1..., the constants take 800 bytes; the last one is the end of a chain."""
    nodes, tensors, name = [], [], "x"
    tensors.append(oh.make_tensor("s", TensorProto.INT64, [1], [200]))
    for i in range(n):
        value = oh.make_tensor("value", TensorProto.FLOAT, [1], [float(i)])
        nodes.append(oh.make_node("ConstantOfShape", ["s"], [f"c{i}"], value=value))
        last = f"c{i}"
        for j in range(chained if i == n - 1 else 0):
            nodes.append(oh.make_node("Cos", [last], [f"d{j}"]))
            last = f"d{j}"
        nodes.append(oh.make_node("Add", [name, last], [f"r{i}"]))
        name = f"r{i}"
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", 1, [200])],
        [oh.make_tensor_value_info(name, 1, [200])],
        tensors,
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def test_the_folds_that_remove_most_nodes_come_first() -> None:
    """Two folds fit in the budget: a chain of four nodes is one of them."""
    onx = optimized(expanded(6, chained=3), constant_size=800)
    assert op_types(onx).count("Cos") == 0, "64 times 800 bytes is enough for all"
    builder = GraphBuilder(
        expanded(6, chained=3),
        optimization_options=OptimizationOptions(patterns=None, constant_size=800),
    )
    builder.graph.scope.totals.growth.spent = 62 * 800
    types = op_types(builder.to_onnx())
    assert types.count("Cos") == 0 and types.count("ConstantOfShape") == 4


def test_what_a_refused_fold_depends_on_is_folded_alone() -> None:
    model = parse(
        """
        agraph (float[N,1] x) => (float[N,2000] y) <int64[1] n = {2000}, float[1] s = {2}>
        { t = Exp(s) u = Expand(t, n) v = Neg(u) y = Add(x, v) }
        """
    )
    after, statistics = optimized_with_rows(model, constant_size=100)
    assert op_types(after) == ["Expand", "Neg", "Add"]
    assert reasons(statistics) == {"the model would grow": 2}


def optimized_with_rows(model: onnx.ModelProto, **options: object) -> tuple:
    """The model and the rows of statistics, no pattern runs."""
    options = OptimizationOptions(patterns=None, **options)
    return GraphBuilder(model, optimization_options=options).to_onnx(return_optimize_report=True)


def test_a_second_run_does_not_spend_a_second_budget() -> None:
    model = expanded(100)
    once, statistics = optimized_with_rows(model)
    kept = op_types(once).count("ConstantOfShape")
    assert kept == 100 - 64 * 1024 // 800
    assert reasons(statistics)["the total budget is spent"] >= kept
    assert once.ByteSize() <= model.ByteSize() + 64 * 1024
    assert {p.key: p.value for p in once.metadata_props} == {
        "xoptim.folding_budget": f"{(100 - kept) * 800}/65536"
    }
    again, _ = optimized_with_rows(once)
    assert again.SerializeToString() == once.SerializeToString()
    more, _ = optimized_with_rows(once, constant_size=4096)
    assert "ConstantOfShape" not in op_types(more), "the user gives another budget"
    del once.metadata_props[:]
    assert op_types(optimized(once)).count("ConstantOfShape") == max(0, kept - 81)


def test_metadata_that_cannot_be_read_is_left_aside() -> None:
    model = expanded(2)
    oh.set_model_props(model, {"xoptim.folding_budget": "a lot", "other": "1"})
    after = optimized(model)
    assert "ConstantOfShape" not in op_types(after)
    assert {p.key: p.value for p in after.metadata_props} == {
        "xoptim.folding_budget": "a lot",
        "other": "1",
    }


@pytest.mark.parametrize(
    "first,second,folded",
    [
        ("Gather<axis=0>(w, zero)", "Gather<axis=0>(w, one)", True),
        ("Slice(w, begin, middle)", "Slice(w, middle, stop)", True),
        # the pieces are more than the weight
        ("Gather<axis=0>(w, zero)", "Slice(w, begin, stop)", False),
        # a piece depends on the input
        ("Gather<axis=0>(w, zero)", "Gather<axis=0>(w, j)", False),
        # something else reads the weight
        ("Gather<axis=0>(w, zero)", "Transpose<perm=[0, 2, 1]>(w)", False),
        ("Gather<axis=0>(w, zero)", "Identity(w)", False),
    ],
)
def test_a_weight_leaves_in_pieces(first: str, second: str, folded: bool) -> None:
    """The weight has 400,000 bytes, and each half is larger than the budget."""
    model = parse(
        f"""
        <ir_version: 10, opset_import: ["": 18]>
        agraph (float[1] x, int64 i) => (float y, float z)
        <int64 zero = {{0}}, int64 one = {{1}}, int64[1] begin = {{0}}, int64[1] middle = {{1}},
         int64[1] stop = {{2}}>
        {{ j = Mul(i, zero) a = {first} c = Add(a, x) y = ReduceSum<keepdims=0>(c)
           b = {second} d = Mul(b, x) z = ReduceSum<keepdims=0>(d) }}
        """
    )
    value = np.random.default_rng(0).random((2, 1000, 50)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(value, "w"))
    after = optimized(model)
    assert ("Gather" in op_types(after) or "Slice" in op_types(after)) == (not folded)
