"""Rules written as equations."""

from __future__ import annotations

import math
import re

import pytest

from xbuilder.errors import OptionError
from xoptim.declarative.algebra import parse_equation
from xoptim.declarative.small_graph import (
    Bound,
    Number,
    Operation,
    Power,
    Product,
    ResultTerm,
    Variable,
)


def left(text: str) -> Operation:
    """The operation a text stands for."""
    (graph,) = parse_equation(f"{text} -> x").lefts
    source = graph.results[0].source
    assert isinstance(source, Operation)
    return source


@pytest.mark.parametrize(
    ("text", "op_type"),
    [
        *(
            ("x + y", "Add"),
            ("x - y", "Sub"),
            ("x * y", "Mul"),
            ("x / y", "Div"),
            ("x ** y", "Pow"),
        ),
        *(("x @ y", "MatMul"), ("x > y", "Greater"), ("x >= y", "GreaterOrEqual")),
        *(("x < y", "Less"), ("x <= y", "LessOrEqual"), ("-x", "Neg"), ("Erf(x)", "Erf")),
    ],
)
def test_operators(text: str, op_type: str) -> None:
    operation = left(text)
    assert operation.op_type == op_type and not operation.domain
    assert all(isinstance(o, Variable) for o in operation.operands)


def test_domain() -> None:
    operation = left("com.microsoft.Gelu(x)")
    assert operation.key == ("com.microsoft", "Gelu") and operation.root == "com.microsoft::Gelu"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0", 0), ("-1.5", -1.5), ("True", True), ("sqrt(2 / pi)", math.sqrt(2 / math.pi))),
        *(("1 / sqrt(2)", 2**-0.5), ("2 ** 3 - 1", 7), ("-inf", -math.inf), ("exp(1)", math.e)),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = left(f"Max(x, {text})").operands[1]
    assert isinstance(number, Number) and number.value == pytest.approx(value)


def test_attributes() -> None:
    operation = left("LeakyRelu(x, alpha=0.1, axis=a, mode='linear', perm=[0, -1])")
    found = operation.attributes or {}
    assert isinstance(found["axis"], Bound) and found["axis"].name == "a"
    assert (found["alpha"], found["mode"], found["perm"]) == (0.1, "linear", [0, -1])
    assert operation.any_attributes is None and not operation.rest


@pytest.mark.parametrize(("name", "expected"), [("_", ""), ("others", "others")])
def test_everything_else(name: str, expected: str) -> None:
    operation = left(f"Conv(x, *{name}, **{name})")
    assert operation.rest == name and operation.any_attributes == expected
    assert len(operation.operands) == 1


def test_missing_and_optional_inputs() -> None:
    x, low, high = left("Clip(x, None, [high])").operands
    assert isinstance(x, Variable) and not x.optional and low is None
    assert isinstance(high, Variable) and high.optional


def test_one_node_for_one_text() -> None:
    operation = left("Sub(Abs(x), Neg(Abs(x)))")
    first, second = operation.operands
    assert isinstance(first, ResultTerm) and isinstance(second, ResultTerm)
    assert isinstance(second.source, Operation)
    inner = second.source.operands[0]
    assert isinstance(inner, ResultTerm) and inner.source is first.source


def test_names_of_results() -> None:
    (graph,) = parse_equation("d = x - y; v, i = TopK(d, 1); (v, i) -> (x, y)").lefts
    top = graph.results[0].source
    assert isinstance(top, Operation) and top.outputs == ("v", "i")
    assert [r.index for r in graph.results] == [0, 1]
    assert [o.outputs for o in graph.operations()] == [("d",), ("v", "i")]


def test_scalars_are_what_the_right_side_uses_as_attributes() -> None:
    (graph,) = parse_equation("x * slope + y -> LeakyRelu(x, alpha=slope)").lefts
    found = {
        o.name: o.scalar for s in graph.operations() for o in s.operands if isinstance(o, Variable)
    }
    assert found == {"x": False, "slope": True, "y": False}


def test_alternatives() -> None:
    text = "q = x ** 2 | x * x; Sqrt(q) | Pow(q, 0.5) | Abs(q) -> x"
    lefts = parse_equation(text).lefts
    kinds = {"+".join(o.op_type for o in g.operations()) for g in lefts}
    assert kinds == {
        *("Pow+Sqrt", "Mul+Sqrt", "Pow+Pow", "Mul+Pow", "Pow+Abs", "Mul+Abs"),
    }
    assert len(lefts) == 6


def test_alternatives_are_chosen_once_for_a_text() -> None:
    """d is one node, wherever it stands."""
    lefts = parse_equation("d = x - y | y - x; Div(d, Abs(d)) -> x").lefts
    assert len(lefts) == 2
    assert all(len(g.operations()) == 3 for g in lefts)


def test_product() -> None:
    (graph,) = parse_equation("product(0.5, x, y ** 3, Tanh(y)) -> x").lefts
    product = graph.results[0].source
    assert isinstance(product, Product)
    assert [type(f) for f in product.factors] == [Number, Variable, Power, ResultTerm]


def test_root() -> None:
    (graph,) = parse_equation("s = Sigmoid(x); x * s -> Sin(x)", root="s").lefts
    assert isinstance(graph.root, Operation) and graph.root.op_type == "Sigmoid"


def test_no_right_side() -> None:
    assert parse_equation("Not(Not(x))").right == ()


BAD = {
    "Not(Not(x) -> x": "was never closed",
    "-> x": "must end with an expression",
    "Not(x) ->": "must end with an expression",
    "x -> x": "'x' is not the result of an operator",
    "0 -> x": "'0' is not the result of an operator",
    "(Neg(x), y) -> (x, y)": "'y' is not the result of an operator",
    "not_(x) -> x": "'not_(x)' is neither an operator, a variable nor a number",
    "Cast(x, to=y + 1) -> x": "'y + 1' is neither a value nor a name",
    "a < b < c -> a": "'a < b < c' is neither",
    "d = Neg(x); Abs(x) -> x": "does not use ['d']",
    "d += x; Abs(x) -> x": "is not 'name = expression'",
    "product(2, 3, x) -> x": "several numbers",
    "product(x ** y) -> x": "'x ** y' is not a power of a variable",
    "product(Abs(x) ** 2) -> x": "is not a power of a variable",
    " + ".join(f"(x | y{i})" for i in range(7)) + " -> x": "more than 64 graphs",
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes(text: str) -> None:
    with pytest.raises(OptionError, match=re.escape(BAD[text])):
        parse_equation(text)
