"""Operators proven speculatable, one by one; a loop shows the effect in
test_loop_invariants."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes.speculatable import is_speculatable

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def proven(op_type, inputs, opset=18, domain="", **attributes):
    """Asks about a node; an input is a shape (of floats), facts, or an array for a constant."""
    builder = GraphBuilder({"": opset, "com.microsoft": 1})
    names = []
    for i, value in enumerate(inputs):
        names.append(f"x{i}")
        if isinstance(value, np.ndarray):
            builder.make_initializer(names[-1], value)
            continue
        facts = value if isinstance(value, ResultFacts) else ResultFacts(FLOAT, value)
        builder.make_tensor_input(names[-1], facts.type or FLOAT, None)
        builder.facts.forget(names[-1])
        builder.facts.refine(names[-1], facts, "a test")
    # not in the graph: what a node supposes of its inputs is no proof
    node = oh.make_node(op_type, names, ["y"], domain=domain, **attributes)
    return is_speculatable(NodeRecord(node, 0, 0), node, builder.facts.get, builder.graph)


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    "op_type,inputs,attributes,expected",
    [
        ("Tanh", [None], {}, True),
        ("Add", [("a", 3), (3,)], {}, True),
        ("Add", [("a", 3), ("b", 3)], {}, False),
        ("Add", [("a", 3), None], {}, False),
        ("Add", [(2, 1), (1, 3)], {}, True),
        ("Div", [("a",), ()], {}, True),
        ("Div", [ResultFacts(INT64, ("a",)), ResultFacts(INT64, ())], {}, False),
        ("Mod", [("a",), ()], {"fmod": 1}, False),
        ("Cast", [None], {"to": FLOAT}, True),
        ("Cast", [None], {"to": STRING}, False),
        ("Cast", [ResultFacts(STRING, ("a",))], {"to": FLOAT}, False),
        ("MatMul", [("a", "k"), ("k", "b")], {}, True),
        ("MatMul", [("a", "k"), ("j", "b")], {}, False),
        ("MatMul", [("k",), ("k",)], {}, True),
        ("MatMul", [("k",), ("z", "k", "b")], {}, True),
        ("MatMul", [("z", "a", "k"), (1, "k", "b")], {}, True),
        ("MatMul", [("z", "a", "k"), ("y", "k", "b")], {}, False),
        ("MatMul", [(), ("k", "b")], {}, False),
        ("Gemm", [("k", "a"), ("k", "b"), ("b",)], {"transA": 1}, True),
        ("Gemm", [("k", "a"), ("k", "b"), ("a",)], {"transA": 1}, False),
        ("Gemm", [("k", "a"), ("k", "b")], {}, False),
        ("Concat", [("a", 3), ("b", 3)], {"axis": -2}, True),
        ("Concat", [("a", 3), ("b", 3)], {"axis": 1}, False),
        ("Concat", [("a", 3), ("b", 3)], {"axis": 2}, False),
        ("Concat", [("a", 3), ResultFacts(INT64, ("b", 3))], {"axis": 0}, False),
        ("Concat", [("a", 3), (3,)], {"axis": 0}, False),
        ("Reshape", [("a", 4), ints(-1, 2)], {}, True),
        ("Reshape", [("a", 3), ints(-1, 2)], {}, False),
        ("Reshape", [(3, 4), ints(2, 6)], {}, True),
        ("Reshape", [(3, 4), ints(2, 5)], {}, False),
        ("Reshape", [("a", 4), ints(0, 4)], {}, False),
        ("Reshape", [(3, 4), ResultFacts(INT64, (2,))], {}, False),
        ("Unsqueeze", [("a",), ints(0, -1)], {}, True),
        ("Unsqueeze", [("a",), ints(0, 0)], {}, False),
        ("Unsqueeze", [("a",), ints(3)], {}, False),
        ("Unsqueeze", [None, ints(0)], {}, False),
        ("Transpose", [None], {}, True),
        ("Transpose", [(2, "a")], {"perm": [1, 0]}, True),
        ("Transpose", [(2, "a", 3)], {"perm": [1, 0]}, False),
        ("Transpose", [None], {"perm": [1, 0]}, False),
        ("Squeeze", [("a", 1), ints(-1)], {}, True),
        ("Squeeze", [("a", 1), ints(0)], {}, False),
        ("Squeeze", [("a", 1)], {}, True),
        ("Softmax", [("a", "b")], {"axis": 1}, True),
        ("Softmax", [("a", "b")], {"axis": 2}, False),
        ("Softmax", [None], {}, False),
        ("Flatten", [("a", "b")], {"axis": 2}, True),
        ("Flatten", [("a", "b")], {"axis": 3}, False),
        ("ReduceMax", [(2, 3)], {}, True),
        ("ReduceMax", [(2, 0)], {}, False),
        ("ReduceMax", [("a", 3)], {}, False),
        ("ReduceSum", [(2, 3), ints(1)], {}, True),
        ("ReduceSum", [(2, 3), ints(2)], {}, False),
        ("ReduceSum", [(2, 3), ResultFacts(INT64, (1,))], {}, False),
        ("Gather", [("a", 3), ints(-3, 2)], {"axis": 1}, True),
        ("Gather", [("a", 3), ints(3)], {"axis": 1}, False),
        ("Gather", [("a", 3), ints(0)], {}, False),
        ("Gather", [(2, 3), ResultFacts(INT64, (1,))], {}, False),
        ("NonZero", [(2, 3)], {}, False),
    ],
)
def test_proofs(op_type, inputs, attributes, expected):
    assert proven(op_type, inputs, **attributes) is expected


def test_old_opsets_and_other_domains():
    assert not proven("Add", [(2,), (2,)], opset=6)
    assert proven("Add", [(2,), (2,)], opset=7)
    assert not proven("Gelu", [(2,)], domain="com.microsoft")
    assert proven("Squeeze", [("a", 1)], opset=11, axes=[1])
    assert not proven("Squeeze", [("a", 1)], opset=11, axes=[0])
