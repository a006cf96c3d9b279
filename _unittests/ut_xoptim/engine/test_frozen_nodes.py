"""A pattern of a user that changes nodes in place is caught, the model it was given is intact."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xoptim import GraphBuilderPatternOptimization, MatchResult, get_pattern_list
from xoptim.engine.frozen_nodes import is_watched, restore, snapshot
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


@pytest.mark.parametrize("change", CHANGES)
def test_match(change: Any) -> None:
    class Changes(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> None:
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
        before, content = snapshot(node), node.SerializeToString(deterministic=True)
        rename_operator(None, node)
        del node.input[:]
        node.output.append("more")
        add_attribute(None, node)
        assert snapshot(node) != before
        restore(node, before)
        assert snapshot(node) == before
        assert node.SerializeToString(deterministic=True) == content


def test_patterns_of_the_package_are_not_watched() -> None:
    assert not any(map(is_watched, get_pattern_list("default+onnxruntime")))
    assert is_watched(NegNeg())


def test_a_node_matched_twice() -> None:
    class Twice(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> MatchResult:
            return MatchResult(self, [node, node], self.apply)

    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    with pytest.raises(PatternError, match="Pattern Twice gives the same node twice"):
        GraphBuilderPatternOptimization(builder, [Twice()]).optimize()
    builder.store.check()
