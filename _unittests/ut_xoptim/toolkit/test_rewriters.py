"""Node rewriters and graph rewriters, alone and with patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx.helper as oh
import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, optimized

from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError, PatternError
from xoptim.catalogue.selection import get_pattern, single_pattern
from xoptim.testing import canonical_graph, check_no_match, check_pattern, model_from_text
from xoptim.toolkit import GraphRewriter, NodeRewriter, graph_rewriter, node_rewriter

NEG_NEG = "g (float[a] x) => (float[a] y) { n = Neg(x) m = Neg(n) y = Relu(m) }"
RELU = "g (float[a] x) => (float[a] y) { y = Relu(x) }"
SPLIT = """g (float[4] x) => (float[2] y, float[2] z) {
    a, b = Split <num_outputs = 2> (x) y = Relu(a) z = Neg(b) }"""


class DropNegNeg(NodeRewriter):
    """Neg(Neg(x)) -> x."""

    def tracks(self):
        return ["Neg"]

    def transform(self, graph, node):
        before = graph.before_or_none(node, "Neg")
        return [before.input[0]] if before is not None else False


class DropNegNegEverywhere(GraphRewriter):
    """Neg(Neg(x)) -> x."""

    def apply(self, graph):
        for node in graph.find("Neg"):
            before = graph.node_before(node.input[0])
            if before is not None and before.op_type == "Neg":
                graph.replace({node.output[0]: before.input[0]})


@node_rewriter("Neg")
def drop_neg_neg(graph, node):
    """Neg(Neg(x)) -> x."""
    return graph.before(node, "Neg").input[0]


@graph_rewriter
def drop_neg_neg_everywhere(graph):
    """Neg(Neg(x)) -> x."""
    DropNegNegEverywhere().apply(graph)


def rewriter(answer: Any, tracks: str | None = "Relu") -> NodeRewriter:
    """A rewriter which gives one answer."""
    make = answer if callable(answer) else lambda graph, node: answer
    return node_rewriter(tracks, "answering")(make)


@pytest.mark.parametrize(
    "member", [DropNegNeg(), drop_neg_neg, DropNegNegEverywhere(), drop_neg_neg_everywhere]
)
def test_each_kind_gives_the_same_graph(member: Any) -> None:
    check_pattern(NEG_NEG, RELU, [member])


def test_names() -> None:
    assert DropNegNeg().name == "DropNegNeg" and drop_neg_neg.name == "drop_neg_neg"
    assert drop_neg_neg_everywhere.name == "drop_neg_neg_everywhere"
    assert DropNegNegEverywhere().name == "DropNegNegEverywhere"
    assert drop_neg_neg.__doc__ == drop_neg_neg_everywhere.__doc__ == "Neg(Neg(x)) -> x."
    assert drop_neg_neg.roots == ("Neg",) and rewriter(False, None).roots == ("*",)


def test_without_parenthesis() -> None:
    """Any operator."""

    @node_rewriter
    def any_neg_neg(graph, node):
        return DropNegNeg().transform(graph, node) if node.op_type == "Neg" else False

    assert any_neg_neg.roots == ("*",) and any_neg_neg.name == "any_neg_neg"
    check_pattern(NEG_NEG, RELU, [any_neg_neg])


def test_what_is_printed() -> None:
    """The name, where the class does not tell it."""
    assert repr(drop_neg_neg) == "FunctionNodeRewriter('drop_neg_neg')"
    assert repr(drop_neg_neg_everywhere) == "FunctionGraphRewriter('drop_neg_neg_everywhere')"
    assert repr(DropNegNeg()) == "DropNegNeg()" and repr(DropNegNegEverywhere()).endswith("()")


def test_two_instances_differ() -> None:
    patterns = OptimizationOptions(
        patterns=[DropNegNeg(), DropNegNeg(), drop_neg_neg, drop_neg_neg]
    ).patterns
    assert len(patterns) == 3
    graphs = OptimizationOptions(patterns=[DropNegNegEverywhere(), DropNegNegEverywhere()]).patterns
    assert len(graphs) == 2


def test_they_mix_with_names_of_patterns() -> None:
    text = "g (float[a, b] x) => (float[a, b] y) { n = Neg(x) m = Neg(n) t = Transpose<perm=[1, 0]>(m) y = Transpose<perm=[1, 0]>(t) }"
    for member in (drop_neg_neg, drop_neg_neg_everywhere):
        builder = optimized(text, "TransposeTranspose", member)
        assert op_types(builder) == ["Identity"]


REFUSALS = {
    "false": (False, "transform returns False"),
    "none": (None, "transform returns False"),
    "no": (lambda graph, node: graph.no("it is odd"), "it is odd"),
    "refuse": (lambda graph, node: graph.refuse("it is odd"), "it is odd"),
    "itself": (lambda graph, node: [node.output[0]], "replaced by itself"),
    "remove": (
        lambda graph, node: {node.output[0]: "x", "remove": ["n"]},
        "Neg must go and one of its results is used",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses(name: str) -> None:
    answer, reason = REFUSALS[name]
    text = "g (float[a] x) => (float[a] y, float[a] z) { n = Neg(x) y = Relu(n) z = Abs(n) }"
    check_no_match(text, rewriter(answer), reason)


ANSWERS: dict[str, tuple[Callable[..., Any], str]] = {
    "one": (lambda graph, node: graph.op.Abs(node.input[0]), "y = Abs(n)"),
    "list": (lambda graph, node: [graph.op.Abs(node.input[0])], "y = Abs(n)"),
    "dictionary": (lambda graph, node: {"y": graph.op.Abs(node.input[0])}, "y = Abs(n)"),
    "another node": (
        lambda graph, node: (
            {"n": graph.op.Abs("x")} if graph.node_before("n").op_type == "Neg" else False
        ),
        "n = Abs(x) y = Relu(n)",
    ),
    "remove a node": (
        lambda graph, node: {"y": graph.op.Abs("x"), "remove": [graph.node_before("n")]},
        "y = Abs(x)",
    ),
    "remove a result": (
        lambda graph, node: {"y": graph.op.Abs("x"), "remove": ["n"]},
        "y = Abs(x)",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    answer, after = ANSWERS[name]
    if name != "another node":
        after = after if after.startswith("y = Abs(x)") else f"n = Neg(x) {after}"
    before = "g (float[a] x) => (float[a] y) { n = Neg(x) y = Relu(n) }"
    builder = optimized(before, rewriter(answer))
    expected = model_from_text(f"g (float[a] x) => (float[a] y) {{ {after} }}")
    assert canonical_graph(builder.to_onnx().graph) == canonical_graph(expected.graph)


def two_slices(graph, node):
    return [graph.op.Slice("x", [i], [i + 2]) for i in (0, 2)]


def another_split(graph, node):
    return graph.op.Split("x", [2, 2], outputs=2)


def test_several_results() -> None:
    builder = optimized(SPLIT, rewriter(two_slices, "Split"))
    assert sorted(op_types(builder)) == ["Neg", "Relu", "Slice", "Slice"]
    builder = optimized(SPLIT, rewriter(another_split, "Split"), max_iter=1)
    assert op_types(builder) == ["Split", "Relu", "Neg"]
    assert len(builder.nodes[0].input) == 2


HALVES: dict[str, Callable[..., Any]] = {
    "list": lambda graph, node: [None, graph.op.Slice(node.input[0], [2], [4])],
    "dictionary": lambda graph, node: {
        node.output[1]: graph.op.Slice(node.input[0], [2], [4]),
    },
    "graph": graph_rewriter(
        lambda graph: [
            graph.replace({node.output[1]: graph.op.Slice(node.input[0], [2], [4])})
            for node in graph.find("Split")
        ]
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_some_results_of_a_node(name: str) -> None:
    """The node stays for the others; it is not rewritten for what nothing reads."""
    member: Any = HALVES[name]
    member = member if name == "graph" else rewriter(member, "Split")
    result = check_pattern(SPLIT, None, [member])
    assert sorted(n.op_type for n in result.graph.node) == ["Neg", "Relu", "Slice", "Split"]


def test_some_results_of_a_node_are_refused() -> None:
    half = rewriter(HALVES["list"], "Split")
    unread = SPLIT.replace("Neg(b)", "Neg(a)")
    check_no_match(unread, half, "nothing reads the result of Split that is replaced")
    gone = rewriter(lambda graph, node: {"b": "a", "remove": [node]}, "Split")
    check_no_match(SPLIT, gone, "Split must go and one of its results is used")


def test_a_result_is_replaced_by_another_one_of_the_node() -> None:
    """Both halves are said to be the same."""
    builder = optimized(
        SPLIT, rewriter(lambda graph, node: {node.output[1]: node.output[0]}, "Split")
    )
    assert op_types(builder) == ["Split", "Relu", "Neg"]
    assert [n.input[0] for n in builder.nodes][1:] == ["a", "a"]


def test_a_call_stays_a_call_of_the_same_function() -> None:
    """Its overload is kept."""
    model = model_from_text(SPLIT)
    call = model.graph.node[0]
    call.domain, call.overload, call.op_type = "local", "one", "Halves"
    del call.attribute[:]
    model.opset_import.add(domain="local", version=1)
    split = oh.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    opsets = [oh.make_opsetid("", 18)]
    model.functions.append(
        oh.make_function("local", "Halves", ["x"], ["a", "b"], [split], opsets, overload="one")
    )
    half = rewriter(HALVES["list"], "local::Halves")
    result = check_pattern(model, None, [half])
    calls = [n for n in result.graph.node if n.op_type == "Halves"]
    assert [(n.domain, n.overload) for n in calls] == [("local", "one")]


WRONG = {
    "count": (["x", "x"], "returns 2 replacements for the 1 results"),
    "name": ({"w": "x"}, "names 'w', which no node of the graph gives"),
    "removed": ({"y": "x", "remove": ["w"]}, "names 'w'"),
    "value": ([3], "must return what replaces"),
    "type": (lambda graph, node: graph.op.Cast("x", to=7), "changes the type or the shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_are_named(name: str) -> None:
    answer, message = WRONG[name]
    with pytest.raises(PatternError, match=message):
        optimized(RELU, rewriter(answer))


def test_must_be_written() -> None:
    with pytest.raises(PatternError, match="must define method transform"):
        optimized(RELU, NodeRewriter())
    with pytest.raises(PatternError, match="must define method apply"):
        optimized(RELU, GraphRewriter())


def test_a_graph_rewriter_is_not_a_pattern() -> None:
    assert get_pattern(drop_neg_neg_everywhere) is drop_neg_neg_everywhere
    with pytest.raises(OptionError, match="works on a whole graph"):
        single_pattern(drop_neg_neg_everywhere)


def test_rewrite_runs_once() -> None:
    builder = builder_of(NEG_NEG)
    rows = DropNegNegEverywhere().rewrite(builder)
    assert [r["pattern"] for r in rows] == ["apply_DropNegNegEverywhere"]
    assert op_types(builder) == ["Relu"]
    assert [r["pattern"] for r in DropNegNegEverywhere().rewrite(builder)] == ["nothing"]


class Refusing(NodeRewriter):
    """Refuses from inside, then by what it returns."""

    def __init__(self, raises: bool):
        super().__init__()
        self.raises = raises

    def tracks(self):
        return ["Neg"]

    def transform(self, graph, node):
        if self.raises:
            graph.refuse("from inside")
        return graph.no("by what it returns")


@pytest.mark.parametrize(("raises", "offset"), [(True, 2), (False, 0)])
def test_line_of_a_refusal(raises, offset):
    """The line that refuses, or the first one of the rewriter if the engine cannot know it."""
    heard: list[Any] = []
    refusing = Refusing(raises)
    refusing.listener = heard.append
    optimized(NEG_NEG, refusing)
    first = Refusing.transform.__code__.co_firstlineno
    assert {line for _, _, line, _ in heard} == {first + offset}


class OddMatch(DropNegNeg):
    """Does nothing at the first node."""

    def match(self, g, node, matched):
        return None if node.output[0] == "m" else super().match(g, node, matched)


def test_match_of_a_subclass():
    """The engine asks the method `match` a subclass gives."""
    assert op_types(optimized(NEG_NEG, OddMatch())) == ["Neg", "Neg", "Relu"]
    assert op_types(optimized(NEG_NEG, DropNegNeg())) == ["Relu"]
