"""Patterns made of nodes selected in a model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim.testing import check_no_match, check_pattern, model_from_text
from xoptim.toolkit.selected_nodes import SelectedNodes, pattern_from_nodes, source_of_nodes

TEXT = """
g (float[n,4] x, float[n,4] y, bool t) => (float[n,4] r, float[n,2] b, float[n,4] i)
<float half = {0.5}, float[4] w = {1, 2, 3, 4}> {
    h = Mul(x, half)
    s = Softmax <axis=1> (h)
    r = Mul(s, y)
    a, b = Split <axis=1, num_outputs=2> (r)
    c = Clip(x, , half)
    i = If(t) <then_branch = g () => (float[n,4] u) { u = Add(c, w) },
               else_branch = e () => (float[n,4] v) { v = Relu(x) }>
}
"""


@pytest.fixture
def builder() -> GraphBuilder:
    return GraphBuilder(model_from_text(TEXT, 18))


def pattern_of(source: str, apply: Any) -> Any:
    """The pattern a source defines, with something to write."""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    cls = namespace["MinePattern"]
    with pytest.raises(NotImplementedError, match="write what replaces"):
        cls().apply_pattern(None, *[None] * (cls.apply_pattern.__code__.co_argcount - 2))
    cls.apply_pattern = apply
    return cls()


BEFORE = """g (float[m,3] p, float[m,3] q) => (float[m,3] z) <float half = {0.5}> {
    a = Mul(half, p) b = Softmax <axis=1> (a) c = Mul(q, b) z = Relu(c) }"""
AFTER = """g (float[m,3] p, float[m,3] q) => (float[m,3] z) <float two = {2}> {
    a = Div(p, two) b = Softmax <axis=1> (a) c = Mul(b, q) z = Relu(c) }"""


def divided(g: Any, x: str, y: str) -> str:
    """The same, with a division."""
    return g.op.Mul(g.op.Softmax(g.op.Div(x, np.array(2, np.float32)), axis=1), y)


def found_and_refused(pattern: Any) -> None:
    """It finds the same nodes elsewhere, operands exchanged, and nothing else."""
    check_pattern(BEFORE, AFTER, [pattern])
    check_no_match(BEFORE.replace("0.5", "0.25"), pattern)
    check_no_match(BEFORE.replace("axis=1", "axis=0"), pattern)


def test_pattern(builder):
    found_and_refused(pattern_from_nodes("Mine", builder, ["s", "h", "r"], divided))


def test_source(builder):
    source = source_of_nodes("Mine", builder, ["r", "h", "s"])
    found_and_refused(pattern_of(source, lambda self, g, x, y: divided(g, x, y)))


def test_source_is_readable(builder):
    assert (
        source_of_nodes("Mine", builder, ["h", "s"])
        == '''import numpy as np

from xoptim import EasyPatternOptimization


class MinePattern(EasyPatternOptimization):
    """Mul, Softmax -> ..."""

    def match_pattern(self, g, x):
        h = g.op.Mul(x, np.array(0.5, dtype=np.dtype('float32')))
        s = g.op.Softmax(h, axis=1)
        return s

    def apply_pattern(self, g, x):
        raise NotImplementedError("write what replaces Mul, Softmax, return s")
'''
    )


def test_what_goes_in_and_out(builder):
    selected = SelectedNodes.of(builder.graph, ["a"])
    assert (list(selected.inputs), list(selected.outputs)) == (["r"], ["b"])
    selected = SelectedNodes.of(builder.graph, ["r", "b"])
    assert (list(selected.inputs), list(selected.outputs)) == (["s", "y"], ["r", "b"])
    selected = SelectedNodes.of(builder.graph, ["c"])
    assert (list(selected.inputs), list(selected.outputs)) == (["x"], ["c"])
    assert list(selected.constants) == ["half"]
    assert [n.op_type for n in selected.model().graph.node] == ["Clip"]


def test_missing_inputs_several_results_and_domains():
    text = """g (float[n,4] x) => (float[n,2] a, float[n,2] b) <float half = {0.5}> {
        c = Clip(x, , half) d = com.microsoft.Gelu(c) a, b = Split <axis=1, num_outputs=2> (d) }"""
    model = model_from_text(text, 18)
    source = source_of_nodes("Mine", GraphBuilder(model), ["c", "d", "a"])
    assert "g.op.Clip(x, None, " in source and "domain='com.microsoft'" in source
    assert "a, b = g.op.Split(d, axis=1, num_outputs=2, outputs=2)" in source

    def apply(self: Any, g: Any, x: Any) -> Any:
        short = g.op.Min(x, np.array(0.5, np.float32))
        gelu = g.op.Gelu(short, domain="com.microsoft")
        return tuple(g.op.Split(gelu, axis=1, num_outputs=2, outputs=2))

    after = text.replace("Clip(x, , half)", "Min(x, half)")
    # Clip and Min have other answers to NaN
    check_pattern(model, after, [pattern_of(source, apply)], verifies=False)


VALUES = {
    "infinite": np.array([-np.inf, np.inf, np.nan], np.float32),
    "bfloat16": np.array([1.5], ml_dtypes.bfloat16),
    "bool": np.array([True, False]),
    "scalar": np.array(3, np.int64),
}


@pytest.mark.parametrize("case", VALUES)
def test_constants(case):
    value = VALUES[case]
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", onnx.TensorProto.FLOAT, ("n",))
    builder.make_initializer("c", value)
    builder.add_domain("any", 1)
    builder.make_node("Two", ["x", "c"], ["y"], domain="any")
    builder.make_tensor_output("y", allow_untyped_output=True)
    source = source_of_nodes("Mine", builder, ["y"])
    written = source.split("g.op.Two(x, ")[1].split(", domain=")[0]
    read = eval(written, {"np": np, "ml_dtypes": ml_dtypes})
    assert read.dtype == value.dtype
    np.testing.assert_array_equal(read, value)


def test_names_are_python_names():
    builder = GraphBuilder(18)
    builder.make_tensor_input("input.1", onnx.TensorProto.FLOAT, ("n",))
    builder.make_tensor_input("/class/", onnx.TensorProto.FLOAT, ("n",))
    builder.make_node("Add", ["input.1", "/class/"], ["1"])
    builder.make_node("Neg", ["1"], ["g"])
    builder.make_tensor_output("g")
    source = source_of_nodes("Mine", builder, ["1", "g"])
    assert "_1 = g.op.Add(input_1, _class)" in source and "g_2 = g.op.Neg(_1)" in source
    compile(source, "mine.py", "exec")


def test_nodes_by_name():
    model = model_from_text(TEXT, 18)
    model.graph.node[1].name = "the softmax"
    selected = SelectedNodes.of(GraphBuilder(model).graph, ["the softmax"])
    assert [n.op_type for n in selected.nodes] == ["Softmax"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["nothing"], "No node is called 'nothing'"),
        ([], "one node at least"),
        (["i"], "holds a subgraph"),
        (["x"], "No node is called 'x'"),
    ],
)
def test_bad_selections(builder, names, reason):
    with pytest.raises(OptionError, match=reason):
        source_of_nodes("Mine", builder, names)


def test_results_nobody_reads():
    builder = GraphBuilder(
        model_from_text("g (float[n] x) => (float[n] y) { a = Neg(x) y = Abs(x) }", 18)
    )
    with pytest.raises(OptionError, match="Nothing reads"):
        source_of_nodes("Mine", builder, ["a"])


@pytest.mark.parametrize("name", ["two words", "class", ""])
def test_bad_names(builder, name):
    with pytest.raises(OptionError, match="is not the name of a class"):
        source_of_nodes(name, builder, ["h"])


def test_unknown_types():
    builder = GraphBuilder(
        model_from_text("g (float[n] x) => (float[n] y) { a = any.Two(x) y = Abs(a) }", 18)
    )
    with pytest.raises(OptionError, match="type of .*a.* is not known"):
        pattern_from_nodes("Mine", builder, ["y"], lambda g, a: g.op.Neg(a))
