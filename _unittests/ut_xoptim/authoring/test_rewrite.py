"""Rewrites in one piece: what they may answer, what goes, what stays."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import NodeProto
from ut_xoptim.authoring.rewrite_forms import (
    IDENTITY,
    NEG_NEG,
    form,
    neg_neg,
    operators,
    optimizer,
    sole_neg_neg,
)
from ut_xoptim.toy_patterns import NegNeg

import xoptim
from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError, PatternError
from xoptim import GraphBuilderPatternOptimization, Rewrite, RewriteContext, get_pattern_list
from xoptim import rewrite as rewrite_form
from xoptim.catalogue.registry import all_patterns
from xoptim.declarative.rules import equation
from xoptim.testing import canonical_graph, check_no_match, check_pattern, model_from_text

# -- the decorator


def test_exported() -> None:
    assert {"Rewrite", "RewriteContext", "rewrite"} <= set(xoptim.__all__)


def test_a_function_becomes_a_class() -> None:
    assert issubclass(neg_neg, Rewrite)
    assert neg_neg.__name__ == "NegNegPattern" and neg_neg().name == "NegNeg"
    assert (
        neg_neg.__doc__ == "Neg(Neg(x)) -> x"
        and neg_neg.__module__ == "ut_xoptim.authoring.rewrite_forms"
    )
    assert (neg_neg.roots, neg_neg.after) == (("Neg",), ("Neg",))
    assert neg_neg() == neg_neg() and neg_neg() != sole_neg_neg()
    assert "NegNeg" not in all_patterns(), "no tag, it is not registered"


def test_options_of_the_decorator() -> None:
    options = {"priority": 2, "min_opset": 14, "precision": "rounding", "name": "Special"}
    made = form(lambda g, node: None, root=("Neg", "Abs"), after=["Abs"], **options)
    pattern = made()
    assert (pattern.priority, pattern.min_opset, pattern.precision) == (2, 14, "rounding")
    assert pattern.name == "Special" and made.roots == ("Neg", "Abs") and made.after == ("Abs",)


def test_registered_with_tags() -> None:
    registered = all_patterns()["ShapeTranspose"]
    assert issubclass(registered, Rewrite) and "default" in registered.tags
    with pytest.raises(OptionError, match="'ShapeTranspose' is already registered"):
        rewrite_form("default", root="Shape", name="ShapeTranspose")(lambda g, node: None)


def test_given_in_a_list() -> None:
    names = [p.name for p in get_pattern_list(["default", neg_neg])]
    assert names.count("NegNeg") == 1 and len(names) > 10
    options = OptimizationOptions(patterns=["default", neg_neg])
    builder = GraphBuilder(model_from_text(NEG_NEG), optimization_options=options)
    model = builder.to_onnx()
    assert [n.op_type for n in model.graph.node] == ["Identity"]


# -- what is answered


def test_a_name() -> None:
    check_pattern(NEG_NEG, IDENTITY, neg_neg)


def test_a_new_node() -> None:
    @rewrite_form(root="Relu", after="Relu")
    def relu_relu(g: RewriteContext, outer: NodeProto) -> Any:
        return g.op.Relu(g.before(outer, "Relu").input[0])

    check_pattern(
        "agraph (float[a] X) => (float[a] Y) { n = Relu(X) Y = Relu(n) }",
        "agraph (float[a] X) => (float[a] Y) { Y = Relu(X) }",
        relu_relu,
    )


def test_a_constant() -> None:
    check_pattern(
        "agraph (float[a] X) => (float[b] Y) <float[2] k = {1.0, -2.0}> { Y = Neg(k) }",
        "agraph (float[a] X) => (float[b] Y) <float[2] k = {-1.0, 2.0}> { Y = Identity(k) }",
        form(lambda g, node: -g.constant_of(node.input[0])),
    )


def test_new_nodes_and_constants() -> None:
    def answer(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Sub(g.scalar(0, like=node.input[0]), node.input[0])

    check_pattern(
        "agraph (float[a] X) => (float[a] Y) { Y = Neg(X) }",
        "agraph (float[a] X) => (float[a] Y) <float zero = {0.0}> { Y = Sub(zero, X) }",
        form(answer),
    )


SPLIT = """agraph (float[4] X) => (float[2] Y, float[2] Z) {
    y, z = Split<num_outputs = 2>(X) Y = Neg(y) Z = Neg(z) }"""
SPLIT_NODE = "agraph (float[4] X) => (float[2] Y, float[2] Z) { Y, Z = Split<num_outputs = 2>(X) }"


def test_several_results_of_one_operator() -> None:
    def answer(g: RewriteContext, node: NodeProto) -> Any:
        new = g.op.Split(g.op.Neg(node.input[0]), outputs=2, num_outputs=2)
        return {g.after(o, "Neg").output[0]: new[i] for i, o in enumerate(node.output)}

    check_pattern(
        SPLIT,
        """agraph (float[4] X) => (float[2] Y, float[2] Z) {
            n = Neg(X) Y, Z = Split<num_outputs = 2>(n) }""",
        form(answer, root="Split"),
    )


@pytest.mark.parametrize("as_list", [False, True])
def test_a_list_for_the_results_of_the_root(as_list: bool) -> None:
    def answer(g: RewriteContext, node: NodeProto) -> Any:
        g.require(len(node.input) == 1, "there is no size")
        new = g.op.Split(node.input[0], np.array([2, 2]), outputs=2)
        return list(new) if as_list else new

    check_pattern(
        SPLIT_NODE,
        """agraph (float[4] X) => (float[2] Y, float[2] Z) <int64[2] s = {2, 2}> {
            Y, Z = Split(X, s) }""",
        form(answer, root="Split"),
    )


def test_a_list_with_none_for_an_unused_result() -> None:
    text = "agraph (float[4] X) => (float[2] Y) { Y, z = Split<num_outputs = 2>(X) }"
    starts, ends = np.array([0]), np.array([2])

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        return [g.op.Slice(node.input[0], starts, ends), None]

    expected = """agraph (float[4] X) => (float[2] Y) <int64[1] a = {0}, int64[1] b = {2}> {
        Y = Slice(X, a, b) }"""
    check_pattern(text, expected, form(answer, root="Split"))
    check_no_match(SPLIT_NODE, form(answer, root="Split"), "another result of Split is used")


def test_one_result_for_two() -> None:
    """The same new operator is written once, the other result is an Identity which goes away."""
    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(X) Y = Add(n, m) }"

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        left, right = g.before(node, "Neg"), g.before(node, "Neg", index=1)
        g.require(left is not right, "one node")
        new = g.op.Neg(left.input[0])
        return {left.output[0]: new, right.output[0]: new}

    expected = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) Y = Add(n, n) }"
    check_pattern(text, expected, form(answer, root="Add"))


def test_a_new_operator_read_twice_is_written_once() -> None:
    def answer(g: RewriteContext, node: NodeProto) -> Any:
        new = g.op.Abs(node.input[0])
        return g.op.Mul(new, g.op.Add(new, new))

    g = optimizer("agraph (float[a] X) => (float[a] Y) { n = Sin(X) Y = Neg(n) }", form(answer))
    g.optimize(max_iter=1)
    assert operators(g) == ["Sin", "Abs", "Add", "Mul"]


def test_the_result_of_another_node() -> None:
    """The node after the root is replaced, in its place."""

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        after = g.after(node, "Relu")
        return {after.output[0]: g.op.Min(g.op.Relu(after.output[0]), after.output[0])}

    with pytest.raises(PatternError, match="cycle|reads"):
        optimizer(
            "agraph (float[a] X) => (float[a] Y) { n = Neg(X) Y = Relu(n) }", form(answer)
        ).optimize()

    def swap(g: RewriteContext, node: NodeProto) -> Any:
        after = g.after(node, "Neg")
        return {after.output[0]: g.op.Transpose(g.op.Neg(node.input[0]), perm=[1, 0])}

    check_pattern(
        "agraph (float[a, b] X) => (float[b, a] Y) { n = Transpose<perm = [1, 0]>(X) Y = Neg(n) }",
        "agraph (float[a, b] X) => (float[b, a] Y) { n = Neg(X) Y = Transpose<perm = [1, 0]>(n) }",
        form(swap, root="Transpose"),
    )


# -- what goes, what stays


def test_a_shared_inner_node_stays() -> None:
    text = "agraph (float[a] X) => (float[a] Y, float[a] Z) { n = Neg(X) Y = Neg(n) Z = Abs(n) }"
    expected = """agraph (float[a] X) => (float[a] Y, float[a] Z) {
        n = Neg(X) Y = Identity(X) Z = Abs(n) }"""
    check_pattern(text, expected, neg_neg)
    check_no_match(text, sole_neg_neg, "an inner result is used elsewhere")


def test_an_output_stays() -> None:
    text = "agraph (float[a] X) => (float[a] Y, float[a] n) { n = Neg(X) Y = Neg(n) }"
    expected = "agraph (float[a] X) => (float[a] Y, float[a] n) { n = Neg(X) Y = Identity(X) }"
    check_pattern(text, expected, neg_neg)
    check_no_match(text, sole_neg_neg, "an inner result is used elsewhere")


CAPTURED = """agraph (float[a] X, bool c) => (float[a] Y, float[a] Z) {
    n = Neg(X) Y = Neg(n)
    Z = If(c) < then_branch = t () => (float[a] T) { T = Abs(n) },
                else_branch = e () => (float[a] E) { E = Abs(X) } > }"""


def test_what_a_subgraph_reads_stays() -> None:
    check_pattern(CAPTURED, CAPTURED.replace("Neg(n)", "Identity(X)"), neg_neg)
    check_no_match(CAPTURED, sole_neg_neg, "an inner result is used elsewhere")


def test_a_kept_node_stays() -> None:
    builder = GraphBuilder(18)
    builder.make_tensor_input("X", 1, ("a",))
    inner = builder.make_node("Neg", ["X"], do_not_remove=True)
    builder.op.Abs(builder.op.Neg(inner), outputs=["Y"])
    builder.make_tensor_output("Y")
    g = GraphBuilderPatternOptimization(builder, [neg_neg])
    g.optimize()
    assert operators(g) == ["Neg", "Abs"]
    assert list(g.node_before("Y").input) == ["X"]


def test_what_the_right_hand_side_reads_stays() -> None:
    def answer(g: RewriteContext, node: NodeProto) -> Any:
        inner = g.before(node, "Sin")
        return g.op.Mul(inner.output[0], g.scalar(-1, like=inner.output[0]))

    for sole_use in (False, True):
        check_pattern(
            "agraph (float[a] X) => (float[a] Y) { n = Sin(X) Y = Neg(n) }",
            """agraph (float[a] X) => (float[a] Y) <float m = {-1.0}> {
                n = Sin(X) Y = Mul(n, m) }""",
            form(answer, sole_use=sole_use),
        )


def test_what_a_new_subgraph_reads_stays() -> None:
    """The branches of the new If read the result of a node the rewrite looked at."""
    text = CAPTURED.replace("Y = Neg(n)", "Y = Abs(X)")

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        g.before("n", "Neg")
        condition = g.op.Not(g.op.Not(node.input[0]))
        g.require(g.before_or_none(node, "Not") is None, "it is done")
        return g.like(node, condition)

    g = optimizer(text, form(answer, root="If"))
    g.optimize()
    assert operators(g) == ["Neg", "Abs", "Not", "Not", "If"]


def test_nodes_found_another_way() -> None:
    def found(g: RewriteContext, node: NodeProto) -> NodeProto:
        before = g.node_before(node.input[0])
        g.require(before is not None and before.op_type == "Neg", "no Neg before")
        return before

    def told(g: RewriteContext, node: NodeProto) -> Any:
        before = found(g, node)
        g.look_at(before, None)
        return before.input[0]

    g = optimizer(NEG_NEG, form(told))
    assert [len(m.nodes) for m in g.patterns[0].enumerate_matches(g)] == [2]
    untold = form(lambda g, node: found(g, node).input[0])
    g = optimizer(NEG_NEG, untold)
    assert [len(m.nodes) for m in g.patterns[0].enumerate_matches(g)] == [1]


def test_a_dropped_match_leaves_nothing() -> None:
    """A chain of three: the second match overlaps the first one."""
    value = np.arange(3, dtype=np.float32)

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Add(g.op.Mul(g.before(node, "Neg").input[0], value), value + 1)

    text = "agraph (float[3] X) => (float[3] Y) { a = Neg(X) b = Neg(a) Y = Neg(b) }"
    g = optimizer(text, form(answer))
    names = "_onx_mul_X", "_onx_mul_a"
    matches = list(g.patterns[0].enumerate_matches(g))
    assert len(matches) == 2 and not g.builder.constants.initializers
    assert not any(name in g.builder.names for name in names)
    g.optimize(max_iter=1)
    assert [name in g.builder.names for name in names] == [True, False]
    assert len(g.builder.constants.initializers) == 2
    assert operators(g) == ["Mul", "Add", "Neg"]


# -- names, documentation, metadata


def test_names_and_metadata_follow() -> None:
    model = model_from_text("agraph (float[a] X) => (float[a] Y) { n = Sin(X) Y = Neg(n) }")
    node = model.graph.node[1]
    node.name, node.doc_string = "layer/neg", "says something"
    node.metadata_props.append(onnx.StringStringEntryProto(key="origin", value="l.12"))

    def answer(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Abs(g.op.Cos(node.input[0]))

    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [form(answer)]).optimize()
    _, inner, last = builder.nodes
    assert last.name.startswith("layer/neg") and last.doc_string == "says something"
    assert [(p.key, p.value) for p in last.metadata_props] == [("origin", "l.12")]
    assert inner.name == "Cos" and not inner.doc_string


# -- with others


def test_together_with_a_class() -> None:
    """Both forms in one run, the class with match and apply takes what the other one leaves."""
    text = """agraph (float[a] X) => (float[a] Y) {
        a = Relu(X) b = Relu(a) c = Neg(b) d = Neg(c) Y = Abs(d) }"""

    @rewrite_form(root="Relu", after="Relu")
    def relu_relu(g: RewriteContext, outer: NodeProto) -> str:
        return g.before(outer, "Relu").output[0]

    g = optimizer(text, NegNeg, relu_relu)
    rows = g.optimize()
    assert operators(g) == ["Relu", "Abs"]
    applied = {r["pattern"] for r in rows if r["pattern"].startswith("apply_")}
    assert applied == {"apply_NegNeg", "apply_ReluRelu"}


def test_parameters() -> None:
    class Scaled(Rewrite):
        """Neg(x) -> Mul(x, factor)."""

        roots = ("Neg",)

        def __init__(self, verbose: int = 0, factor: float = -1.0):
            super().__init__(verbose)
            self.factor = factor

        def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
            return g.op.Mul(node.input[0], g.scalar(self.factor, like=node.input[0]))

    g = optimizer("agraph (float[a] X) => (float[a] Y) { Y = Neg(X) }", Scaled(factor=-2.0))
    g.optimize()
    assert g.get_constant_scalar(g.node_before("Y").input[1]) == -2.0


def test_a_match_whose_neighbours_changed_is_tried_again() -> None:
    """Both matches are found at once. The first one takes away the node that gives x, which the
    second one, that did not tell which nodes it looked at in between, would read."""
    text = """agraph (float[a] X) => (float[a] Y, float[a] Z, float[a] U) {
        x = Sin(X) a = Abs(x) b = Neg(a) Y = Neg(b) Z = Cos(b) U = Cos(a) }"""

    def first(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Relu(g.before(node, "Sin").input[0])

    def second(g: RewriteContext, node: NodeProto) -> Any:
        name = node.input[0]
        for op_type in ("Neg", "Abs"):
            inner = g.known(g.node_before(name), "nothing before")
            g.require(inner.op_type == op_type, "another operator")
            name = inner.input[0]
        return g.op.Tanh(name)

    g = optimizer(text, form(first, root="Abs"), form(second))
    rows = g.optimize()
    refused = [r for r in rows if r.get("refusal")]
    assert [r["pattern"] for r in refused] == ["apply_Second"]
    assert "changed its neighbours" in refused[0]["refusal"]
    assert sorted(operators(g)) == ["Cos", "Cos", "Neg", "Neg", "Relu"], "second refuses then"


def test_a_reader_that_came_meanwhile() -> None:
    """The first match makes a node read a result the second one wants to take away."""
    text = """agraph (float[a] X) => (float[a] Y, float[a] Z) {
        n = Neg(X) m = Sin(n) Y = Neg(n) Z = Abs(m) }"""

    def reads(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Erf(g.before(node, "Sin").input[0])

    def removes(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Relu(g.before(node, "Neg").input[0])

    g = optimizer(text, form(reads, root="Abs"), form(removes))
    g.optimize()
    g.store.check()
    assert sorted(operators(g)) == ["Erf", "Neg", "Relu"]


# -- attributes of a local function

FUNCTION = """<domain: "local", opset_import: ["" : 18]>
F <p> (x) => (y) {
    t = Transpose <perm: ints = @p> (x)
    u = Neg(t)
    y = Neg(u)
}"""


def test_a_reference_to_an_attribute_of_a_function_is_kept() -> None:
    @rewrite_form(root="Neg", after="Transpose")
    def swap(g: RewriteContext, node: NodeProto) -> Any:
        transpose = g.before(node, "Transpose")
        return g.like(transpose, g.op.Neg(transpose.input[0]))

    function = _optimize_function(swap)
    assert [n.op_type for n in function.node] == ["Neg", "Neg", "Transpose"]
    assert function.node[2].attribute[0].ref_attr_name == "p"


def test_a_value_which_is_not_known_refuses() -> None:
    @rewrite_form(root="Neg", after="Transpose")
    def reads_perm(g: RewriteContext, node: NodeProto) -> Any:
        transpose = g.before(node, "Transpose")
        g.get_attribute_with_default(transpose, "perm", None)
        return g.op.Neg(transpose.input[0])

    function = _optimize_function(reads_perm)
    assert [n.op_type for n in function.node] == ["Transpose", "Neg", "Neg"]


def _optimize_function(pattern: Any) -> Any:
    builder = GraphBuilder(
        onnx.parser.parse_function(FUNCTION),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=[pattern]),
    )
    return builder.to_onnx()


def test_the_graph_is_the_same_with_or_without_listener() -> None:
    model = model_from_text(CAPTURED)
    graphs = []
    for listener in (None, lambda reason: None):
        builder = GraphBuilder(model, infer_shapes_options=True)
        g = GraphBuilderPatternOptimization(builder, [neg_neg])
        g.patterns[0].listener = listener
        g.optimize()
        graphs.append(canonical_graph(builder.to_onnx(optimize=False).graph))
    assert graphs[0] == graphs[1]


def test_match_of_a_subclass_is_called() -> None:
    """The engine calls what a subclass of a rewrite, or of a rule, makes of `match`."""

    class Never(neg_neg):
        def match(self, g: Any, node: NodeProto, matched: Any) -> None:
            return self.none(node, "never")

    neg_neg_rule = equation("NegNegRule", "Neg(Neg(x)) -> x")

    class NeverEither(neg_neg_rule):
        def match(self, g: Any, node: NodeProto, matched: Any) -> None:
            return self.none(node, "never")

    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"
    for pattern, expected in [(neg_neg, 1), (Never, 3), (neg_neg_rule, 1), (NeverEither, 3)]:
        builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
        GraphBuilderPatternOptimization(builder, [pattern()]).optimize()
        assert len(builder.nodes) == expected, pattern


# -- rewrites that refuse, and those that are refused: reasons, lines, errors

# -- refusals


def line_of(function: Any, text: str) -> int:
    """Line of a function that has some text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def heard(text: str, pattern: Any) -> list[tuple[int | None, str]]:
    """Line and reason of each refusal."""
    g = optimizer(text, pattern)
    rows: list[Any] = []
    g.patterns[0].listener = rows.append
    list(g.patterns[0].enumerate_matches(g))
    return [(line, reason) for _, _, line, reason in rows]


