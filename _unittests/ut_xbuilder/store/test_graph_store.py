"""Random edits of a store, compared with a store rebuilt from scratch."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xbuilder.graph_checks import parse

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.store.graph_store import GraphStore


def node(op_type, inputs, outputs, **kwargs):
    return oh.make_node(op_type, list(inputs), list(outputs), **kwargs)


def subgraph_node(captured, outputs, local="inner"):
    """An If whose branches read names of the outer graph."""
    graphs = []
    for name in ("then", "else"):
        nodes = [node("Add", [captured[0], captured[-1]], [f"{local}_{name}"])]
        output = oh.make_tensor_value_info(f"{local}_{name}", 1, None)
        graphs.append(oh.make_graph(nodes, name, [], [output]))
    return node("If", ["x"], outputs, then_branch=graphs[0], else_branch=graphs[1])


def chain(n=4):
    """x -> r0 -> r1 ... -> r{n-1}, the last one is the output."""
    store = GraphStore([f"r{n - 1}"])
    for i in range(n):
        store.append(node("Relu" if i % 2 else "Neg", [f"r{i - 1}" if i else "x"], [f"r{i}"]))
    store.check()
    return store


class Editor:
    """Makes random edits of a store, a list of names is kept beside it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.store = GraphStore(["out"])
        self.count = 0
        for _ in range(5):
            self.append()
        self.store.append(node("Add", [self.name(), self.name()], ["out"]))

    def names(self):
        return ["x", "y", *(n for n in self.store.producers if n != "out")]

    def name(self, names=None):
        return self.random.choice(names or self.names())

    def before(self, record):
        """Names that can be read at the place of a record."""
        rows = {id(r): i for i, r in enumerate(self.store.nodes)}
        limit = rows[id(record)]
        made = [n for n, r in self.store.producers.items() if rows[id(r)] < limit]
        return ["x", "y", *made]

    def fresh(self):
        self.count += 1
        return f"n{self.count}"

    def make(self, names, output):
        op_type = self.random.choice(["Add", "Mul", "Neg", "If"])
        if op_type == "If":
            return subgraph_node([self.name(names), self.name(names)], [output])
        inputs = [self.name(names) for _ in range(1 if op_type == "Neg" else 2)]
        return node(op_type, inputs, [output])

    def append(self):
        self.store.append(self.make(self.names(), self.fresh()))

    def insert(self):
        position = self.random.randrange(len(self.store))
        names = self.before(self.store.nodes[position])
        self.store.append(self.make(names, self.fresh()), position)

    def replace(self):
        record = self.random.choice(self.store.nodes)
        names = self.before(record)
        middle = self.fresh()
        added = [self.make(names, middle), self.make([*names, middle], record.outputs[0])]
        anchor = record if self.random.random() < 0.5 else None
        self.store.replace([record], added, anchor)

    def merge(self):
        record = self.random.choice(self.store.nodes)
        producers = [self.store.producers.get(n) for n in record.inputs]
        removed = [record]
        for p in producers:
            if p is None or p in removed or p.outputs[0] in self.store.outputs:
                continue
            if len(self.store.readers(p.outputs[0])) == 1:
                removed.append(p)
        names = self.before(min(removed, key=lambda r: r.order))
        self.store.replace(removed, [self.make(names, record.outputs[0])])

    def remove(self):
        for record in reversed(self.store.nodes):
            if not any(self.store.is_used(o) for o in record.outputs):
                self.store.replace([record], [])
                return

    def redirect(self):
        old = self.name()
        readers = self.store.readers(old)
        if not readers:
            return
        first = min(readers, key=lambda r: r.order)
        new = self.name(self.before(first))
        if new != old and self.store.can_redirect(old, new):
            self.store.redirect(old, new)

    def rename(self):
        made = [n for n in self.store.producers if n != "out"]
        if made:
            self.store.rename_result(self.name(made), self.fresh())

    def read(self):
        record = self.random.choice(self.store.nodes)
        proto = self.store.proto(record)
        assert self.store.record_of(proto) is record
        assert self.store.proto(record) is proto

    def refused(self):
        """A replacement that is refused leaves everything as it was."""
        record = self.store.producers["out"]
        with pytest.raises(PatternError):
            self.store.replace([record], [node("Neg", ["x"], [self.fresh()])])

    def sort(self):
        self.store.sort({r: self.random.randrange(3) for r in self.store.nodes})


ACTIONS = [
    "append",
    "insert",
    "merge",
    "read",
    "redirect",
    "refused",
    "remove",
    "rename",
    "replace",
    "sort",
]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.sampled_from(ACTIONS), max_size=25))
def test_random_edits(seed, actions):
    editor = Editor(seed)
    for action in actions:
        getattr(editor, action)()
        editor.store.check()
        for record in editor.store.nodes:
            proto = editor.store.proto(record)
            assert tuple(proto.input) == record.inputs
            assert tuple(proto.output) == record.outputs


def test_check_sees_a_wrong_store():
    for attribute in ("consumers", "producers"):
        store = chain()
        getattr(store, attribute).pop("r1")
        with pytest.raises(PatternError, match="inconsistent"):
            store.check()
    store = chain()
    store._nodes.reverse()
    with pytest.raises(PatternError):
        store.check()


