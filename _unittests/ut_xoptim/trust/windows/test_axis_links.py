"""Links of axes: those of each operator, and models whose linked axes are cut still run."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx.reference import ReferenceEvaluator

from xbuilder import GraphBuilder
from xoptim.testing import model_from_text
from xoptim.trust.windows.axis_links import AxisLinks, link_nodes

#: inputs, node, the groups of axes that are cut together: those of 1 element are left out
CASES = [
    ("float[8, 9] x", "y = Tanh(x)", "x0y0 x1y1"),
    ("float[8, 9] x, float[9] s", "y = Mul(x, s)", "x0y0 x1s0y1"),
    ("float[8, 9] x, float[8, 1] s", "y = Mul(x, s)", "x0s0y0 x1y1"),
    ("bool[9] c, float[8, 9] x, float s", "y = Where(c, x, s)", "x0y0 c0x1y1"),
    ("float[8, 9] x", "y = Softmax<axis = 1>(x)", "x0y0 x1y1"),
    ("float[8, 9] x, float[9] s", "y = LayerNormalization(x, s)", "x0y0 x1s0y1"),
    (
        "float[8, 9, 7] x, float[9] s, float[9] b, float[9] m, float[9] v",
        "y = BatchNormalization(x, s, b, m, v)",
        "x0y0 x1s0b0m0v0y1 x2y2",
    ),
    (
        "float[8, 9, 12] x, float[7, 9, 3] w, float[7] b",
        "y = Conv(x, w, b)",
        "x0y0 x1w1 w0b0y1 x2y2",
    ),
    (
        "float[8, 6, 12] x, float[6, 2, 3] w",
        "y = Conv<group = 3, strides = [2]>(x, w)",
        "x0y0 x2y2",
    ),
    ("float[8, 9, 12] x, float[9, 7, 3] w", "y = ConvTranspose(x, w)", "x0y0 x1w0 w1y1 x2y2"),
    ("float[8, 9, 12] x", "y = MaxPool<kernel_shape = [2]>(x)", "x0y0 x1y1 x2y2"),
    ("float[8, 9, 12] x", "y = GlobalAveragePool(x)", "x0y0 x1y1 x2"),
    ("float[8, 9] x, float[9, 7] w", "y = MatMul(x, w)", "x0y0 x1w0 w1y1"),
    ("float[6, 8, 9] x, float[6, 9, 7] w", "y = MatMul(x, w)", "x0w0y0 x1y1 x2w1 w2y2"),
    ("float[5, 6, 8, 9] x, float[1, 9, 7] w", "y = MatMul(x, w)", "x0y0 x1y1 x2y2 x3w1 w2y3"),
    ("float[9] x, float[9, 7] w", "y = MatMul(x, w)", ""),
    (
        "float[9, 8] x, float[7, 9] w, float[7] b",
        "y = Gemm<transA = 1, transB = 1>(x, w, b)",
        "x1y0 x0w1 w0b0y1",
    ),
    ("float[7, 8, 9] x", "y = Transpose<perm = [2, 0, 1]>(x)", "x0y1 x1y2 x2y0"),
    ("float[7, 8] x, float[6, 8] w", "y = Concat<axis = 0>(x, w)", "x1w1y1"),
    ("float[7, 8] x", "y, z = Split<axis = 1, num_outputs = 2>(x)", "x0y0z0"),
    ("float[7, 8, 9] x", "y = ReduceMax<axes = [-1], keepdims = 0>(x)", "x0y0 x1y1 x2"),
    ("float[7, 8, 9] x", "y = ReduceMax<axes = [1]>(x)", "x0y0 x1 x2y2"),
    ("float[7, 8, 9] x", "y = ReduceMax<keepdims = 0>(x)", ""),
    ("float[7, 1, 9] x", "k = Constant<value_ints = [1]>() y = Squeeze(x, k)", "x0y0 x2y1"),
    ("float[7, 9] x", "k = Constant<value_ints = [1]>() y = Unsqueeze(x, k)", "x0y0 x1y2"),
    ("float[7, 8, 9] x, int64[5, 6] i", "y = Gather<axis = 1>(x, i)", "x0y0 i0y1 i1y2 x2y3"),
    (
        "float[7, 8, 9] x",
        "k = Constant<value_ints = [1]>() e = Constant<value_ints = [5]>() y = Slice(x, k, e, k)",
        "x0y0 x2y2",
    ),
    ("float[7, 8, 9] x", "y = Flatten(x)", ""),
    ("float[7, 8] x", "y = com.microsoft.Gelu(x)", ""),
]


def links_of(inputs: str, nodes: str) -> tuple[onnx.ModelProto, AxisLinks]:
    """A model of one node, and its links."""
    opset = 17 if "ReduceMax<" in nodes else 18
    model = model_from_text(f"g ({inputs}) => (y) {{ {nodes} }}", opset=opset)
    graph = GraphBuilder(model, infer_shapes_options=True).graph
    names = dict.fromkeys(n for node in model.graph.node for n in (*node.input, *node.output))
    links = AxisLinks({name: graph.facts[name].shape for name in names})
    constants = {n: graph.constants.value(n) for n in names if graph.constants.is_constant(n)}
    link_nodes([n for n in model.graph.node if n.input], links, constants)
    return model, links


@pytest.mark.parametrize("inputs, nodes, expected", CASES)
def test_groups(inputs: str, nodes: str, expected: str) -> None:
    links = links_of(inputs, nodes)[1]
    groups = [{p for p in group if links.size(p) != 1} for group in links.groups()]
    found = {frozenset(f"{name}{axis}" for name, axis in group) for group in groups}
    assert found - {frozenset()} == {
        frozenset(re.findall("[a-z][0-9]", g)) for g in expected.split()
    }


@pytest.mark.parametrize("inputs, nodes, expected", [c for c in CASES if c[2]])
def test_cut_inputs_run(inputs: str, nodes: str, expected: str) -> None:
    """Inputs whose linked axes have 4 rows give results that have 4 rows as well."""
    model, links = links_of(inputs, nodes)
    shapes = {
        i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input
    }
    whole = {name: list(links.shapes[name] or ()) for name in links.shapes}
    for group in links.groups():
        sizes = {links.size(p) for p in group if p[0] in shapes}
        if len(sizes) == 1 and 1 not in sizes:
            for name, axis in group:
                if name in shapes:
                    shapes[name][axis] = 4
                whole[name][axis] = 4 if links.size((name, axis)) in sizes else None
    rng = np.random.default_rng(0)
    kinds = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    feeds = {
        name: rng.integers(0, 2, shape).astype(oh.tensor_dtype_to_np_dtype(kinds[name]))
        for name, shape in shapes.items()
    }
    (got,) = ReferenceEvaluator(model).run(None, feeds)
    assert [a for a, b in zip(got.shape, whole["y"], strict=True) if b is not None and a != b] == []


def test_unknown_forms() -> None:
    """An unknown axis keeps all of them: attributes before opset 7, an unknown or wrong rank."""
    nodes = model_from_text(
        "g (float[8, 9] x, float[8] s) => (y) { y = Add<axis = 0, broadcast = 1>(x, s) }", opset=6
    ).graph.node
    for shapes in ({"x": (8, 9), "s": (8,), "y": (8, 9)}, {"x": (8, 9), "s": (8,), "y": None}):
        links = AxisLinks(shapes)
        link_nodes(nodes, links, {})
        assert links.groups() == []
    nodes[0].ClearField("attribute")
    links = AxisLinks({"x": (8, 9), "s": (9,), "y": (9,)})
    link_nodes(nodes, links, {})
    assert {p for group in links.groups() for p in group} == {("s", 0), ("x", 1), ("y", 0)}


def test_captured_results_are_kept() -> None:
    text = """g (float[8, 9] x, bool c) => (y) {
        t = Tanh(x) y = If (c) <then_branch = a () => (u) { u = Neg(t) },
                                else_branch = b () => (v) { v = Abs(t) }> }"""
    links = AxisLinks({"x": (8, 9), "c": (), "t": (8, 9), "y": (8, 9)})
    link_nodes(model_from_text(text).graph.node, links, {})
    assert links.groups() == []
