"""Queries a pattern may ask about the graph."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ut_xoptim.authoring.rewrite_forms import fresh

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text, optimizer_of

FLOAT = onnx.TensorProto.FLOAT

TEXT = """agraph (float[batch, 4] X, bool cond, float[batch, 4] Z)
=> (float[batch, 4] Y, float[n, m] R) <
    float[4] w = {1, 2, 3, 4}, float one = {1}, float[1] vec = {1}, float[1, 1] mat = {1},
    int64[2] shape = {0, 4}, int64 index = {1}
> {
    a = Relu(X)
    b = Add(a, w)
    c = Mul(a, b)
    Y = If(cond) <
        then_branch = tg () => (float[batch, 4] T) { T = Identity(c) },
        else_branch = eg () => (float[batch, 4] E) { E = Neg(X) }
    >
    d = Softmax<axis = 1>(b)
    R = Unknown.Op(d, one)
    s = Sigmoid(b)
    ww = Add(w, w)
    two = Mul(ww, w)
    g = Gather<axis = 0>(two, index)
    h = Add(s, g)
    k = Add(s, s)
    big = Expand(one, shape)
}"""


@pytest.fixture(scope="module")
def g() -> GraphBuilderPatternOptimization:
    model = model_from_text(TEXT, domains=("Unknown",))
    return optimizer_of(model, processor="CPU,CUDA")


def node(g: GraphBuilderPatternOptimization, name: str) -> onnx.NodeProto:
    """The node giving a result."""
    found = g.producer_or_none(name)
    assert found is not None
    return found


def test_producer(g) -> None:
    assert g.producer_or_none("b") is g.producer_or_none("b", "Relu", "Add") is node(g, "b")
    assert g.producer_or_none("b", "Relu") is None
    assert g.producer_or_none("R", "Op") is None, "another domain"
    assert g.producer_or_none("R", "Unknown::Op") is node(g, "R")
    for name in ("X", "w", "", "missing"):
        assert g.producer_or_none(name) is None


def test_reader(g) -> None:
    assert g.reader_or_none("ww") is g.reader_or_none("ww", "Mul") is node(g, "two")
    assert g.reader_or_none("ww", "Add") is None
    assert g.reader_or_none("d", "Op") is None, "another domain"
    assert g.reader_or_none("d", "Unknown::Op") is node(g, "R")
    for name in ("a", "s", "c", "Y", "k", "missing"):
        assert g.reader_or_none(name) is None, "several uses, a subgraph, an output, or no reader"


def test_either_order(g) -> None:
    assert g.either_order(node(g, "b")) == (("a", "w"), ("w", "a"))


def test_facts(g) -> None:
    assert (g.type_or_none("a"), g.type_or_none("missing")) == (FLOAT, None)
    assert (g.shape_or_none("b"), g.shape_or_none("missing")) == (("batch", 4), None)
    assert (g.rank_or_none("b"), g.rank_or_none("missing")) == (2, None)
    assert g.constant_or_none("two").tolist() == [2, 8, 18, 32]
    assert g.constant_or_none("X") is None and g.constant_or_none("") is None


def test_next_nodes(g) -> None:
    assert [n.op_type for n in g.next_nodes("a")] == ["Add", "Mul"]
    assert [n.op_type for n in g.next_nodes("X")] == ["Relu", "If"]
    assert g.next_nodes("Y") == [] and g.next_nodes("missing") == []


def test_next_node(g) -> None:
    assert g.next_node("d").op_type == "Op"
    assert g.next_node("a") is None, "two readers"
    assert g.next_node("Y") is None, "no reader"
    assert g.next_node("c").op_type == "If", "a subgraph reads it"


def test_is_used(g) -> None:
    assert g.is_used("a") and g.is_used("Y") and g.is_used("c")
    assert not g.is_used("k")


def test_is_used_more_than_once(g) -> None:
    assert g.is_used_more_than_once("a")
    assert g.is_used_more_than_once("s"), "twice by one node and once by another"
    assert not g.is_used_more_than_once("d")
    assert not g.is_used_more_than_once("Y"), "an output that nothing reads"
    assert g.is_used_more_than_once("c"), "a subgraph may read it several times"


def test_is_used_only_by(g) -> None:
    add, mul = node(g, "b"), node(g, "c")
    assert g.is_used_only_by("a", add, mul)
    assert not g.is_used_only_by("a", add)
    assert not g.is_used_only_by("Y", add), "an output"
    assert not g.is_used_only_by("c", node(g, "Y")), "a subgraph"
    assert g.is_used_only_by("s", node(g, "h"), node(g, "k"))


def test_is_used_by_subgraph(g) -> None:
    assert g.is_used_by_subgraph("c") and g.is_used_by_subgraph("X")
    assert not g.is_used_by_subgraph("a")


def test_is_output(g) -> None:
    assert g.is_output("Y") and not g.is_output("c")


def test_same_shape(g) -> None:
    assert g.same_shape("a", "c") and g.same_shape("X", "b")
    assert not g.same_shape("a", "w")
    assert not g.same_shape("a", "missing") and not g.same_shape("missing", "missing")


def test_renamed_shape() -> None:
    text = "agraph (float[batch, 4] X, float[other, 4] Z) => (float[batch, 4] Y) { Y = Add(X, Z) }"
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    g = GraphBuilderPatternOptimization(builder, None)
    builder.facts.constraints.add_equal("batch", "other")
    assert g.get_shape_renamed("X") == g.get_shape_renamed("Z")
    assert g.same_shape("X", "Z")
    assert g.get_registered_constraints() is builder.facts.constraints


def test_value_as_shape(g) -> None:
    assert g.value_as_shape("shape") == (0, 4)
    assert g.value_as_shape("X") is None


def test_is_constant(g) -> None:
    for name in ("w", "ww", "two", "g", "shape"):
        assert g.is_constant(name), name
    for name in ("X", "a", "", "missing"):
        assert not g.is_constant(name), name


def test_overridable_initializer_is_not_constant() -> None:
    model = model_from_text(
        "agraph (float[2] X) => (float[2] Y) <float[2] w = {1, 2}> { Y = Add(X, w) }"
    )
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", FLOAT, [2]))
    g = GraphBuilderPatternOptimization(GraphBuilder(model, infer_shapes_options=True), None)
    assert not g.is_constant("w")
    assert g.constant_or_none("w") is None and g.get_constant_shape("w") is None
    assert not g.is_constant_scalar("w")


def test_constant_shape(g) -> None:
    assert g.get_constant_shape("two") == (4,) and g.get_constant_shape("one") == ()
    assert g.get_constant_shape("a") is None


def test_constant_scalar(g) -> None:
    assert g.is_constant_scalar("one") and g.is_constant_scalar("vec")
    assert g.is_constant_scalar("one", 1) and not g.is_constant_scalar("one", 2)
    assert not g.is_constant_scalar("mat") and g.is_constant_scalar("mat", broadcast=True)
    assert not g.is_constant_scalar("w") and not g.is_constant_scalar("X")


def test_attributes(g) -> None:
    softmax = node(g, "d")
    assert g.get_attribute_with_default(softmax, "axis", 7) == 1
    assert g.get_attribute_with_default(softmax, "missing", 7) == 7
    found = g.get_attributes_with_default(softmax, axis=5, other=6, nothing=None)
    assert found == {"axis": 1, "other": 6}


def test_axis(g) -> None:
    assert g.get_axis(node(g, "d")) == 1
    assert g.get_axis(node(g, "a"), 3) == 3
    with pytest.raises(OptionError, match="no attribute axis"):
        g.get_axis(node(g, "a"))


def test_constant_or_attribute(g) -> None:
    assert g.get_constant_or_attribute(node(g, "d"), "axis", 1) == 1
    found = g.get_constant_or_attribute(node(g, "big"), "shape", 1, lambda v: tuple(map(int, v)))
    assert found == (0, 4)
    assert g.get_constant_or_attribute(node(g, "c"), "axes", 1) is None, "not a constant"
    assert g.get_constant_or_attribute(node(g, "a"), "axes", 1) is None, "no such input"


def test_make_node_adds_nothing() -> None:
    g = fresh()
    before = len(g.store)
    made = g.make_node("Softmax", "X", "new", name="n", axis=-1)
    assert (made.op_type, list(made.input), list(made.output)) == ("Softmax", ["X"], ["new"])
    assert g.get_axis(made) == -1 and made.name == "n"
    assert len(g.store) == before and g.store.record_of(made) is None


def test_make_node_names() -> None:
    g = fresh()
    a, b = g.make_node("Relu", ["X"]), g.make_node("Relu", ["X"])
    assert a.output[0] != b.output[0] and a.name != b.name
    assert len(g.make_node("Split", ["X"], 2).output) == 2


def test_make_node_changes_no_domain() -> None:
    """A pattern may make nodes while it matches, it is the application that registers a domain."""
    g = fresh()
    made = g.make_node("Op", ["X"], domain="other", doc_string="why")
    assert (made.domain, made.doc_string) == ("other", "why")
    assert "other" not in g.opsets


def test_make_initializer() -> None:
    g = fresh()
    a = g.make_initializer("", np.array([1, 2], dtype=np.int64), source="test")
    assert g.make_initializer("", np.array([1, 2], dtype=np.int64)) == a, "small ones are shared"
    assert g.make_initializer("", np.array([1, 2], dtype=np.int32)) != a
    named = g.make_initializer("weight", np.zeros(3, dtype=np.float32))
    assert named == "weight" and g.make_initializer("weight", np.ones(3)) != "weight"


def test_unique_name() -> None:
    g = fresh()
    assert g.unique_name("X") != "X" and g.unique_name("new") == "new"
    assert g.unique_name("new") != "new"


def test_processor(g) -> None:
    assert g.has_processor("CPU") and g.has_processor("CUDA") and not g.has_processor("NPU")
    assert not fresh().has_processor("CUDA")


def test_shadowed_name_does_not_count() -> None:
    """A subgraph that defines its own `a` does not read the outer one."""
    text = """agraph (float[2] X, bool cond) => (float[2] Y, float[2] Z) {
        a = Relu(X)
        Z = Neg(a)
        Y = If(cond) <
            then_branch = tg () => (float[2] T) { a = Neg(X) T = Abs(a) },
            else_branch = eg () => (float[2] E) { E = Identity(X) }
        >
    }"""
    g = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    assert not g.is_used_by_subgraph("a") and not g.is_used_more_than_once("a")
    assert g.is_used_only_by("a", node(g, "Z"))
