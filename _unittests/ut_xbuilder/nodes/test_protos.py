"""Reading and copying nodes."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import parse

from xbuilder.errors import UnknownAttributeError
from xbuilder.nodes.protos import (
    attributes_of,
    captured_names,
    copy_with_captures,
    copy_with_edges,
    find_attribute,
    function_key,
    has_reference,
    is_deterministic,
    local_names,
    main_domain,
    may_own_graph,
    node_captures,
    reserve_names,
    subgraphs_of,
)
from xbuilder.nodes.record import NodeRecord
from xbuilder.support.names import NameAllocator

NESTED = parse(
    """
    agraph (float[2] x, bool c) => (float[2] y)
    {
        z = Neg(x)
        y = If (c) <
            then_branch = a () => (float[2] r) <float[2] k = {1.0, 2.0}>
            {
                t = Add(z, k)
                r = If (c) <
                    then_branch = d () => (float[2] u) { z2 = Neg(z) u = Add(z2, t) },
                    else_branch = e () => (float[2] v) { v = Add(x, t) }
                >
            },
            else_branch = b () => (float[2] s) { z = Exp(z) s = Neg(z) }
        >
    }
    """
).graph.node[1]


def test_captured_names():
    # the else branch reads the outer z before it defines its own
    assert node_captures(NESTED) == ("z", "c", "x")
    graphs = dict(subgraphs_of(NESTED))
    assert list(captured_names(graphs["else_branch"])) == ["z"]
    assert local_names(graphs["then_branch"]) == {"k", "t", "r", "z2", "u", "v"}
    record = NodeRecord(NESTED, 0, 0)
    assert record.hides("z") and record.hides("z2") and not record.hides("x")


def test_copy_with_captures():
    content = NESTED.SerializeToString()
    copy = copy_with_captures(NESTED, {"z": "new"})
    assert NESTED.SerializeToString() == content
    then_branch, else_branch = (a.g for a in copy.attribute)
    assert list(then_branch.node[0].input) == ["new", "k"]
    assert list(then_branch.node[1].attribute[0].g.node[0].input) == ["new"]
    # only what is read before it is hidden
    assert list(else_branch.node[0].input) == ["new"]
    assert list(else_branch.node[1].input) == ["z"]
    assert node_captures(copy) == ("new", "c", "x")


def test_copy_with_edges():
    node = oh.make_node("Add", ["a", "b"], ["c"], name="n", axis=1)
    copy = copy_with_edges(node, ("a", "d"), ("e",))
    assert list(node.input) == ["a", "b"] and list(node.output) == ["c"]
    assert list(copy.input) == ["a", "d"] and list(copy.output) == ["e"]
    assert copy.name == "n" and copy.attribute[0].i == 1


def test_attributes():
    node = oh.make_node(
        "Any",
        [],
        ["y"],
        i=1,
        f=0.5,
        s="text",
        b=b"\xff",
        ints=[1, 2],
        floats=[0.5],
        strings=["a", "b"],
        t=from_array(np.array([1, 2])),
    )
    found = attributes_of(node)
    assert found.pop("t").tolist() == [1, 2]
    assert found == {
        "i": 1,
        "f": 0.5,
        "s": "text",
        "b": b"\xff",
        "ints": [1, 2],
        "floats": [0.5],
        "strings": ["a", "b"],
    }
    assert find_attribute(node, "i").i == 1 and find_attribute(node, "z") is None
    ref = node.attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "r", "other", 1
    assert has_reference(node)
    with pytest.raises(UnknownAttributeError, match="'r' refers to 'other'"):
        attributes_of(node)


def test_domains_and_keys():
    assert main_domain("ai.onnx") == "" and main_domain("x") == "x"
    node = oh.make_node("F", [], ["y"], domain="ai.onnx")
    assert function_key(node) == ("", "F")
    node.overload = "o"
    assert function_key(node) == ("", "F:o")
    assert may_own_graph("If", "") and not may_own_graph("Add", "") and may_own_graph("Add", "d")


def test_reserve_names():
    names, node_names = NameAllocator(), NameAllocator()
    graph = dict(subgraphs_of(NESTED))["then_branch"]
    graph.node[0].name = "node0"
    reserve_names(names, node_names, graph)
    assert all(n in names for n in ("z", "k", "t", "r", "z2", "u", "v"))
    assert "node0" in node_names


@pytest.mark.parametrize(
    "op_type,domain,attributes,inputs,opset,expected",
    [
        ("Add", "", {}, 2, 18, True),
        ("RandomNormal", "", {}, 0, 18, False),
        ("Dropout", "", {}, 1, 18, True),
        ("Dropout", "", {}, 3, 18, False),
        ("Dropout", "", {}, 1, 6, False),
        ("Dropout", "", {"is_test": 1}, 1, 6, True),
        ("MyRandomOp", "d", {}, 1, 1, False),
        ("BiasDropout", "com.microsoft", {}, 1, 1, False),
        ("Other", "d", {"seed": 1}, 1, 1, False),
        ("Other", "d", {}, 1, 1, True),
    ],
)
def test_deterministic(op_type, domain, attributes, inputs, opset, expected):
    names = [f"i{i}" for i in range(inputs)]
    node = oh.make_node(op_type, names, ["y"], domain=domain, **attributes)
    assert is_deterministic(node, op_type, domain, opset) is expected
