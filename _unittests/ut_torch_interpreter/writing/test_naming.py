"""Results take the names of the fx nodes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from torch_interpreter.writing.naming import name_results
from torch_interpreter.writing.symbols import SymScalar
from xbuilder import GraphBuilder


@pytest.fixture
def g():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("a", 4))
    builder.op.Exp("x", outputs=["before"])
    return builder


def check(g):
    g.store.check()
    produced = {name for record in g.store.nodes for name in record.outputs}
    assert all(g.has_shape(name) for name in produced)
    return [list(node.output) for node in g.nodes]


def test_a_new_result_is_renamed(g):
    size = len(g.store)
    middle = g.op.Neg("before")
    last = g.op.Abs(middle)
    assert name_results(g, size, last, ["cos"]) == "cos"
    assert check(g) == [["before"], [middle], ["cos"]]
    assert g.get_type("cos") == TensorProto.FLOAT and g.get_shape("cos") == ("a", 4)
    assert not g.has_type(last)


def test_readers_follow(g):
    size = len(g.store)
    first = g.op.Neg("before")
    second = g.op.Abs(first)
    assert name_results(g, size, [first, second], ["one", "two"]) == ["one", "two"]
    assert check(g) == [["before"], ["one"], ["two"]]
    assert list(g.nodes[-1].input) == ["one"]


@pytest.mark.parametrize("name", ["x", "before"])
def test_what_was_there_before_keeps_its_name(g, name):
    assert name_results(g, len(g.store), name, ["alias"]) == name
    assert check(g) == [["before"]]


def test_a_constant_keeps_its_name(g):
    size = len(g.store)
    name = g.make_initializer("", np.array([1.5], dtype=np.float32))
    assert name_results(g, size, name, ["full"]) == name


def test_two_nodes_with_one_result(g):
    size = len(g.store)
    name = g.op.Neg("before")
    assert name_results(g, size, [name, None, name], ["a", "b", "c"]) == ["a", None, "a"]
    assert check(g) == [["before"], ["a"]]


def test_a_name_already_given_is_kept(g):
    size = len(g.store)
    g.op.Neg("before", outputs=["neg"])
    other = g.op.Abs("neg")
    assert name_results(g, size, "neg", ["neg"]) == "neg"
    assert name_results(g, size, other, ["neg"]) == other


def test_a_symbolic_scalar_keeps_its_kind(g):
    size = len(g.store)
    scalar = SymScalar(g.op.Shape("x", start=0, end=1), int)
    named = name_results(g, size, scalar, ["sym_size"])
    assert isinstance(named, SymScalar) and named == "sym_size" and named.kind is int
    assert g.value_as_shape("sym_size") == ("a",)


def test_more_results_than_names(g):
    size = len(g.store)
    pair = [g.op.Neg("before"), g.op.Abs("before")]
    assert name_results(g, size, pair, ["a"]) == ["a", pair[1]]


def test_a_computed_constant_stays_one(g):
    size = len(g.store)
    two = g.op.Add(np.array([1], dtype=np.int64), np.array([1], dtype=np.int64))
    assert name_results(g, size, two, ["two"]) == "two"
    assert g.is_constant("two") and not g.is_constant(two)
    assert g.get_constant("two", computed_value=True).tolist() == [2]
