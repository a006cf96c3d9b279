"""The other names of the queries, for existing patterns."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ut_xoptim.authoring.rewrite_forms import fresh

from xbuilder import FactError, FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text, optimizer_of

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64

TEXT = """agraph (float[batch, 4] X) => (float[batch, 4] Y) <
    float[4] w = {1, 2, 3, 4}, int64[2] shape = {0, 4}, float one = {1}, int64 index = {1},
    float[1, 1] mat = {1}
> {
    a = Relu(X)
    b = Add(a, w)
    ww = Add(w, w)
    two = Mul(ww, w)
    d = Softmax<axis = 1>(b)
    Y = Add(d, two)
}"""


@pytest.fixture(scope="module")
def g() -> GraphBuilderPatternOptimization:
    return optimizer_of(TEXT)


def node(g: GraphBuilderPatternOptimization, name: str) -> onnx.NodeProto:
    """The node giving a result."""
    found = g.node_before(name)
    assert found is not None
    return found


def test_node_before(g) -> None:
    assert node(g, "b").op_type == "Add"
    for name in ("X", "w", "", "missing"):
        assert g.node_before(name) is None
    assert g.node_before("b") is g.node_before("b")


def test_position(g) -> None:
    assert g.get_position(node(g, "a")) < g.get_position(node(g, "b"))
    assert g.record(node(g, "a")).op_type == "Relu"
    with pytest.raises(OptionError, match="is not a node of this graph"):
        g.get_position(onnx.helper.make_node("Relu", ["X"], ["a"]))


def test_types(g) -> None:
    assert g.has_type("a") and g.get_type("a") == FLOAT
    assert g.get_type("shape") == INT64
    assert g.try_infer_type("a") == FLOAT and g.try_infer_type("missing") == 0
    with pytest.raises(Exception, match="missing"):
        g.try_infer_type("missing", exc=True)


def test_a_model_read_without_inference() -> None:
    """A pattern may ask: what it asks for is inferred."""
    model = model_from_text(TEXT)
    builder = GraphBuilder(model, infer_shapes_options=False)
    assert not builder.has_shape("b")
    g = GraphBuilderPatternOptimization(builder, "default")
    assert g.try_infer_type("b") == FLOAT and g.try_infer_shape("b") == ("batch", 4)
    assert g.get_shape("d") == ("batch", 4) and g.has_type("two")
    for name in ("default", "default+onnxruntime"):
        options = OptimizationOptions(patterns=name)
        found = [
            GraphBuilder(model, infer_shapes_options=infer, optimization_options=options).to_onnx()
            for infer in (False, True)
        ]
        assert [n.op_type for n in found[0].graph.node] == [n.op_type for n in found[1].graph.node]


def test_shapes(g) -> None:
    assert g.has_shape("a") and not g.has_shape("a", full=True) and g.has_shape("w", full=True)
    assert g.get_shape("b") == ("batch", 4)
    assert g.has_rank("b") and g.get_rank("b") == 2
    assert not g.has_rank("missing") and not g.has_shape("missing")
    assert g.try_infer_shape("b") == ("batch", 4) and g.try_infer_shape("missing") is None
    with pytest.raises(Exception, match="missing"):
        g.try_infer_shape("missing", exc=True)


def test_computed_constant(g) -> None:
    assert g.get_computed_constant("two").tolist() == [2, 8, 18, 32]
    assert g.get_computed_constant("X") is None
    assert g.get_computed_constant("two", ["min", "max"]) == [2, 32]
    assert g.get_computed_constant("X", ["min"]) is None
    with pytest.raises(OptionError, match="Unknown statistics"):
        g.get_computed_constant("two", ["median"])


@pytest.mark.parametrize(
    ("op_type", "opset", "as_input"),
    [
        ("Unsqueeze", 11, False),
        ("Unsqueeze", 13, True),
        ("ReduceSum", 13, True),
        ("ReduceMax", 13, False),
        ("ReduceMax", 18, True),
    ],
)
def test_make_node_check_opset(op_type: str, opset: int, as_input: bool) -> None:
    g = fresh(opset)
    made = g.make_node_check_opset(op_type, ["X"], ["new"], axes=[0])
    assert (len(made.input) == 2) is as_input
    if as_input:
        assert g.get_computed_constant(made.input[1]).tolist() == [0]
    else:
        assert g.get_attribute_with_default(made, "axes", None) == [0]
    assert len(g.make_node_check_opset(op_type, "X", ["new"]).input) == 1


def test_op_and_anyop() -> None:
    g = fresh()
    made = g.op.Add("X", np.array([1], dtype=np.float32), outputs=["new"])
    assert made.op_type == "Add" and g.is_constant(made.input[1]) and list(made.output) == ["new"]
    assert list(g.op.Clip("X", None, "X").input) == ["X", "", "X"]
    other = g.anyop.Special("X", domain="other", alpha=2.0)
    assert other.domain == "other"
    with pytest.raises(AttributeError):
        g.op._hidden  # noqa: B018


def test_iter_nodes(g) -> None:
    assert [n.op_type for n in g.iter_nodes()][:3] == ["Relu", "Add", "Add"]
    assert g.builder.store is g.store


def test_is_input(g) -> None:
    assert g.is_input("X") and not g.is_input("w")


def test_constant_scalar(g) -> None:
    assert g.get_constant_scalar("one") == 1.0 and isinstance(g.get_constant_scalar("one"), float)
    assert g.get_constant_scalar("index") == 1 and isinstance(g.get_constant_scalar("index"), int)
    assert g.get_constant_scalar("mat", broadcast=True) == 1.0
    with pytest.raises(OptionError, match="not a scalar constant"):
        g.get_constant_scalar("w")


def test_attribute(g) -> None:
    softmax = node(g, "d")
    assert g.get_attribute(softmax, "axis").i == g.get_attribute(softmax, att_name="axis").i == 1
    assert g.get_attribute(softmax, "missing", exc=False) is None
    with pytest.raises(OptionError, match="has no attribute 'missing'"):
        g.get_attribute(softmax, "missing")


def test_local_functions_and_texts() -> None:
    g = optimizer_of(TEXT)
    inner = GraphBuilder(18)
    inner.make_tensor_input("u", FLOAT, ("n",))
    inner.op.Neg("u", outputs=["v"])
    inner.make_tensor_output("v")
    assert not g.has_local_function("F", "d")
    added, key = g.make_local_function(inner, FunctionOptions(name="F", domain="d"))
    assert added == [] and key == ("d", "F") and g.has_local_function("F", "d")
    assert g.pretty_node(node(g, "d")) == "d = Softmax(b, axis=1)"
    assert g.pretty_node(node(g, "d"), limit=10) == "d = Sof..." and g.pretty_node(None) == "None"


def test_the_shape_of_a_constant(g) -> None:
    assert g.get_constant_shape("w") == (4,) == g.get_constant_shape("w", exc=True)
    assert g.get_constant_shape("X") is None
    with pytest.raises(FactError, match="'X' is no constant"):
        g.get_constant_shape("X", exc=True)
    assert g.get_attribute_with_default(node(g, "d"), "axis", default_value=-1) == 1
    assert g.get_attribute_with_default(node(g, "a"), "axis", default_value=-1) == -1
