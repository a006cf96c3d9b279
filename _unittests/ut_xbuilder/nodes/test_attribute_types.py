"""Attributes that the schema of an operator refuses are refused when a model is read."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import InvalidModelError
from xbuilder.nodes.attribute_types import (
    attribute_problem,
    attribute_types,
    default_attributes,
)
from xbuilder.nodes.attributes import attribute_value
from xbuilder.operators.opsets import newest_opset
from xoptim.testing import assert_same_outputs, run_onnxruntime

INT, INTS, TENSOR = AttributeProto.INT, AttributeProto.INTS, AttributeProto.TENSOR


def model_of(*nodes: NodeProto, inputs: str = "x") -> ModelProto:
    rows = [oh.make_tensor_value_info(n, TensorProto.FLOAT, ["a", "b"]) for n in inputs]
    results = [oh.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in nodes[-1].output]
    graph = oh.make_graph(list(nodes), "g", rows, results)
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("mine", 1)]
    return oh.make_model(graph, opset_imports=opsets, ir_version=10)


def branch_of(node: NodeProto) -> GraphProto:
    output = oh.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
    return oh.make_graph([node], "branch", [], [output])


def optimize(model: ModelProto) -> ModelProto:
    options = OptimizationOptions(patterns="default")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    return builder.to_onnx()


def test_attribute_types() -> None:
    assert attribute_types("Flatten", "", 18) == {"axis": INT}
    assert attribute_types("Nobody", "", 18) is None and attribute_types("Relu", "", 0) is None


@pytest.mark.parametrize(
    "op_type,given,expected",
    [
        ("Flatten", (("axis", INT),), ""),
        ("Flatten", (("axis", INTS),), "attribute 'axis' is of type INTS, INT expected"),
        ("Flatten", (("axis", INT), ("axis", INT)), "an attribute is given twice"),
        ("Flatten", (("other", INTS),), "it has no attribute 'other'; its attributes are axis"),
        ("Flatten", (("axes", INTS),), "it has no attribute 'axes', did you mean 'axis'? its"),
        ("Relu", (("alpha", INT),), "it has no attribute 'alpha'; its attributes are none"),
        ("Flatten", (("__other", INTS),), ""),
        ("LayerNormalization", (("other", INTS),), ""),
        ("Constant", (("value", TENSOR), ("other", INT)), ""),
        ("Cast", (), "attribute 'to' is missing"),
        ("Constant", (("value", INT),), "attribute 'value' is of type INT, TENSOR expected"),
        ("Constant", (("value", TENSOR),), ""),
        ("Constant", (), "exactly one of its attributes"),
        ("Constant", (("value", TENSOR), ("value_int", INT)), "exactly one of its attributes"),
        ("Nobody", (("axis", INTS),), ""),
    ],
)
def test_attribute_problem(op_type: str, given: tuple, expected: str) -> None:
    found = attribute_problem(op_type, "", 18, given)
    assert found.startswith(expected) and bool(found) == bool(expected)


@pytest.mark.parametrize(
    "op_type,values",
    [("EyeLike", {"dtype": [1]}), ("Multinomial", {"sample_size": [3]}), ("Bernoulli", {"dtype": [1]}), ("Cast", {}), ("Transpose", {"perm": 1})],
)  # fmt: skip
def test_refused(op_type: str, values: dict) -> None:
    with pytest.raises(InvalidModelError, match=rf"Node {op_type}\(x\) -> y .* attribute"):
        optimize(model_of(oh.make_node(op_type, ["x"], ["y"], **values)))


def test_attribute_with_two_values() -> None:
    """Which of them the author meant is not known; a Constant is read by the declared type."""
    node = oh.make_node("Softmax", ["x"], ["y"], axis=1)
    node.attribute[0].type, node.attribute[0].f = AttributeProto.FLOAT, 1.0
    with pytest.raises(InvalidModelError, match="'axis' is of type FLOAT, INT expected"):
        optimize(model_of(node))


def test_scan_with_a_list() -> None:
    info = [oh.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "abcd"]
    nodes = [oh.make_node("Add", ["a", "b"], ["c"]), oh.make_node("Neg", ["c"], ["d"])]
    body = oh.make_graph(nodes, "body", info[:2], info[2:])
    node = oh.make_node("Scan", ["x", "z"], ["y", "t"], body=body)
    node.attribute.append(oh.make_attribute("num_scan_inputs", [1]))
    with pytest.raises(InvalidModelError, match="'num_scan_inputs' is of type INTS, INT expected"):
        optimize(model_of(node, inputs="xz"))


def test_function() -> None:
    """The body of a function is checked; an attribute of the function has its type."""
    node = oh.make_node("Cast", ["a"], ["b"])
    node.attribute.append(AttributeProto(name="to", type=INT, ref_attr_name="kind"))
    opsets = [oh.make_opsetid("", 18)]
    model = model_of(oh.make_node("F", ["x"], ["y"], domain="mine", kind=1))
    model.functions.append(oh.make_function("mine", "F", ["a"], ["b"], [node], opsets, ["kind"]))
    assert len(optimize(model).graph.node) == 1
    model.functions[0].node[0].attribute[0].type = INTS
    with pytest.raises(InvalidModelError, match=r"Cast\(a\) -> b .* type INTS, INT expected"):
        GraphBuilder(model)


@pytest.mark.parametrize("kind", [2**63 - 1, -1])
@pytest.mark.parametrize("op_type", ["Cast", "EyeLike"])
def test_impossible_element_type(op_type: str, kind: int) -> None:
    name = {"Cast": "to", "EyeLike": "dtype"}[op_type]
    with pytest.raises(InvalidModelError, match=f"elements of type {kind}"):
        optimize(model_of(oh.make_node(op_type, ["x"], ["y"], **{name: kind})))


def test_element_type_of_a_newer_version() -> None:
    """An element type this version of onnx does not have: the constant is left as it is."""
    model = model_of(
        oh.make_node("Cast", ["w"], ["z"], to=2**31 - 1), oh.make_node("Neg", ["z"], ["y"])
    )
    model.graph.initializer.append(from_array(np.array([1], np.float32), "w"))
    assert [n.op_type for n in optimize(model).graph.node] == ["Cast", "Neg"]


def test_division_of_other_types() -> None:
    """Div of a float by an integer is not valid: it is not computed, nothing fails."""
    model = model_of(oh.make_node("Div", ["f", "i"], ["d"]), oh.make_node("Add", ["x", "d"], ["y"]))
    model.graph.initializer.append(from_array(np.array([2.5], np.float32), "f"))
    model.graph.initializer.append(from_array(np.array([2], np.int64), "i"))
    assert [n.op_type for n in optimize(model).graph.node] == ["Div", "Add"]


@pytest.mark.parametrize("mark", [b"NNNN", b"GGGG", b"MMMM"])
def test_documentation_is_not_utf8(mark: bytes) -> None:
    """The documentation of a node, of a graph or of a model may be written in anything."""
    model = model_of(oh.make_node("Transpose", ["x"], ["y"], doc_string="NNNN"))
    model.doc_string, model.graph.doc_string = "MMMM", "GGGG"
    broken = onnx.load_from_string(model.SerializeToString().replace(mark, b"\xff\xfe\xfd\xfc"))
    assert len(optimize(broken).graph.node) == 1


def test_operators_newer_than_onnx_may_have_other_attributes() -> None:
    newest = newest_opset()
    assert attribute_problem("Flatten", "", newest, (("other", INT),))
    assert not attribute_problem("Flatten", "", newest + 1, (("other", INT),))


EXTRA = {
    "unknown": (oh.make_node("Relu", ["x"], ["y"], alpha=1.0), False),
    "of an older opset": (oh.make_node("Relu", ["x"], ["y"], consumed_inputs=[1]), False),
    "of a newer opset": (oh.make_node("Clip", ["x"], ["y"], min=1.0), False),
    "of the runtime": (oh.make_node("Relu", ["x"], ["y"], __backend="a"), True),
    "of a lenient operator": (
        oh.make_node("LayerNormalization", ["x", "s"], ["y"], other=1),
        True,
    ),
    "in a branch": (
        oh.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch_of(oh.make_node("Relu", ["x"], ["a"], alpha=1.0)),
            else_branch=branch_of(oh.make_node("Relu", ["x"], ["b"])),
        ),
        False,
    ),
}


@pytest.mark.parametrize("case", EXTRA)
def test_what_onnxruntime_runs_is_not_refused(case: str) -> None:
    """And what it refuses is: both say which attribute."""
    node, runs = EXTRA[case]
    model = model_of(node)
    model.graph.initializer.append(from_array(np.ones(3, np.float32), "s"))
    model.graph.initializer.append(from_array(np.array(True), "c"))
    name = "alpha" if case == "in a branch" else node.attribute[-1].name
    feeds = {"x": np.ones((2, 3), np.float32)}
    if runs:
        expected = run_onnxruntime(model, feeds)
        with pytest.warns(UserWarning, match=f"{name!r}.*ignored"):
            optimized = optimize(model)
        assert_same_outputs(expected, run_onnxruntime(optimized, feeds), 0, 0, case)
        return
    with pytest.raises(Exception, match=f"Unrecognized attribute: {name}"):
        run_onnxruntime(model, feeds)
    with pytest.raises(InvalidModelError, match=f"no attribute {name!r}"):
        optimize(model)


def test_default_attributes() -> None:
    found = default_attributes("BatchNormalization", "", 15)
    assert {n: attribute_value(a) for n, a in found.items()} == {
        "epsilon": pytest.approx(1e-5),
        "momentum": pytest.approx(0.9),
        "training_mode": 0,
    }
    assert default_attributes("Softmax", "", 11)["axis"].i == 1
    assert default_attributes("Softmax", "")["axis"].i == -1
    assert default_attributes("Cast", "", 13) == {}, "to has no default"
    assert default_attributes("Nobody", "", 18) == default_attributes("Relu", "mine") == {}
