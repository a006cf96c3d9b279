"""A pattern that changes nodes in place is caught, the model the user gave is intact."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord
from xoptim import (
    GraphBuilderPatternOptimization,
    MatchResult,
    PatternOptimization,
    rewrite,
)
from xoptim.catalogue.registry import all_patterns
from xoptim.engine.guards.mutation_guard import MutationGuard, restore, same_edges, small_attributes
from xoptim.testing import model_from_text

TEXT = """agraph (float[a] X, bool c) => (float[a] Y, float[a] Z) {
    n = Neg(X) m = Neg(n) Y = LeakyRelu<alpha = 0.5>(m)
    Z = If(c) < then_branch = t () => (float[a] T) { T = Neg(n) },
                else_branch = e () => (float[a] E) { E = Abs(n) } >
}"""


def rename_operator(g: Any, node: Any) -> None:
    node.op_type = "Abs"


def rename_input(g: Any, node: Any) -> None:
    node.input[0] = "changed"


def rename_output(g: Any, node: Any) -> None:
    node.output[0] = "other"


def add_attribute(g: Any, node: Any) -> None:
    node.attribute.append(onnx.helper.make_attribute("axis", 1))


def change_neighbour(g: Any, node: Any) -> None:
    g.node_before(node.input[0]).op_type = "Abs"


CHANGES = [rename_operator, rename_input, rename_output, add_attribute]


@pytest.mark.parametrize("change", [*CHANGES, change_neighbour])
def test_match(change: Any) -> None:
    class Changes(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> None:
            if g.node_before(node.input[0]) is not None:
                change(g, node)

    check_caught(Changes())


@pytest.mark.parametrize("change", [*CHANGES, change_neighbour])
def test_apply(change: Any) -> None:
    class Changes(NegNeg):
        def apply(self, g: Any, first: Any, second: Any) -> list[Any]:
            change(g, second)
            return [first, second]

    check_caught(Changes())


def check_caught(pattern: Any) -> None:
    model = model_from_text(TEXT)
    content = model.SerializeToString(deterministic=True)
    builder = GraphBuilder(model, infer_shapes_options=True)
    with pytest.raises(PatternError, match=r"Pattern Changes changes node Neg .* in place"):
        GraphBuilderPatternOptimization(builder, [pattern]).optimize()
    assert model.SerializeToString(deterministic=True) == content
    builder.store.check()


def test_restore() -> None:
    model = model_from_text(TEXT)
    for node in model.graph.node:
        content = node.SerializeToString(deterministic=True)
        record, before = NodeRecord(node, 0, 0), small_attributes(node)
        assert same_edges(record)
        rename_operator(None, node)
        del node.input[:]
        node.output.append("more")
        add_attribute(None, node)
        assert not same_edges(record) and small_attributes(node) != before
        restore(record, before)
        assert same_edges(record)
        assert node.SerializeToString(deterministic=True) == content


def test_restore_a_domain() -> None:
    node = onnx.helper.make_node("Neg", ["x"], ["y"], domain="ai.onnx")
    record = NodeRecord(node, 0, 0)
    assert same_edges(record), "another spelling of the main domain"
    node.domain = "custom"
    assert not same_edges(record)
    restore(record)
    assert same_edges(record)


def test_patterns_of_the_package_follow_the_same_rules() -> None:
    """The rules do not depend on the module of a class."""

    class Changes(NegNeg):
        __module__ = "xoptim.patterns.layout.transpose"

        def apply(self, g: Any, first: Any, second: Any) -> list[Any]:
            change_neighbour(g, second)
            return [first, second]

    check_caught(Changes())


class ChangesLater(PatternOptimization):
    """Changes the last node of a chain it looks at, matches it or not."""

    roots = ("Neg",)

    def __init__(self, in_place: Any, matches: bool, calls: int) -> None:
        super().__init__()
        self.left, self.in_place, self.matches = calls, in_place, matches

    def match(self, g: Any, node: Any, matched: Any) -> Any:
        self.left -= 1
        if self.left > 0:
            return self.none(node, "not yet")
        self.in_place(g, node)
        return MatchResult(self, [node], self.apply) if self.matches else None

    def apply(self, g: Any, node: Any) -> list[Any]:
        return [node]


@pytest.mark.parametrize("matches", [False, True])
@pytest.mark.parametrize("verifies", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_many_calls(change: Any, verifies: bool, matches: bool) -> None:
    """Every call counts, and nothing is applied after a change."""
    nodes = " ".join(f"r{i + 1} = Neg(r{i})" for i in range(9))
    model = model_from_text(f"agraph (float[a] r0) => (float[a] r9) {{ {nodes} }}")
    content = model.SerializeToString(deterministic=True)
    builder = GraphBuilder(model, infer_shapes_options=True)
    pattern = ChangesLater(change, matches, 9)
    g = GraphBuilderPatternOptimization(builder, [pattern], verifies=verifies)
    with pytest.raises(PatternError, match="Pattern ChangesLater changes node Neg .* in place"):
        g.optimize()
    assert model.SerializeToString(deterministic=True) == content
    builder.store.check()


def test_a_change_that_is_not_done_again() -> None:
    """The pattern cannot be named, those that ran are."""

    class Once(ChangesLater):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            if self.left > 0:
                super().match(g, node, matched)

    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    g = GraphBuilderPatternOptimization(builder, [Silent(), Once(add_attribute, False, 1)])
    with pytest.raises(PatternError, match=r"one of Silent, Once changes node Neg .* in place"):
        g.optimize()


def test_a_failure_that_is_not_raised() -> None:
    """The others go on, on nodes that are restored."""

    class Changes(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> None:
            add_attribute(g, node)

    class Rewrites(NegNeg):
        pass

    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    failed: list[str] = []
    g = GraphBuilderPatternOptimization(
        builder, [Changes(), Rewrites()], on_failure=lambda e, m: failed.append(m.name)
    )
    rows = g.optimize()
    assert set(failed) == {"Changes"}
    assert sum(r["instances"] for r in rows if r["pattern"] == "apply_Rewrites") == 1
    assert not any(n.attribute for n in builder.nodes if n.op_type == "Neg")


def test_without_checks() -> None:
    """The option is on by default; without it, a pattern may do what it wants."""
    seen: list[str] = []

    class Changes(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> None:
            seen.append(node.output[0])
            add_attribute(g, node)

    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [Changes()], checks=False).optimize()
    assert seen == ["n", "m"]
    options = OptimizationOptions(patterns=[Changes()], checks=False)
    builder = GraphBuilder(model_from_text(TEXT), optimization_options=options)
    builder.optimize()
    options = OptimizationOptions(patterns=[Changes()])
    builder = GraphBuilder(model_from_text(TEXT), optimization_options=options)
    with pytest.raises(PatternError, match="in place"):
        builder.optimize()


def test_a_node_renamed_since() -> None:
    """A node whose edges the engine changed is another proto, its attributes are the same."""
    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    store, guard = builder.store, MutationGuard()
    guard.note(store.nodes, store.producers)
    leaky = store.producers["Y"]
    store.redirect("m", "X", (store.producers["m"],))
    store.proto(leaky)
    assert guard.changed() == []
    add_attribute(None, leaky._proto)
    assert guard.changed([leaky]) == [leaky] and guard.changed() == []
    assert len(store.proto(leaky).attribute) == 1


def test_a_rewrite_in_one_piece() -> None:
    @rewrite(root="Neg", after="Neg")
    def changes(g: Any, node: Any) -> Any:
        x = g.before(node, "Neg").input[0]
        rename_operator(g, g.before(node, "Neg"))
        return x

    check_caught(changes)


def test_a_node_matched_twice() -> None:
    class Twice(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> MatchResult:
            return MatchResult(self, [node, node], self.apply)

    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    with pytest.raises(PatternError, match="Pattern Twice gives the same node twice"):
        GraphBuilderPatternOptimization(builder, [Twice()]).optimize()
    builder.store.check()


def test_patterns_of_this_project_are_watched_by_their_tests(monkeypatch: Any) -> None:
    shipped = all_patterns()["ConcatConcat"]
    text = """agraph (float[a] X, float[b] Y) => (float[c] Z) {
        n = Concat<axis = 0>(X, Y) Z = Concat<axis = 0>(n, X)
    }"""
    noted = []
    monkeypatch.setattr(
        MutationGuard, "note", lambda self, records, producers: noted.append(records)
    )

    class Mine(shipped):  # type: ignore[misc, valid-type]
        pass

    for pattern in (shipped(), Mine()):
        builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
        GraphBuilderPatternOptimization(builder, [pattern]).optimize()
        assert [len(n.input) for n in builder.nodes] == [3]
        assert bool(noted) == isinstance(pattern, Mine)