def test_redirect_two_captured_names():
    """One node captures both names: it still counts as one use once they are the same."""
    store = GraphStore(["z"])
    store.append(node("Neg", ["x"], ["a"]))
    store.append(node("Abs", ["x"], ["b"]))
    store.append(subgraph_node(["a", "b"], ["z"]))
    store.redirect("a", "b")
    store.check()
    assert len(store.readers("b")) == 1
    assert not store.is_used("a") and "a" not in store.captures


def test_redirect_takes_away_what_is_not_needed() -> None:
    """One event, whatever goes."""
    store = GraphStore(["z"])
    rows = [("Neg", "x", "a"), ("Abs", "a", "b"), ("Exp", "b", "z")]
    first, second, last = [store.append(node(op, [i], [o])) for op, i, o in rows]
    events: list[Any] = []
    store.subscribe(SimpleNamespace(store_changed=events.append))
    assert store.redirect("b", "x", [second, first]) == (last,)
    store.check()
    assert store.nodes == [last] and last.inputs == ("x",)
    (event,) = events
    assert event.redirected == ("b", "x") and event.removed == [second, first]
    assert set(event.lost) == {"a", "b"}


def test_redirect_renames_inside_subgraphs_without_changing_the_node():
    given_node = subgraph_node(["a", "b"], ["z"])
    content = given_node.SerializeToString()
    store = GraphStore(["z"])
    store.append(node("Neg", ["x"], ["a"]))
    store.append(node("Neg", ["x"], ["b"]))
    record = store.append(given_node)
    store.redirect("a", "b")
    assert given_node.SerializeToString() == content
    branch = store.proto(record).attribute[0].g
    assert list(branch.node[0].input) == ["b", "b"]
    assert list(record.captured) == ["b"]


def test_can_redirect_refuses_a_hidden_name():
    store = GraphStore(["z"])
    store.append(node("Neg", ["x"], ["a"]))
    store.append(node("Neg", ["x"], ["inner_then"]))
    store.append(subgraph_node(["a"], ["z"]))
    assert not store.can_redirect("a", "inner_then")
    assert store.can_redirect("a", "x")


def test_rename_result_follows_captures():
    store = GraphStore(["z"])
    store.append(node("Neg", ["x"], ["a"]))
    record = store.append(subgraph_node(["a"], ["z"]))
    store.rename_result("a", "new")
    store.check()
    assert list(store.proto(record).attribute[0].g.node[0].input) == ["new", "new"]
    assert "new" in store.captures and "a" not in store.captures
    with pytest.raises(PatternError, match="produced"):
        store.rename_result("new", "z")


def test_one_producer_only():
    store = chain()
    with pytest.raises(InvalidModelError, match="produced twice"):
        store.append(node("Neg", ["x"], ["r1"]))
    with pytest.raises(InvalidModelError, match="produced twice"):
        store.append(node("Split", ["x"], ["s", "s"]))
    store.check()


@pytest.mark.parametrize(
    "added,match",
    [
        ([node("Neg", ["x"], ["other"])], "still needed"),
        ([node("Neg", ["x"], ["r1"]), node("Neg", ["x"], ["r3"])], "already has a producer"),
        ([node("Neg", ["x"], ["r1"]), node("Neg", ["x"], ["r1"])], "already has a producer"),
    ],
)
def test_replace_refuses(added, match):
    store = chain()
    before = [repr(r) for r in store.nodes]
    with pytest.raises(PatternError, match=match):
        store.replace([store.producers["r1"]], added)
    store.check()
    assert [repr(r) for r in store.nodes] == before


def test_replace_refuses_to_lose_an_output():
    store = chain()
    with pytest.raises(PatternError, match="output of the graph"):
        store.replace([store.producers["r3"]], [])
    removed = store.producers["r1"]
    store.replace([removed], [node("Abs", ["r0"], ["r1"])])
    with pytest.raises(PatternError, match="already removed"):
        store.replace([removed], [])


def test_replace_keeps_the_order():
    store = chain(6)
    store.replace([store.producers["r2"]], [node("Abs", ["r1"], ["a"]), node("Exp", ["a"], ["r2"])])
    assert [r.outputs[0] for r in store.nodes] == ["r0", "r1", "a", "r2", "r3", "r4", "r5"]
    store.check()


@pytest.mark.parametrize("count", [1, 2, 8, 9, 30])
def test_new_nodes_are_put_at_their_places(count):
    """A few of them one by one, many by a sort; a list that is being read does not change."""
    store = chain(100)
    before = store.nodes
    names = [r.outputs[0] for r in before]
    steps = ["r49", *(f"a{i}" for i in range(count - 1)), "r50"]
    new = [node("Abs", [a], [b]) for a, b in itertools.pairwise(steps)]
    store.replace([store.producers["r50"]], new)
    at = names.index("r50")
    assert [r.outputs[0] for r in store.nodes] == names[:at] + steps[1:] + names[at + 1 :]
    assert [r.outputs[0] for r in before] == names
    store.check()


