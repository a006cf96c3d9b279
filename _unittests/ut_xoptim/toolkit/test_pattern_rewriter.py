"""Rewrites given by nested tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xoptim.toolkit.rewriter_runs import op_types, optimized

from xbuilder.errors import OptionError
from xoptim.authoring.context import context_of
from xoptim.testing import check_no_match, check_pattern, optimizer_of
from xoptim.toolkit import PatternNodeRewriter, Var

HEAD = "g (float[a, b] x, float[a, b] y) => (float[a, b] z)"
DIV_MUL = PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x", name="div_mul")


def has_rank_two(graph, name):
    return graph.rank_of(name) == 2


def is_two(graph, name):
    value = graph.graph.constants.uniform_value(name)
    return value is not None and value == 2


def is_one(graph, value):
    return value == 1


REWRITES: dict[str, tuple[PatternNodeRewriter, str, str]] = {
    "variable": (
        PatternNodeRewriter(("Neg", ("Neg", "x")), "x"),
        "m = Neg(x) n = Neg(m) z = Add(n, y)",
        "z = Add(x, y)",
    ),
    "commutative": (
        PatternNodeRewriter(("Add", ("Neg", "x"), "y"), ("Sub", "y", "x")),
        "n = Neg(x) z = Add(y, n)",
        "z = Sub(y, x)",
    ),
    "constant": (
        PatternNodeRewriter(("Max", "x", 0), ("Relu", "x")),
        "k = Constant<value_float = 0.0>() z = Max(x, k)",
        "z = Relu(x)",
    ),
    "constraint on the value of an attribute": (
        PatternNodeRewriter(
            ("Log", ("Softmax", "x", {"axis": {"pattern": Var("a"), "constraint": is_one}})),
            ("LogSoftmax", "x", {"axis": Var("a")}),
            values_eq_approx=np.allclose,
        ),
        "s = Softmax<axis = 1>(x) z = Log(s)",
        "z = LogSoftmax<axis = 1>(x)",
    ),
    "attribute": (
        PatternNodeRewriter(("LeakyRelu", "x", {"alpha": 0.0}), ("Relu", "x")),
        "z = LeakyRelu<alpha = 0.0>(x)",
        "z = Relu(x)",
    ),
    "attribute that gets a name": (
        PatternNodeRewriter(
            ("Softmax", "x", {"axis": Var("a")}),
            ("Exp", ("LogSoftmax", "x", {"axis": Var("a")})),
            values_eq_approx=np.allclose,
        ),
        "z = Softmax<axis = 0>(x)",
        "l = LogSoftmax<axis = 0>(x) z = Exp(l)",
    ),
    "constraint on a variable": (
        PatternNodeRewriter(
            ("Neg", ("Neg", {"pattern": "x", "constraint": has_rank_two})), ("Identity", "x")
        ),
        "m = Neg(x) n = Neg(m) z = Add(n, y)",
        "z = Add(x, y)",
    ),
    "constraint on a constant": (
        PatternNodeRewriter(
            ("Pow", "x", {"pattern": "two", "constraint": is_two}), ("Mul", "x", "x")
        ),
        "k = Constant<value_float = 2.0>() z = Pow(x, k)",
        "z = Mul(x, x)",
    ),
    "constraint on a tree": (
        PatternNodeRewriter(
            ("Relu", {"pattern": ("Neg", "x"), "constraint": has_rank_two}), ("Abs", "x")
        ),
        "n = Neg(x) z = Relu(n)",
        "z = Abs(x)",
    ),
    "function": (
        PatternNodeRewriter(("Neg", ("Neg", "x")), lambda graph, x: graph.op.Identity(x)),
        "m = Neg(x) n = Neg(m) z = Add(n, y)",
        "z = Add(x, y)",
    ),
    "domain": (
        PatternNodeRewriter(
            ("com.microsoft::Gelu", "x"), ("com.microsoft::QuickGelu", "x", {"alpha": 1.0})
        ),
        "z = com.microsoft.Gelu(x)",
        "z = com.microsoft.QuickGelu<alpha = 1.0>(x)",
    ),
    "missing input": (
        PatternNodeRewriter(("Clip", "x", None, "h"), ("Min", "x", "h")),
        "k = Constant<value_float = 6.0>() z = Clip(x, , k)",
        "k = Constant<value_float = 6.0>() z = Min(x, k)",
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewrites(name: str) -> None:
    rewriter, before, after = REWRITES[name]
    values = name not in ("function", "constraint on a tree", "domain")
    if values:
        # the kernel of Relu has its own answer to NaN
        exact = name != "attribute"
        texts = f"{HEAD} {{ {before} }}", f"{HEAD} {{ {after} }}"
        check_pattern(*texts, [rewriter], verifies=exact)
    else:
        assert types_after(f"{HEAD} {{ {before} }}", rewriter) == types_after(
            f"{HEAD} {{ {after} }}"
        )


def types_after(text: str, *patterns: Any) -> list[str]:
    return op_types(optimized(text, *patterns))


def test_several_results() -> None:
    text = "g (float[4] x) => (float[2] y, float[2] z) { a, b = Split<num_outputs = 2>(x) y = Neg(a) z = Neg(b) }"
    halves = {"pattern": ("Split", "x", {"num_outputs": 2}), "results": ("a", "b")}
    negated = PatternNodeRewriter(
        halves, lambda graph, x: list(graph.op.Split(x, [2, 2], outputs=2)), name="sizes"
    )
    assert negated.text == "a, b = Split(x, num_outputs=2); (a, b)"
    assert types_after(text, negated) == ["Split", "Neg", "Neg"]
    second = {**halves, "results": ("_a", "b"), "index": 1}
    one = PatternNodeRewriter(("Neg", second), ("Abs", "b"), allow_multiple_clients=True)
    assert types_after(text, one) == ["Split", "Neg", "Abs"]


def test_two_trees() -> None:
    text = f"{HEAD[:-1]}, float[a, b] w) {{ e = Exp(x) z = Mul(e, y) w = Div(e, y) }}"
    pair = PatternNodeRewriter(
        [("Mul", ("Exp", "x"), "y"), ("Div", ("Exp", "x"), "y")],
        [("Exp", ("Add", "x", "y")), ("Exp", ("Sub", "x", "y"))],
    )
    assert sorted(types_after(text, pair)) == ["Add", "Exp", "Exp", "Sub"]


REFUSALS = {
    "another operator": (DIV_MUL, "m = Add(x, y) z = Div(m, y)", "no Mul before Div"),
    "another variable": (DIV_MUL, "m = Mul(x, y) n = Neg(y) z = Div(m, n)", "'y'"),
    "used elsewhere": (
        DIV_MUL,
        "m = Mul(x, y) d = Div(m, y) z = Add(m, d)",
        "an inner result is used elsewhere",
    ),
    "constraint": (
        PatternNodeRewriter(
            ("Neg", {"pattern": "x", "constraint": lambda graph, x: False}), ("Abs", "x")
        ),
        "z = Neg(x)",
        "the constraint on x does not hold",
    ),
    "constraint on an attribute": (
        PatternNodeRewriter(
            ("Softmax", "x", {"axis": Var("a")}),
            lambda graph, x, a: graph.op.Relu(x) if is_one(graph, a) else graph.no("another axis"),
        ),
        "z = Softmax<axis = 0>(x)",
        "another axis",
    ),
    "constraint on the value of an attribute": (
        PatternNodeRewriter(
            ("Softmax", "x", {"axis": {"pattern": Var("a"), "constraint": is_one}}),
            ("Softmax", ("Abs", "x"), {"axis": Var("a")}),
        ),
        "z = Softmax<axis = 0>(x)",
        "the constraint on a does not hold",
    ),
    "attribute": (
        PatternNodeRewriter(("LeakyRelu", "x", {"alpha": 0.0}), ("Relu", "x")),
        "z = LeakyRelu<alpha = 0.5>(x)",
        "attributes differ",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses(name: str) -> None:
    rewriter, text, reason = REFUSALS[name]
    check_no_match(f"{HEAD} {{ {text} }}", rewriter, reason)


def test_a_result_of_another_shape_is_left() -> None:
    text = "g (float[a, 1] x, float[a, b] y) => (float[a, b] z) { m = Mul(x, y) z = Div(m, y) }"
    check_no_match(text, DIV_MUL, "'x' is not proven to have the type and the shape of 'z'")
    unknown = "g (float[a] x, float[b] y) => (float[c] z) { m = Mul(x, y) z = Div(m, y) }"
    check_no_match(unknown, DIV_MUL, "is not proven")


def test_allow_multiple_clients() -> None:
    text = f"{HEAD} {{ m = Mul(x, y) d = Div(m, y) z = Add(m, d) }}"
    allowed = PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x", allow_multiple_clients=True)
    assert types_after(text, allowed) == ["Mul", "Add"] and types_after(text, DIV_MUL) == [
        "Mul",
        "Div",
        "Add",
    ]


def test_get_nodes() -> None:
    """The search starts from the rare operator inside."""
    looked: list[str] = []

    def ends(graph, node):
        looked.append(node.op_type)
        return graph.next_nodes(node.output[0])

    rewriter = PatternNodeRewriter(
        ("Add", ("Erf", "x"), "y"), ("Sub", ("Erf", "x"), "y"), tracks=["Erf"], get_nodes=ends
    )
    text = f"{HEAD} {{ e = Erf(x) s = Add(y, y) z = Add(e, s) }}"
    assert types_after(text, rewriter) == ["Add", "Erf", "Sub"]
    assert set(looked) == {"Erf"} and rewriter.roots == ("Erf",)
    check_no_match(f"{HEAD} {{ e = Erf(x) z = Mul(e, y) }}", rewriter)


def test_transform() -> None:
    g = optimizer_of(f"{HEAD} {{ m = Mul(x, y) z = Div(m, y) }}", [])
    context = context_of(g)
    assert DIV_MUL.transform(context, g.node_before("z")) == {"z": "x"}
    assert DIV_MUL.transform(context, g.node_before("m")) is False


def test_values_eq_approx() -> None:
    """Values are compared as the rewriter says."""
    text = f"{HEAD} {{ m = Mul(x, y) z = Div(m, y) }}"
    after = f"{HEAD} {{ z = Identity(x) }}"
    seen = []

    def close(a, b):
        seen.append(np.abs(a - b).max())
        return True

    rewriter = PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x", values_eq_approx=close)
    check_pattern(text, after, [rewriter], verifies=False)  # 0 * x / 0 is NaN
    assert seen
    never = PatternNodeRewriter(
        ("Div", ("Mul", "x", "y"), "y"), "x", values_eq_approx=lambda a, b: False
    )
    with pytest.raises(AssertionError, match="values_eq_approx"):
        check_pattern(text, after, [never], verifies=False)


def test_names() -> None:
    assert DIV_MUL.name == "div_mul"
    assert PatternNodeRewriter(("Neg", "x"), ("Abs", "x")).name == "Neg(x) -> Abs(x)"


def test_not_a_pattern() -> None:
    with pytest.raises(OptionError, match="is not one side"):
        PatternNodeRewriter("not a name", "x")
    with pytest.raises(OptionError, match="is not the result of an operator"):
        PatternNodeRewriter("x", "y")
    with pytest.raises(OptionError, match="asks for"):
        PatternNodeRewriter(("Neg", "x"), lambda graph, z: z)
