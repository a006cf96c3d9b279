"""A pattern that changes nodes in place is caught, the model the user gave is intact."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord
from xoptim import (
    GraphBuilderPatternOptimization,
    MatchResult,
    PatternOptimization,
    rewrite,
)
from xoptim.engine.guards.unchanged_nodes import (
    WATCHED_CALLS,
    restore,
    same_edges,
    small_attributes,
)
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
    """Whatever module a class belongs to."""

    class Changes(NegNeg):
        __module__ = "xoptim.patterns.transpose"

        def apply(self, g: Any, first: Any, second: Any) -> list[Any]:
            change_neighbour(g, second)
            return [first, second]

    check_caught(Changes())


@pytest.mark.parametrize("verifies", [False, True])
def test_a_change_after_many_calls(verifies: bool) -> None:
    """Every call is watched by an engine that verifies; the edges of what is matched, always."""

    class Changes(PatternOptimization):
        roots = ("Neg",)

        def __init__(self, in_place: Any) -> None:
            super().__init__()
            self.calls, self.in_place = 0, in_place

        def match(self, g: Any, node: Any, matched: Any) -> Any:
            self.calls += 1
            if self.calls <= WATCHED_CALLS:
                return self.none(node, "not yet")
            self.in_place(g, node)
            return MatchResult(self, [node], self.apply)

        def apply(self, g: Any, node: Any) -> list[Any]:
            return [node]

    nodes = " ".join(f"r{i + 1} = Neg(r{i})" for i in range(WATCHED_CALLS + 1))
    text = f"agraph (float[a] r0) => (float[a] r{WATCHED_CALLS + 1}) {{ {nodes} }}"
    changes = CHANGES if verifies else CHANGES[:3]
    for change in changes:
        model = model_from_text(text)
        content = model.SerializeToString(deterministic=True)
        builder = GraphBuilder(model, infer_shapes_options=True)
        g = GraphBuilderPatternOptimization(builder, [Changes(change)], verifies=verifies)
        with pytest.raises(PatternError, match="Pattern Changes changes node Neg .* in place"):
            g.optimize()
        assert model.SerializeToString(deterministic=True) == content


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