def refuses_in_helper(g: RewriteContext) -> None:
    g.refuse("said by a helper")


def refuses(g: RewriteContext, node: NodeProto) -> Any:
    g.require(node.input[0] != "X", "it reads X")
    refuses_in_helper(g)


class Refuses(Rewrite):
    """Refuses everything."""

    roots = ("Neg",)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        return refuses(g, node)


def returns_a_refusal(g: RewriteContext, node: NodeProto) -> Any:
    """Refuses everything, without an exception."""
    return g.no("it reads X" if node.input[0] == "X" else "it reads another Neg")


def test_none_is_a_refusal() -> None:
    check_no_match(NEG_NEG, form(lambda g, node: None), "gives no reason")


def test_a_refusal_that_is_returned() -> None:
    pattern = form(lambda g, node: g.no("the type changes"))
    check_no_match(NEG_NEG, pattern, "the type changes")
    line = line_of(returns_a_refusal, "def ")
    expected = [(line, "it reads X"), (line, "it reads another Neg")]
    assert heard(NEG_NEG, form(returns_a_refusal)) == expected


def test_the_line_and_the_reason() -> None:
    expected = [
        (line_of(refuses, "g.require"), "it reads X"),
        (line_of(refuses, "refuses_in_helper(g)"), "said by a helper"),
    ]
    assert heard(NEG_NEG, form(refuses)) == expected
    line = line_of(Refuses, "return refuses")
    assert heard(NEG_NEG, Refuses) == [(line, "it reads X"), (line, "said by a helper")]


