"""Nodes computing the same constant are computed once."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes.equal_nodes import merge_equal_nodes

TWINS = {
    "same initializer": "a = Exp(s) b = Exp(s)",
    "equal initializers": "a = Exp(s) b = Exp(t)",
    "chains": "c = Exp(s) d = Exp(t) a = Neg(c) b = Neg(d)",
    "attributes": "a = ReduceSum<keepdims=1>(s) b = ReduceSum<keepdims=1>(t)",
    "a default value": "a = ReduceSum(s) b = ReduceSum<keepdims=1>(t)",
    "swapped operands": "a = Add(s, u) b = Add(u, t)",
    "a default permutation": "a = Transpose(s) b = Transpose<perm=[0]>(t)",
}
OTHERS = {
    "operators": "a = Exp(s) b = Cos(t)",
    "inputs": "a = Exp(s) b = Exp(u)",
    "attributes": "a = ReduceSum<keepdims=1>(s) b = ReduceSum<keepdims=0>(t)",
    "order": "a = Sub(s, u) b = Sub(u, s)",
    "an output": "a = Exp(s) z = Exp(s) b = Neg(s)",
}


def builder_of(body: str) -> GraphBuilder:
    """y = x + a + b, nothing is folded yet."""
    text = f"""agraph (float[N,1] x) => (float[N,1] y{", float[1] z" * ("z =" in body)})
        <float[1] s = {{2}}, float[1] t = {{2}}, float[1] u = {{3}}>
        {{ {body} m = Add(x, a) y = Add(m, b) }}"""
    return GraphBuilder(
        parse(text), optimization_options=OptimizationOptions(patterns=None, constant_size=0)
    )


def merged(body: str) -> tuple[int, GraphBuilder]:
    """Number of nodes merged."""
    builder = builder_of(body)
    records = [r for r in builder.store.nodes if r.outputs[0] in builder.constants.computed]
    count = merge_equal_nodes(builder.graph, records)
    builder.store.check()
    return count, builder


@pytest.mark.parametrize("case", TWINS)
def test_twins(case: str) -> None:
    count, builder = merged(TWINS[case])
    assert count == (2 if case == "chains" else 1)
    assert builder.store.readers("a") and not builder.store.is_used("b")


@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str) -> None:
    count, _ = merged(OTHERS[case])
    assert count == 0


def test_twins_among_nodes_alike() -> None:
    """The first of the nodes alike has other attributes than the next two."""
    count, builder = merged(
        "a = ReduceSum<keepdims=1>(s) b = ReduceSum<keepdims=0>(t) c = ReduceSum<keepdims=0>(s)"
    )
    assert count == 1 and op_types(builder.to_onnx(optimize=False)).count("ReduceSum") == 2


def test_a_constant_is_computed_once() -> None:
    """Sixty times the same weight of 20 kilobytes takes its room once."""
    rows = " ".join(f"w{i} = ConstantOfShape(s) r{i + 1} = Add(r{i}, w{i})" for i in range(60))
    text = f"""agraph (float[1] r0) => (float[5000] r60) <int64[1] s = {{5000}}> {{ {rows} }}"""
    assert "ConstantOfShape" not in op_types(optimized(parse(text)))