def test_cycle_is_refused():
    store = GraphStore(["b"])
    store.append(node("Neg", ["b"], ["a"]))
    store.append(node("Neg", ["a"], ["b"]))
    with pytest.raises(InvalidModelError, match=r"cycle.*Neg\(b\) -> a"):
        store.sort()
    store = GraphStore(["a"])
    store.append(node("Neg", ["a"], ["a"]))
    with pytest.raises(InvalidModelError, match="cycle"):
        store.sort()


def test_sort_is_stable():
    store = GraphStore(["d"])
    rows = [("c", ["a", "b"]), ("a", ["x"]), ("b", ["x"]), ("e", ["x"]), ("d", ["c"])]
    for output, inputs in rows:
        store.append(node("Sum", inputs, [output]))
    assert store.order_violated
    assert [r.outputs[0] for r in store.nodes] == ["a", "b", "c", "e", "d"]
    store.check()


def test_sort_with_weights():
    store = GraphStore(["c"])
    for output, inputs in [("a", ["x"]), ("b", ["x"]), ("c", ["a", "b"])]:
        store.append(node("Sum", inputs, [output]))
    store.sort({store.producers["b"]: -1})
    assert [r.outputs[0] for r in store.nodes] == ["b", "a", "c"]


def test_positions_and_buckets():
    store = chain(3)
    store.append(node("Neg", ["x"], ["first"]), 0)
    store.append(node("Neg", ["r0"], ["second"]), 2)
    assert [r.outputs[0] for r in store.nodes] == ["first", "r0", "second", "r1", "r2"]
    assert [r.outputs[0] for r in store.bucket("", "Neg")] == ["first", "r0", "second", "r2"]
    assert store.bucket("", "Unknown") == []
    store.check()


def test_types_are_known_before_buckets_are_read():
    store = chain(5)
    for name in ("r4", "r2"):
        record = store.producers[name]
        store.replace([record], [node("Abs", record.inputs, [name])])
        assert store.bucket_keys() == {("", "Neg"), ("", "Relu"), ("", "Abs")}
    record = store.producers["r0"]
    store.replace([record], [node("Abs", ["x"], ["r0"])])
    assert store.bucket_keys() == {("", "Relu"), ("", "Abs")}
    assert store.main_types() == {"Relu", "Abs"}
    assert [r.outputs[0] for r in store.bucket("", "Abs")] == ["r0", "r2", "r4"]
    assert store.bucket("", "Neg") == []
    store.check()


def test_a_few_changes_do_not_make_the_list_again():
    store = chain(200)
    before = store.nodes
    for i in range(3):
        record = store.producers[f"r{i}"]
        store.replace([record], [node("Abs", record.inputs, [f"r{i}"])])
        store.settle()
    assert store._nodes is before and len(store) == 200
    for i in range(3, 20):
        record = store.producers[f"r{i}"]
        store.replace([record], [node("Abs", record.inputs, [f"r{i}"])])
        store.settle()
    assert store._nodes is not before and len(store._nodes) < 210
    assert [r.outputs[0] for r in store.nodes] == [f"r{i}" for i in range(200)]
    store.check()


def test_many_replacements_at_one_place():
    """The room between two nodes is exhausted and given again."""
    store = chain(3)
    for i in range(200):
        record = store.producers["r1"]
        first = record.inputs[0]
        store.replace(
            [record], [node("Abs", [first], [f"a{i}"]), node("Abs", [f"a{i}"], ["r1"])], record
        )
    assert len(store) == 203
    store.check()


def test_uses():
    store = GraphStore(["a", "d"])
    store.append(node("Neg", ["x"], ["a"]))
    store.append(node("Add", ["a", "a"], ["b"]))
    store.append(subgraph_node(["a"], ["c"]))
    store.append(node("Neg", ["b"], ["d"]))
    assert [r.op_type for r in store.readers("a")] == ["Add", "If"]
    assert [store.is_used(n) for n in "abcdx"] == [True, True, False, True, True]
    assert [store.is_used_more_than_once(n) for n in "abcd"] == [True, False, False, False]
    assert not store.is_used("unknown") and store.readers("unknown") == ()
    assert "a" in store.captures and "b" not in store.captures


@pytest.mark.parametrize("outputs", [["b"], ["a", "b"]])
def test_one_use_among_several(outputs):
    """An output counts as a use, so does a second place of one node."""
    store = GraphStore(outputs)
    store.append(node("Neg", ["x"], ["a"]))
    store.append(node("Abs", ["a"], ["b"]))
    store.append(node("Add", ["x", "x"], ["c"]))
    assert store.is_used_more_than_once("a") == ("a" in outputs)
    assert store.is_used_more_than_once("x")


def test_records_of_a_model():
    model = parse("agraph (float[N] x) => (float[N] y) { y = Add(x, x) }")
    store = GraphStore(["y"])
    for proto in model.graph.node:
        store.append(proto)
    assert repr(store.nodes[0]) == "Add(x, x) -> y"
    assert store.nodes[0].key == ("", "Add")
    store.detach(store.nodes[0])
    assert len(store) == 0
    assert store.nodes == []