def test_the_line_of_what_the_engine_refuses() -> None:
    text = "agraph (float[a] X) => (float[a] Y, float[a] n) { n = Neg(X) Y = Neg(n) }"
    decorated = line_of(sole_neg_neg.rewrite, "@rewrite_form")
    assert heard(text, sole_neg_neg) == [
        (line_of(sole_neg_neg.rewrite, "g.before"), "no Neg before"),
        (decorated, "an inner result is used elsewhere"),
    ]


def test_nothing_is_said_to_nobody() -> None:
    g = optimizer(NEG_NEG, neg_neg)
    pattern = g.patterns[0]
    assert [pattern.match(g, n, []) is None for n in g.iter_nodes()] == [True, False]


# -- errors


@pytest.mark.parametrize(
    "answer",
    [
        lambda g, node: 3,
        lambda g, node: True,
        lambda g, node: [],
        lambda g, node: [None],
        lambda g, node: {},
        lambda g, node: {node.output[0]: None},
        lambda g, node: {node.output[0]: 3},
        lambda g, node: [node.input[0], node.input[0]],
        lambda g, node: node,
        lambda g, node: g.make_node("Abs", [node.input[0]], [node.output[0]]),
    ],
)
def test_a_wrong_answer(answer: Any) -> None:
    with pytest.raises(PatternError, match="(?s)Special must return what replaces .* not "):
        optimizer(NEG_NEG, form(answer, name="Special")).optimize()


