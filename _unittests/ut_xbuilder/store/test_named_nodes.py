"""Nodes by name."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from xbuilder.errors import OptionError
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.named_nodes import named_nodes


@pytest.fixture
def store() -> GraphStore:
    """The node `b` is not the one that gives the result `b`."""
    found = GraphStore(["d"])
    for op_type, before, after, name in [
        ("Abs", "x", "a", "first"),
        ("Neg", "a", "b", "twice"),
        ("Exp", "b", "c", "b"),
        ("Log", "c", "d", "twice"),
    ]:
        found.append(oh.make_node(op_type, [before], [after], name=name))
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first", ["Abs"]),
        ("a", ["Abs"]),
        ("twice", ["Neg", "Log"]),
        ("b", ["Exp", "Neg"]),
    ],
)
def test_found(store, name, expected):
    assert [r.op_type for r in named_nodes(store, [name])[name]] == expected


def test_several_names(store):
    assert list(named_nodes(store, ["d", "first", "d"])) == ["d", "first"]
    assert named_nodes(store, []) == {}


@pytest.mark.parametrize("name", ["x", "nothing"])
def test_no_such_node(store, name):
    """An input of the graph is given by no node."""
    with pytest.raises(OptionError, match=f"No node is called '{name}', and none gives a result"):
        named_nodes(store, ["a", name])
