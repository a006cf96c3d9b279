"""Operations and memory, as formulas."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from xbuilder import GraphBuilder
from xbuilder.dims import prove_equal
from xoptim.reports.costs import Costs, costs_of, operations_of
from xoptim.testing import model_from_text

MS = '<ir_version: 8, opset_import: ["" : 23, "com.microsoft" : 1]> '
#: a graph, its weights, its operations
COUNTED = {
    "MatMul": (
        "g (float[b, n, 8] x) => (float[b, n, 5] y) { y = MatMul(x, w) }",
        {"w": (8, 5)},
        "80*b*n",
    ),
    "Gemm": (
        "g (float[8, b] x) => (float[b, 5] y) { y = Gemm<transA = 1>(x, w) }",
        {"w": (8, 5)},
        "80*b",
    ),
    "Conv": (
        """g (float[b, 4, h, w] x) => (float[b, 6, p, q] y)
        { y = Conv<group = 2, kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, k) }""",
        {"k": (6, 2, 3, 3)},
        "216*b*h*w",
    ),
    "ConvTranspose": (
        "g (float[b, 4, 5, 5] x) => (float[b, 2, 7, 7] y) { y = ConvTranspose(x, k) }",
        {"k": (4, 2, 3, 3)},
        "3600*b",
    ),
    "LSTM": (
        """g (float[s, b, 3] x) => (float[s, 1, b, 4] y)
        { y, h, c = LSTM<hidden_size = 4>(x, k, r) }""",
        {"k": (1, 16, 3), "r": (1, 16, 4)},
        "224*b*s",
    ),
    "Einsum": (
        """g (float[b, i, 3] x, float[b, j, 3] z) => (float[b, i, j] y)
        { y = Einsum<equation = "bik,bjk->bij">(x, z) }""",
        {},
        "6*b*i*j",
    ),
    "Attention": (
        """g (float[b, 2, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v)
        => (float[b, 2, s, 8] y) { y = Attention(q, k, v) }""",
        {},
        "64*b*s*t",
    ),
    "MultiHeadAttention": (
        f"""{MS} g (float[b, s, 16] q, float[b, t, 16] k, float[b, t, 16] v)
        => (float[b, s, 16] y)
        {{ y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v) }}""",
        {},
        "64*b*s*t",
    ),
    "packed Attention": (
        f"""{MS} g (float[b, s, 12] x) => (float[b, s, 16] y)
        {{ y = com.microsoft.Attention<num_heads = 2>(x, w, c) }}""",
        {"w": (12, 48), "c": (48,)},
        "1152*b*s + 64*b*s**2",
    ),
    "packed Attention with sizes": (
        f"""{MS} g (float[b, s, 12] x) => (float[b, s, 16] y)
        {{ y = com.microsoft.Attention<num_heads = 2, qkv_hidden_sizes = [8, 8, 16]>(x, w, c) }}""",
        {"w": (12, 32), "c": (32,)},
        "768*b*s + 48*b*s**2",
    ),
    "Relu": ("g (float[b, 3] x) => (float[b, 3] y) { y = Relu(x) }", {}, 0),
}
CHAIN = """g (float[b, 8] x) => (float[b, 8] y)
{ a = MatMul(x, w) c = MatMul(a, w) y = Gemm(c, w) }"""


def costs(text: str, weights: dict[str, tuple[int, ...]] | None = None, **sizes: int) -> Costs:
    model = model_from_text(text, 23)
    for name, shape in (weights or {}).items():
        model.graph.initializer.append(onh.from_array(np.zeros(shape, np.float32), name))
    return costs_of(GraphBuilder(model, infer_shapes_options=True).graph, sizes)


@pytest.mark.parametrize("name", COUNTED)
def test_operations(name):
    text, weights, expected = COUNTED[name]
    found = costs(text, weights)
    assert prove_equal(found.total, expected) is True, found.total
    assert not found.uncounted


def test_sum_and_values():
    found = costs(CHAIN, {"w": (8, 8)}, b=3)
    assert found.operations == {"MatMul": "256*b", "Gemm": "128*b"}
    assert (found.total, found.at(found.total)) == ("384*b", 1152)
    assert costs(CHAIN, {"w": (8, 8)}).at("b") is None


def test_a_node_alone():
    node = oh.make_node("MatMul", ["x", "w"], ["y"])
    assert operations_of(node, [(2, 3), (3, 4)], [(2, 4)]) == 48
    assert operations_of(node, [None, (3, 4)], [(2, 4)]) is None
    assert operations_of(oh.make_node("Relu", ["x"], ["y"]), [(2,)], [(2,)]) == 0
    packed = oh.make_node("Attention", ["x", "w", "", "", "p"], ["y", "q"], domain="com.microsoft")
    shapes = [(1, 2, 6), (6, 18), None, None, (2, 1, 3, 4, 2)]
    assert operations_of(packed, shapes, [(1, 2, 6), (2, 1, 3, 6, 2)]) == 2 * (2 * 6 * 18 + 144)
    assert operations_of(packed, [None, (6, 18)], [None]) is None


def test_peak():
    """The operands of a node and its result live together; halves take two bytes."""
    text = """g (float[b, 10] x) => (float[b, 10] y) {
        a = Neg(x) c = Concat<axis = 1>(a, a, a) d = Cast<to = 10>(c) e = ReduceSum<keepdims = 1>(d)
        f = Cast<to = 1>(e) y = Add(x, f) }"""
    found = costs(text, b=2)
    assert (found.peak, found.peak_result, found.at(found.peak)) == ("180*b", "d", 360)


def test_outputs_live_until_the_end():
    text = """g (float[b, 10] x) => (float[b, 10] y, float[b, 10] z)
    { y = Neg(x) a = Abs(x) z = Exp(a) }"""
    assert costs(text).peak == "120*b"


def test_uncounted():
    text = """g (float[b, 10] x, float z, bool c) => (float[b, 10] y) {
        y = If(c) < then_branch = t () => (float[b, 10] o) { o = Neg(x) },
                    else_branch = e () => (float[b, 10] p) { p = Abs(x) } > }"""
    assert dict(costs(text).uncounted) == {"If": 1}
    unknown = "g (float x, float z) => (float y) { a = Squeeze(x) c = Squeeze(z) y = MatMul(a, c) }"
    model = model_from_text(unknown, 23)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    found = costs_of(GraphBuilder(model, infer_shapes_options=True).graph)
    assert dict(found.uncounted) == {"MatMul": 1} and found.total == 0


def test_empty_graph():
    assert costs("g (float[b] x) => (float[b] x) { }").peak == 0