@pytest.mark.parametrize("name", ["n", "X", "unknown"])
def test_a_result_the_rewrite_may_not_replace(name: str) -> None:
    text = "agraph (float[a] X) => (float[a] Y) { n = Abs(X) Y = Neg(n) }"
    with pytest.raises(PatternError, match=f"replaces '{name}', which is not a result of a node"):
        optimizer(text, form(lambda g, node: {name: g.op.Sin("X")})).optimize()


@pytest.mark.parametrize("operand", [1, 1.5, "a.b", True, object(), ["a"], [1.5], [True]])
def test_a_wrong_operand(operand: Any) -> None:
    reason = "does not exist" if isinstance(operand, str) else "An input of Add is .*g.scalar"
    with pytest.raises(PatternError, match=f"(?s){reason}"):
        answer = form(lambda g, node: g.op.Add(node.input[0], operand))
        optimizer(NEG_NEG, answer).optimize()


def test_a_result_which_does_not_exist() -> None:
    with pytest.raises(PatternError, match="Abs gives 1 results, there is no 1"):
        optimizer(NEG_NEG, form(lambda g, node: g.op.Abs("X")[1])).optimize()
    with pytest.raises(PatternError, match="reads 'nothing', which does not exist"):
        optimizer(NEG_NEG, form(lambda g, node: "nothing")).optimize()


def test_replaced_by_itself() -> None:
    g = optimizer(NEG_NEG, form(lambda g, node: node.output[0]))
    with pytest.raises(PatternError, match="a result cannot be replaced by itself"):
        g.optimize()
    g.store.check()


def test_replaced_by_what_depends_on_it() -> None:
    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Sin(n) Y = Sin(m) }"
    g = optimizer(text, form(lambda g, node: g.after(node, "Sin").output[0]))
    with pytest.raises(PatternError, match="makes a cycle"):
        g.optimize()
    g.store.check()
    assert operators(g) == ["Neg", "Sin", "Sin"]


def test_another_type() -> None:
    with pytest.raises(PatternError, match="changes the type or the shape of a result"):
        optimizer(NEG_NEG, form(lambda g, node: g.op.Cast(node.input[0], to=7))).optimize()


def test_a_method_to_write() -> None:
    with pytest.raises(NotImplementedError, match="must define method rewrite"):
        Rewrite().rewrite(None, None)
