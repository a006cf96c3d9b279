"""Nodes without the inputs or the outputs their operator needs are refused when they are read."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from onnx import ModelProto, TensorProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError
from xbuilder.nodes.arity import arity_of


@pytest.mark.parametrize(
    "op_type,domain,opset,expected",
    [
        ("Add", "", 18, (2, 2, 1, 1)),
        ("Clip", "", 18, (1, 3, 1, 1)),
        ("Constant", "", 18, (0, 0, 1, 1)),
        ("Squeeze", "", 11, (1, 1, 1, 1)),
        ("Squeeze", "", 18, (1, 2, 1, 1)),
        ("Nobody", "", 18, None),
        ("Add", "mine", 18, None),
        ("Add", "", 0, None),
        ("Gelu", "", 18, None),
        ("Gelu", "", 20, (1, 1, 1, 1)),
        ("Scaler", "ai.onnx.ml", 1, (1, 1, 1, 1)),
    ],
)
def test_arity_of(op_type: str, domain: str, opset: int, expected: tuple | None) -> None:
    assert arity_of(op_type, domain, opset) == expected


def test_variadic() -> None:
    assert arity_of("Concat", "", 18)[1] > 10**6 and arity_of("Split", "", 18)[3] > 10**6


def make(op_type: str, inputs: list[str], outputs: list[str], domain: str = "", inner: bool = False) -> ModelProto:  # fmt: skip
    nodes = [oh.make_node(op_type, inputs, outputs, domain=domain)]
    x, y = (oh.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xy")
    c = oh.make_tensor_value_info("c", TensorProto.BOOL, [])
    if inner:
        branch = oh.make_graph([*nodes, oh.make_node("Neg", ["x"], ["t"])], "b", [], [oh.make_tensor_value_info("t", TensorProto.FLOAT, ["N"])])  # fmt: skip
        nodes = [oh.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    elif "y" not in outputs:
        nodes.append(oh.make_node("Neg", ["x"], ["y"]))
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("mine", 1)]
    return oh.make_model(oh.make_graph(nodes, "g", [x, c], [y]), opset_imports=opsets)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize(
    "op_type,inputs,outputs,message",
    [
        (
            "Add",
            ["x"],
            ["a"],
            r"Add\(x\) -> a has 1 input\(s\), at least 2 expected by operator Add of opset 18",
        ),
        ("Add", ["x", "x", ""], ["a"], r"has 3 input\(s\), at most 2 expected"),
        ("Neg", ["x"], ["a", "b"], r"has 2 output\(s\), at most 1 expected"),
        ("Neg", [], ["a"], r"Neg\(\) -> a has 0 input"),
        ("Identity", ["x"], [], r"has 0 output\(s\), at least 1"),
    ],
)
def test_refused(op_type, inputs, outputs, message, inner) -> None:
    builder = None
    with pytest.raises(InvalidModelError, match=message):
        builder = GraphBuilder(make(op_type, inputs, outputs, inner=inner))
        builder.optimize()
    assert builder is None or inner, "a subgraph is read when it is optimized"


@pytest.mark.parametrize(
    "op_type,inputs,domain",
    [("Clip", ["x"], ""), ("Clip", ["x", "", ""], ""), ("Nobody", [], ""), ("Add", [], "mine")],
)
def test_accepted(op_type: str, inputs: list[str], domain: str) -> None:
    GraphBuilder(make(op_type, inputs, ["y"], domain))


def test_function() -> None:
    """The body of a function is read when it is inlined, or never."""
    model = make("Nobody", ["x"], ["y"], "mine")
    body = [oh.make_node("Add", ["a"], ["b"])]
    function = oh.make_function("mine", "Nobody", ["a"], ["b"], body, [oh.make_opsetid("", 18)])
    model.functions.append(function)
    with pytest.raises(InvalidModelError, match=r"Add\(a\) -> b has 1 input"):
        GraphBuilder(model)
