"""Operators to write, and how they become nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization
from xoptim.authoring.right_side import NewNode, NewNodeFactory, NewResult, Writer, read_names
from xoptim.testing import model_from_text

op = NewNodeFactory(18)
TEXT = """agraph (float[a] X, bool c) => (float[a] Y, float[a] Z) {
    n = Neg(X) Y = Abs(n)
    Z = If(c) < then_branch = t () => (float[a] T) { T = Abs(n) },
                else_branch = e () => (float[a] E) { E = Abs(X) } > }"""


def optimizer() -> GraphBuilderPatternOptimization:
    return GraphBuilderPatternOptimization(GraphBuilder(model_from_text(TEXT)), None)


def test_operands() -> None:
    array = np.array([1.0])
    new = op.Anything("x", None, array, [1, 2], np.float32(3), op.Abs("y"), domain="custom")
    name, missing, same, integers, number, inner = new.inputs
    assert (name, missing) == ("x", "") and same is array and new.domain == "custom"
    assert integers.dtype == np.int64 and integers.tolist() == [1, 2]
    assert number.dtype == np.float32 and number.shape == ()
    assert isinstance(inner, NewNode) and repr(inner) == "Abs(y)"
    assert op.Concat([]).inputs[0].shape == (0,)


@pytest.mark.parametrize("value", [1, 1.5, True, [1.5], ["a"], [True], object(), {}])
def test_wrong_operands(value: Any) -> None:
    with pytest.raises(OptionError, match=r"An input of Add is .*use g.scalar"):
        op.Add("x", value)


def test_results() -> None:
    new = op.Split("x", outputs=2)
    assert [r.index for r in new] == [0, 1] and all(isinstance(r, NewResult) for r in new)
    assert new[1].node is new
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"Split gives 2 results, there is no {index}"):
            new[index]


def test_not_an_operator() -> None:
    with pytest.raises(AttributeError):
        op._private  # noqa: B018


@pytest.mark.parametrize(
    "opset, op_type, as_input",
    [
        (12, "Squeeze", False),
        (13, "Squeeze", True),
        (17, "ReduceMax", False),
        (18, "ReduceMax", True),
        (18, "LpNormalization", False),
    ],
)
def test_axes_follow_the_opset(opset: int, op_type: str, as_input: bool) -> None:
    new = getattr(NewNodeFactory(opset), op_type)("x", axes=(0, -1), keepdims=None)
    if as_input:
        assert new.inputs[1].tolist() == [0, -1] and not new.attributes
    else:
        assert new.inputs == ("x",) and new.attributes == {"axes": (0, -1)}
    assert getattr(NewNodeFactory(opset), op_type)("x", axes=None).inputs == ("x",)
    custom = getattr(NewNodeFactory(opset), op_type)("x", axes=[0], domain="custom")
    assert custom.attributes == {"axes": [0]}


def test_read_names() -> None:
    inner = op.Add("a", None)
    new = op.Mul(inner, op.Div(inner, "b", np.ones(2)), outputs=2)
    assert read_names({"y": new[1], "z": "c", "t": ""}) == {"a", "b", "c"}


def test_read_names_of_subgraphs() -> None:
    node = optimizer().node_before("Z")
    branches = {a.name: a for a in node.attribute}
    assert read_names({"Z": NewNode("If", ["c"], branches)}) == {"c", "n", "X"}
    graphs = {name: a.g for name, a in branches.items()}
    assert read_names({"Z": NewNode("If", ["c"], graphs)}) == {"c", "n", "X"}


def test_written_in_order_once() -> None:
    g = optimizer()
    inner = op.Sin("X")
    nodes = Writer(g, {"Y": op.Mul(inner, op.Add(inner, inner)), "n": inner}).nodes()
    assert [n.op_type for n in nodes] == ["Sin", "Add", "Mul"]
    assert [list(n.output) for n in nodes] == [["n"], [nodes[2].input[1]], ["Y"]]


def test_two_results_by_one() -> None:
    g, new = optimizer(), op.Sin("X")
    nodes = Writer(g, {"Y": new, "n": new[0], "Z": "X"}).nodes()
    assert [(n.op_type, *n.input, *n.output) for n in nodes] == [
        ("Sin", "X", "Y"),
        ("Identity", "Y", "n"),
        ("Identity", "X", "Z"),
    ]


def test_attributes() -> None:
    g = optimizer()
    made = oh.make_attribute("perm", [1, 0])
    new = NewNode("Transpose", ["X"], {"perm": made, "other": 2, "more": [0.5]})
    (node,) = Writer(g, {"Y": new}).nodes()
    values = {a.name: oh.get_attribute_value(a) for a in node.attribute}
    assert values == {"perm": [1, 0], "other": 2, "more": [0.5]}


def test_results_that_are_not_written() -> None:
    new = op.LayerNormalization("X", "s", outputs=3, missing=(1,))
    (node,) = Writer(optimizer(), {"Y": new[0], "n": new[2]}).nodes()
    assert list(node.output) == ["Y", "", "n"]


def test_constants_are_shared() -> None:
    g = optimizer()
    nodes = Writer(g, {"Y": op.Add(op.Add("X", np.ones(1)), np.ones(1))}).nodes()
    assert nodes[0].input[1] == nodes[1].input[1]
    assert list(g.builder.constants.initializers) == [nodes[0].input[1]]
