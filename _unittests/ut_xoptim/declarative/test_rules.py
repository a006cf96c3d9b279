"""Rewrites declared as equations: what they find, what they write, why they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from ut_xoptim.unchecked import optimize_toys

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError, PatternError
from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.constants import is_filled_with
from xoptim.analysis.shapes import keeps_shape
from xoptim.authoring import Rewrite, RewriteContext
from xoptim.catalogue.registry import all_patterns, pattern_database
from xoptim.catalogue.selection import get_pattern_list
from xoptim.declarative import RulePattern, equation, rule
from xoptim.declarative.rules import LazyClassAttribute, compile_equation
from xoptim.testing import (
    canonical_graph,
    check_no_match,
    check_pattern,
    model_from_text,
)

NEG_NEG = equation("NegNeg", "Neg(Neg(x)) -> x")
TEXT = "g (float[a, 4] X, float[a, 4] Z) => (float[a, 4] Y) <float zero = {0}, float two = {2}, "
TEXT += "float[1] ones = {1}, float[4] row = {1, 2, 3, 4}, float[1, 1, 1] deep = {2}> "


def graph(body: str, outputs: str = "") -> str:
    return TEXT.replace("Y)", f"Y{outputs})") + f"{{ {body} }}"


def applied(body: str, cls: type[RulePattern], opset: int = 18) -> list[str]:
    """The operators of the graph once a rule is applied."""
    model, _, _ = optimize_toys(model_from_text(graph(body), opset), [cls()])
    return [n.op_type for n in model.graph.node]


def test_declaration() -> None:
    pattern = NEG_NEG()
    assert pattern.name == "NegNeg" and pattern.roots == ("Neg",) and pattern.after == ("Neg",)
    assert NEG_NEG.__doc__ == "Neg(Neg(x)) -> x"
    assert "NegNeg" not in all_patterns(), "no set, no registration"
    assert pattern == NEG_NEG()


def test_no_condition() -> None:
    before, after = graph("n = Neg(X) m = Neg(n) Y = Add(m, Z)"), graph("Y = Add(X, Z)")
    check_pattern(before, after, [NEG_NEG()])
    check_no_match(graph("n = Abs(X) Y = Neg(n)"), NEG_NEG(), "no Neg before Neg, Abs was found")
    check_no_match(graph("Y = Neg(X)"), NEG_NEG(), "'X', which is not the result of a node")


def test_sole_use() -> None:
    body = "n = Neg(X) m = Neg(n) Y = Add(m, n)"
    check_no_match(graph(body), NEG_NEG(), "an inner result is used elsewhere")
    shared = equation("NegNegShared", "Neg(Neg(x)) -> x", sole_use=False)
    check_pattern(graph(body), graph("n = Neg(X) Y = Add(X, n)"), [shared()])


def test_every_order() -> None:
    cls = equation("MulAddOne", "x * y + 1 -> Sub(x, y)")
    for body in ("m = Mul(X, Z) Y = Add(m, ones)", "m = Mul(X, Z) Y = Add(ones, m)"):
        assert applied(body, cls) == ["Sub"]
    refused = {
        "m = Mul(X, Z) Y = Add(m, two)": "'two' cannot be the constant 1",
        "m = Mul(X, Z) Y = Add(m, X)": "'X' cannot be 1, it is not a constant",
        "m = Div(X, Z) Y = Add(m, ones)": "no Mul before Add, Div was found",
    }
    for body, reason in refused.items():
        check_no_match(graph(body), cls(), reason)


def test_backtracking() -> None:
    """Both operands are Mul, the first order binds the wrong one."""
    cls = equation("Wrong", "Relu(q) * y + z -> Sum(q, y, z)")
    assert applied("a = Mul(X, X) b = Relu(X) c = Mul(b, Z) Y = Add(a, c)", cls) == ["Mul", "Sum"]


def test_numbers_keep_the_shape() -> None:
    cls = equation("TimesTwo", "x * 2 -> x + x")
    assert applied("Y = Mul(X, two)", cls) == ["Add"]
    text = graph("Y = Mul(X, deep)").replace("(float[a, 4] Y)", "(float[1, a, 4] Y)")
    check_no_match(text, cls(), "the constant 'deep' may change the shape")


def test_rounded_numbers() -> None:
    cls = equation("Slope", "x * sqrt(2) -> Sin(x)")
    for value, count in (("1.41421356", 1), ("1.4140625", 1), ("1.41", 0)):
        text = graph("Y = Mul(X, two)").replace("float two = {2}", f"float two = {{{value}}}")
        model, _, _ = optimize_toys(model_from_text(text), [cls()])
        assert [n.op_type for n in model.graph.node].count("Sin") == count


def test_scalar_as_attribute() -> None:
    cls = equation("Leaky", "Where(x > 0, x, x * slope) -> LeakyRelu(x, alpha=slope)")
    before = graph("c = Greater(X, zero) m = Mul(two, X) Y = Where(c, X, m)")
    check_pattern(before, graph("Y = LeakyRelu<alpha = 2.0>(X)"), [cls()])
    body = "c = Greater(X, zero) m = Mul(X, row) Y = Where(c, X, m)"
    check_no_match(graph(body), cls(), "slope is not a scalar constant")
    infinite = before.replace("float two = {2}", "float two = {inf}")
    check_no_match(infinite, cls(), "slope is not finite")


def test_attributes() -> None:
    cls = equation("SoftmaxRelu", "Softmax(Relu(x), axis=-1) -> Softmax(x)")
    assert applied("r = Relu(X) Y = Softmax(r)", cls) == ["Softmax"]
    assert applied("r = Relu(X) Y = Softmax<axis = -1>(r)", cls) == ["Softmax"]
    check_no_match(
        graph("r = Relu(X) Y = Softmax<axis = 0>(r)"), cls(), "axis is 0, -1 is expected"
    )
    bound = equation("AnyAxis", "Softmax(Relu(x), axis=a) -> LogSoftmax(x, axis=a)")
    model, _, _ = optimize_toys(
        model_from_text(graph("r = Relu(X) Y = Softmax<axis = 0>(r)")), [bound()]
    )
    assert model.graph.node[0].attribute[0].i == 0


def test_an_attribute_that_is_not_mentioned_has_its_default_value() -> None:
    cls = equation("EluRelu", "Elu(Relu(x)) -> Relu(x)")
    assert applied("r = Relu(X) Y = Elu(r)", cls) == ["Relu"]
    text = graph("r = Relu(X) Y = Elu<alpha = 2.0>(r)")
    check_no_match(text, cls(), "alpha is 2.0, 1.0 is expected")


def test_every_other_attribute() -> None:
    cls = equation("Unary", "Elu(Relu(x), **attributes) -> Celu(x, **attributes)")
    model, _, _ = optimize_toys(
        model_from_text(graph("r = Relu(X) Y = Elu<alpha = 2.0>(r)")), [cls()]
    )
    assert model.graph.node[0].op_type == "Celu" and model.graph.node[0].attribute[0].f == 2


def test_optional_and_missing_inputs() -> None:
    cls = equation("ClipRelu", "Clip(Relu(x), None, [high]) -> Clip(x, 0, [high])")
    for body, after in (
        ("r = Relu(X) Y = Clip(r, , two)", "Y = Clip(X, zero, two)"),
        ("r = Relu(X) Y = Clip(r)", "Y = Clip(X, zero)"),
    ):
        check_pattern(graph(body), graph(after), [cls()])
    check_no_match(graph("r = Relu(X) Y = Clip(r, two)"), cls(), "'two' cannot be ''")


def test_too_many_inputs() -> None:
    cls = equation("Max2", "Max(x, 0) -> Relu(x)")
    check_no_match(graph("Y = Max(X, zero, Z)"), cls(), "Max has 3 inputs, 2 expected")
    rest = equation("MaxRest", "Sum(Relu(x), *others) -> Sum(x, *others)")
    assert applied("r = Relu(X) Y = Sum(r, Z, X)", rest) == ["Sum"]


def test_several_equations() -> None:
    cls = equation("Halves", "x / 2 -> Sin(x)", "x * 2 -> Cos(x)")
    assert cls().roots == ("Div", "Mul")
    assert applied("a = Div(X, two) Y = Mul(a, two)", cls) == ["Sin", "Cos"]
    either = equation("Either", "Abs(x ** 2 | x * x) -> Sin(x)")
    assert applied("a = Pow(X, two) b = Mul(X, X) c = Abs(a) d = Abs(b) Y = Add(c, d)", either) == [
        *("Sin", "Sin", "Add"),
    ]


def test_reasons_of_several_equations() -> None:
    cls = equation("Both", "Abs(Neg(x)) -> x", "Abs(Sin(x)) -> x")
    found = "no Neg before Abs, Cos was found; no Sin before Abs, Cos was found"
    check_no_match(graph("c = Cos(X) Y = Abs(c)"), cls(), found)


def test_several_results() -> None:
    cls = equation("AddSub", "(x + y, x - y) -> toy.AddSub(x, y)")
    body = "s = Add(X, Z) d = Sub(X, Z) Y = Mul(s, d)"
    model, _, _ = optimize_toys(model_from_text(graph(body)), [cls()])
    assert [n.op_type for n in model.graph.node] == ["AddSub", "Mul"]
    assert model.graph.node[0].domain == "toy"
    swapped = equation("Swapped", "(x + y, x - y) -> (x - y, x + y)")
    model, _, _ = optimize_toys(model_from_text(graph(body)), [swapped()], max_iter=1)
    assert sorted(n.op_type for n in model.graph.node) == ["Add", "Mul", "Sub"]


def test_nothing_reads() -> None:
    cls = equation("AddSub2", "(x + y, x - y) -> toy.AddSub(x, y)")
    check_no_match(graph("Y = Add(X, Z)"), cls(), "Sub was expected, Add was found")


def test_right_side_with_names() -> None:
    cls = equation("Twice", "Exp(x + y) -> e = Exp(x); e * Exp(y) - 2 + e")
    after = graph("e = Exp(X) f = Exp(Z) m = Mul(e, f) s = Sub(m, two) Y = Add(s, e)")
    model, _, _ = optimize_toys(
        model_from_text(graph("s = Add(X, Z) Y = Exp(s)")), [cls()], max_iter=1
    )
    expected = [n.op_type for n in model_from_text(after).graph.node]
    assert sorted(n.op_type for n in model.graph.node) == sorted(expected)


@rule("Neg(Abs(x)) -> Mul(x, factor)")
def neg_abs(g: RewriteContext, x: str) -> dict[str, Any]:
    """-|x| -> x * factor, when the shape is known."""
    g.require(g.has_shape(x), "the shape is not known")
    return {"factor": g.scalar(3, x)}


def test_condition_gives_values() -> None:
    assert neg_abs.__doc__ and neg_abs().name == "NegAbs"
    model, _, _ = optimize_toys(model_from_text(graph("a = Abs(X) Y = Neg(a)")), [neg_abs()])
    assert model.graph.initializer[0].dims == [] and model.graph.node[0].op_type == "Mul"
    text = "g (float[a] X) => (float[] Y) { n = toy.Op(X) a = Abs(n) Y = Neg(a) }"
    check_no_match(model_from_text(text, domains=("toy",)), neg_abs(), "the shape is not known")


def test_condition_of_the_second_order() -> None:
    """The function refuses the first order, the second one is tried."""

    @rule("x + c -> x - c")
    def constant_on_the_right(g: RewriteContext, c: str) -> None:
        g.require(g.is_constant(c), "c is not constant")

    model, _, _ = optimize_toys(
        model_from_text(graph("Y = Add(two, X)")), [constant_on_the_right()]
    )
    assert list(model.graph.node[0].input) == ["X", "two"]
    check_no_match(graph("Y = Add(X, Z)"), constant_on_the_right(), "c is not constant")


def test_function_returns_the_right_side() -> None:
    @rule("y = Neg(x + z); y")
    def negated_sum(g: RewriteContext, x: str, y: str, z: str) -> Any:
        after = g.after(y, "Abs")
        return {after.output[0]: g.op.Abs(g.op.Add(x, z))}

    body = "s = Add(X, Z) n = Neg(s) Y = Abs(n)"
    check_pattern(graph(body), graph("s = Add(X, Z) Y = Abs(s)"), [negated_sum()])
    check_no_match(graph("s = Add(X, Z) Y = Neg(s)"), negated_sum(), "Abs is not the only use")


def test_root_elsewhere() -> None:
    cls = rule("s = Sigmoid(x); x * s -> Swish(x)", root="s")(swish)
    assert cls().roots == ("Sigmoid",)
    assert applied("e = Sigmoid(X) Y = Mul(X, e)", cls, 24) == ["Swish"]
    check_no_match(graph("Y = Sigmoid(X)"), cls(), "nothing reads 'Y', Mul was expected")
    check_no_match(graph("e = Sigmoid(X) Y = Mul(Z, e)"), cls(), "'Z' cannot be 'x', which is 'X'")
    body = "e = Sigmoid(X) Y = Add(X, e)"
    check_no_match(graph(body), cls(), "Mul was expected, Add was found")


def swish(g: RewriteContext) -> None:
    """x * Sigmoid(x) -> Swish(x)."""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("t = Tanh(X) a = Mul(X, two) Y = Mul(a, t)", 1),
        ("t = Tanh(X) a = Mul(t, two) Y = Mul(a, X)", 1),
        ("t = Tanh(X) a = Mul(X, t) Y = Mul(two, a)", 1),
        ("t = Tanh(X) a = Div(X, half) Y = Mul(a, t)", 1),
        ("t = Tanh(X) Y = Mul(X, t)", 0),
        ("t = Tanh(Z) a = Mul(X, two) Y = Mul(a, t)", 0),
    ],
)
def test_product(body: str, count: int) -> None:
    cls = equation("Prod", "product(2, x, Tanh(x)) -> Sin(x)")
    text = graph(body).replace("float zero", "float half = {0.5}, float zero")
    model, _, _ = optimize_toys(model_from_text(text), [cls()])
    assert [n.op_type for n in model.graph.node].count("Sin") == count


def test_product_with_a_scalar() -> None:
    cls = equation("Scaled", "Tanh(product(alpha, x)) -> Elu(x, alpha=alpha)")
    for body, alpha in (("m = Mul(X, two) Y = Tanh(m)", 2), ("m = Div(X, two) Y = Tanh(m)", 0.5)):
        model, _, _ = optimize_toys(model_from_text(graph(body)), [cls()])
        assert model.graph.node[0].attribute[0].f == alpha
    check_no_match(graph("m = Div(X, zero) Y = Tanh(m)"), cls(), "division by zero")
    reason = "does not have one factor in the argument of Tanh"
    check_no_match(graph("m = Mul(X, Z) Y = Tanh(m)"), cls(), reason)


@pytest.mark.parametrize("body", ["q = Mul(X, X) m = Mul(q, two)", "m = Mul(two, p)"])
def test_powers_in_a_product(body: str) -> None:
    cls = equation("Powers", "x + product(2, x ** 2) -> Sin(x)")
    model, _, _ = optimize_toys(
        model_from_text(graph(f"p = Pow(X, two) {body} Y = Add(m, X)")), [cls()]
    )
    assert "Sin" in [n.op_type for n in model.graph.node]


def test_nothing_is_called_when_an_operator_is_missing() -> None:
    """An operator of the equation is nowhere in the graph: no root is looked at."""
    cls = equation("Rare", "x * Erf(x) -> Sin(x)")
    assert cls.candidate_roots is not None
    model = model_from_text(graph("a = Mul(X, Z) Y = Mul(a, X)"))
    _, rows, _ = optimize_toys(model, [cls()])
    assert sum(r.get("instances", 0) for r in rows) == 0


MISTAKES = {
    "an equation is expected": (lambda: equation("A", "default"), "has no equation"),
    "unknown argument": (lambda: rule("Neg(x) -> x")(lambda g, y: None), r"asks for \['y'\]"),
    "no argument": (lambda: rule("Neg(x) -> x")(lambda: None), "the first one receives the graph"),
    "unknown root": (lambda: rule("Neg(x) -> x", root="r")(swish), "its root 'r'"),
    "two results": (lambda: equation("A", "Neg(x) -> (x, x)"), "has not 1 results"),
    "no operator": (lambda: equation("A", "Neg(x) -> neg(x)"), "cannot be written"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, message = MISTAKES[name]
    with pytest.raises(OptionError, match=message):
        make()


def test_value_that_nobody_gives() -> None:
    cls = equation("Lacking", "Neg(x) -> Mul(x, factor)")
    with pytest.raises(PatternError, match=r"does not know \['factor'\]"):
        optimize_toys(model_from_text(graph("Y = Neg(X)")), [cls()])


def test_nothing_is_left_by_a_match_that_is_dropped() -> None:
    """Numbers of the right-hand side become initializers once the match is applied."""
    cls = equation("Cube", "Neg(Neg(x)) -> x * 5")
    model, _, _ = optimize_toys(
        model_from_text(graph("a = Neg(X) b = Neg(a) c = Neg(b) d = Neg(c) Y = Abs(d)")), [cls()]
    )
    fives = [
        i for i in model.graph.initializer if np.array_equal(np.frombuffer(i.raw_data, "f"), [5])
    ]
    assert len(fives) <= 1


@pytest.fixture
def other_registry(monkeypatch) -> None:
    """Unregisters the patterns of a test."""
    monkeypatch.setattr("xoptim.catalogue.registry.PATTERNS", pattern_database().copy())


def test_a_rule_of_a_set_is_read_when_it_may_match(other_registry) -> None:
    """Its mistakes are told then, in the same words; a test reads every rule of the project."""
    cls = equation("ReadLater", "tests-of-rules", "Neg(Exp(x)) -> neg(x)")
    for body in ("Y = Neg(X)", "Y = Exp(X)"):
        optimize_toys(model_from_text(graph(body)), get_pattern_list("ReadLater"))
    assert cls.roots == ("Neg",) and isinstance(vars(cls)["sides"], LazyClassAttribute)
    for _ in range(2):
        with pytest.raises(OptionError, match="cannot be written"):
            optimize_toys(model_from_text(graph("e = Exp(X) Y = Neg(e)")), [cls()])
    with pytest.raises(OptionError, match="cannot be written"):
        _ = cls().after


def test_what_the_equations_tell_is_read_once(other_registry) -> None:
    cls = equation("ReadOnce", "tests-of-rules", "Neg(Neg(x)) -> x")
    assert isinstance(vars(cls)["roots"], LazyClassAttribute)
    assert not cls().may_match(set()) and cls().may_match({("", "Neg"), ("", "Abs")})
    assert vars(cls)["roots"] == ("Neg",) and isinstance(vars(cls)["sides"], LazyClassAttribute)
    assert (cls.roots, cls().after, cls.arguments) == (("Neg",), ("Neg",), ())
    assert vars(cls)["roots"] == ("Neg",) and len(vars(cls)["sides"]) == 1


@pytest.mark.parametrize(
    "text, sole_use, expected",
    [
        ("Neg(Neg(x)) -> x", True, 2),
        ("Where(x > 0, x, Neg(x)) -> Relu(x)", True, 3),
        ("Neg(Neg(x)) -> x", False, 0),  # the inner one may stay
        ("n = Neg(x); n + Abs(n) -> Relu(x)", True, 0),  # two nodes read n
        ("n = Neg(x); Abs(n) -> Abs(Neg(n))", True, 0),  # what is written reads n
        ("a, b = TopK(x, k); (Neg(a), b) -> (a, b)", True, 0),
    ],
)
def test_graphs_that_go_whole(text: str, sole_use: bool, expected: int) -> None:
    assert {side.whole for side in compile_equation(text, sole_use)} == {expected}


@pytest.mark.parametrize(
    "body", ["d, T = Dropout(X) Y = Neg(d)", "d, k = Dropout(X) Y = Neg(d) T = Not(k)"]
)
def test_another_result_of_an_inner_node_is_used(body: str) -> None:
    """The graph goes whole if each of its nodes gives one result: Dropout gives a mask too."""
    cls = equation("NegDropout", "Neg(Dropout(x)) -> Neg(x)")
    check_no_match(graph(body, ", bool[a, 4] T"), cls(), "used elsewhere")


def test_what_a_pinned_result_needs_stays() -> None:
    builder = GraphBuilder(model_from_text(graph("n = Neg(X) Y = Neg(n)")))
    builder.store.pinned.add("n")
    rows = GraphBuilderPatternOptimization(builder, [NEG_NEG()]).optimize()
    assert not any(row["removed"] for row in rows) and len(builder.store) == 2


def test_a_condition_that_looks_at_more_nodes() -> None:
    """The replacement reads the result of Abs, which is kept though the condition visited it."""

    @rule("Neg(Neg(x)) -> Exp(x)")
    def neg_neg_exp(g: RewriteContext, x: str) -> None:
        """Neg(Neg(X)) -> Exp(X), if Abs gives X."""
        g.before(x, "Abs")

    assert applied("b = Abs(X) n = Neg(b) Y = Neg(n)", neg_neg_exp) == ["Abs", "Exp"]


# -- a rule and the same rewrite written by hand give the same graph, on random graphs

CONSTANTS = "float zero = {0}, float[1] one = {1}, float two = {2}, float[4] row = {0, 0, 0, 0}"
UNARY, BINARY = ("Neg", "Abs", "Relu"), ("Add", "Mul", "Sub", "Max")


class NegNeg(Rewrite):
    roots = ("Neg",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        return g.before(node, "Neg").input[0]


class AddZero(Rewrite):
    roots = ("Add",)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        for x, zero in (tuple(node.input), tuple(node.input)[::-1]):
            if is_filled_with(g, zero, 0) and keeps_shape(g, x, g.get_shape(zero)):
                return x
        g.refuse("nothing is added to 0")


class Factor(Rewrite):
    """x * y + x * z -> x * (y + z): each Mul in both orders, both operands of Add."""

    roots = ("Add",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        first, second = (g.before(node, "Mul", index=i) for i in (0, 1))
        g.require(first is not second, "one node")
        for x, y in (tuple(first.input), tuple(first.input)[::-1]):
            for u, z in (tuple(second.input), tuple(second.input)[::-1]):
                if u == x:
                    return g.op.Mul(x, g.op.Add(y, z))
        g.refuse("nothing in common")


class ReluMax(Rewrite):
    roots = ("Max",)
    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Any:
        for i in (0, 1):
            relu = g.before_or_none(node, "Relu", index=i)
            alone = relu is not None and not g.is_used_more_than_once(relu.output[0])
            if alone and relu is not None and len(node.input) == 2:
                return g.op.Relu(g.op.Max(relu.input[0], node.input[1 - i]))
        g.refuse("no Relu before")


PAIRS = [
    (NegNeg, equation("NegNegRule", "Neg(Neg(x)) -> x")),
    (AddZero, equation("AddZeroRule", "x + 0 -> x")),
    (Factor, equation("FactorRule", "x * y + x * z -> x * (y + z)")),
    (ReluMax, equation("ReluMaxRule", "Max(Relu(x), y) -> Relu(Max(x, y))")),
]


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """A graph of unary and binary operators, its last results are outputs."""
    names = ["x", "z", "zero", "one", "two", "row"]
    lines = []
    for i in range(draw(st.integers(2, 14))):
        read = [draw(st.sampled_from(names[-7:] + names[:4])) for _ in (0, 1)]
        unary = draw(st.booleans())
        operator = draw(st.sampled_from(UNARY if unary else BINARY))
        lines.append(f"r{i} = {operator}({read[0] if unary else ', '.join(read)})")
        names.append(f"r{i}")
    outputs = draw(st.sets(st.sampled_from(names[6:]), min_size=1, max_size=2)) | {names[-1]}
    typed = ", ".join(f"float[] {n}" for n in sorted(outputs))
    header = f"g (float[a, 4] x, float[a, 4] z) => ({typed})"
    return f"{header} <{CONSTANTS}> {{ {' '.join(lines)} }}"


@settings(max_examples=60, deadline=None)
@given(text=graphs(), pair=st.sampled_from(PAIRS))
def test_same_graph(text: str, pair: Any) -> None:
    model = model_from_text(text.replace("float[] ", "float "))
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    results = [optimize_toys(model, [cls()], max_iter=1)[0] for cls in pair]
    assert canonical_graph(results[0].graph) == canonical_graph(results[1].graph)
