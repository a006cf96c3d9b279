"""The graph that a rewriter of graphs is given."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, optimized, rewritten
from ut_xoptim.toy_patterns import NegNeg

from xbuilder.errors import PatternError
from xbuilder.graph.features import Feature, features_of
from xbuilder.graph.graph import Graph
from xoptim.toolkit import GraphRewriter, graph_rewriter

TEXT = "g (float[a] x) => (float[a] y) { a = Neg(x) b = Abs(a) c = Relu(b) y = Exp(c) }"


def running(function: Any) -> tuple[list[str], Any]:
    """Operators after one run of a function of a graph, and what it returned."""
    answers = []
    rewriter = graph_rewriter(lambda graph: answers.append(function(graph)))
    return rewritten(TEXT, rewriter), answers[0]


def test_find() -> None:
    assert running(lambda g: [n.op_type for n in g.find()])[1] == ["Neg", "Abs", "Relu", "Exp"]
    assert running(lambda g: [n.op_type for n in g.find("Exp", "Abs")])[1] == ["Abs", "Exp"]
    assert running(lambda g: list(g.find("my.domain::Abs")))[1] == []


def test_find_leaves_out_what_went() -> None:
    def shorten(graph):
        seen = []
        for node in graph.find():
            seen.append(node.op_type)
            if node.op_type == "Neg":
                graph.replace({"c": "x"})
        return seen

    assert running(shorten) == (["Exp"], ["Neg", "Exp"])


REPLACED = {
    "a name": ({"c": "a"}, (), "", ["Neg", "Exp"]),
    "an operator": (lambda g: {"c": g.op.Sigmoid("b")}, (), "", ["Neg", "Abs", "Sigmoid", "Exp"]),
    "two": (lambda g: {"b": "a", "c": g.op.Tanh("b")}, (), "", ["Neg", "Tanh", "Exp"]),
    "remove": (lambda g: {"c": g.op.Tanh("x")}, ["a", "b"], "", ["Tanh", "Exp"]),
    "itself": ({"c": "c"}, (), "replaced by itself", None),
    "needed": ({"y": "c"}, ["b"], "Abs must go and one of its results is used", None),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replace(name: str) -> None:
    what, remove, refusal, after = REPLACED[name]

    def replace(graph):
        return graph.replace(what(graph) if callable(what) else what, remove)

    found, reason = running(replace)
    assert found == (after or ["Neg", "Abs", "Relu", "Exp"])
    assert (refusal in reason) if refusal else (reason == "")


def test_wrong_replacements_leave_the_graph_as_it_was() -> None:
    reasons = []

    @graph_rewriter
    def wrong(graph):
        for new in (graph.op.Cast("b", to=7), "y", graph.op.Add("c", "y"), "nothing"):
            with pytest.raises(PatternError) as error:
                graph.replace({"c": new})
            reasons.append(str(error.value))
        with pytest.raises(PatternError, match="which no node of the graph gives"):
            graph.replace({"w": "x"})

    assert rewritten(TEXT, wrong) == ["Neg", "Abs", "Relu", "Exp"]
    assert "changes the type or the shape" in reasons[0] and "cycle" in reasons[1]
    assert all("wrong" in reason for reason in reasons)


def test_requirements_are_prepared_once() -> None:
    calls: list[str] = []

    class Prepared(GraphRewriter):
        def add_requirements(self, graph):
            calls.append("requirements")

        def apply(self, graph):
            calls.append("apply")
            for node in graph.find("Exp"):
                graph.replace({node.output[0]: graph.op.Sigmoid(node.input[0])})

    assert op_types(optimized(TEXT, Prepared())) == ["Neg", "Abs", "Relu", "Sigmoid"]
    assert calls[0] == "requirements" and calls.count("requirements") == 1
    assert calls.count("apply") == 2


def test_a_rewriter_that_changes_the_store() -> None:
    """It counts as one rewrite; the patterns run near the change."""

    @graph_rewriter
    def bypass(graph):
        store = graph.store
        for record in list(store.bucket("", "Abs")):
            store.redirect(record.outputs[0], record.inputs[0], [record])

    builder = builder_of(TEXT)
    rows = bypass.rewrite(builder)
    assert [(r["pattern"], r["removed"]) for r in rows] == [("apply_bypass", 1)]
    assert op_types(builder) == ["Neg", "Relu", "Exp"]
    text = TEXT.replace("Relu", "Neg")
    assert op_types(optimized(text, NegNeg(), bypass)) == ["Exp"]


def test_min_opset() -> None:
    class Late(GraphRewriter):
        min_opset = 99

        def apply(self, graph):
            raise AssertionError

    assert rewritten(TEXT, Late()) == ["Neg", "Abs", "Relu", "Exp"]


class NoTanh(Feature):
    """Refuses an operator."""

    def validate(self, graph: Graph) -> str:
        return "no Tanh here" if graph.store.bucket("", "Tanh") else ""


class ReplacesIfAllowed(GraphRewriter):
    """Attaches what it needs, as rewriters of that lineage do."""

    def __init__(self, fails: bool = False) -> None:
        self.feature = NoTanh()
        self.answers: list[str] = []
        self.fails = fails

    def add_requirements(self, graph):
        graph.attach_feature(self.feature)
        graph.attach_feature(self.feature)
        if self.fails:
            raise ValueError("not today")

    def apply(self, graph):
        self.answers.append(graph.replace({"c": graph.op.Tanh("b")}))


def test_a_rewriter_attaches_a_feature() -> None:
    """It stays, once, until somebody detaches it; its checks hold at once."""
    rewriter, builder = ReplacesIfAllowed(), builder_of(TEXT)
    with pytest.warns(UserWarning, match="NoTanh refuses it: no Tanh here"):
        rewriter.rewrite(builder)
    assert rewriter.answers == ["NoTanh refuses it: no Tanh here"]
    assert op_types(builder) == ["Neg", "Abs", "Relu", "Exp"]
    assert features_of(builder.graph) == [rewriter.feature]
    builder.detach_feature(rewriter.feature)
    rewriter.fails = True
    with pytest.raises(PatternError, match="ReplacesIfAllowed failed: ValueError: not today"):
        rewriter.rewrite(builder)


def test_a_rewriter_whose_requirements_fail_is_left_out() -> None:
    rewriter = ReplacesIfAllowed(fails=True)
    with pytest.warns(UserWarning, match="ReplacesIfAllowed failed: .*not today"):
        optimized(TEXT, rewriter, on_failure="warn")
    assert len(rewriter.answers) <= 1, "the run after it is prepared"
