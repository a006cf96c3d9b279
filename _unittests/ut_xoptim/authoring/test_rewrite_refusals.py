"""Rewrites that refuse, and those that are refused: reasons, lines, errors."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from onnx import NodeProto
from ut_xoptim.authoring.rewrite_forms import (
    NEG_NEG,
    form,
    neg_neg,
    operators,
    optimizer,
    sole_neg_neg,
)

from xbuilder.errors import PatternError
from xoptim import Rewrite, RewriteContext
from xoptim.testing import check_no_match

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
