"""An equation requires the same operators before and after it is compiled."""

from __future__ import annotations

import pytest

from xbuilder.errors import OptionError
from xoptim.catalogue.registry import all_patterns
from xoptim.declarative.outlines import outline_of
from xoptim.declarative.rule_patterns import RulePattern

EQUATIONS = {
    "Not(Not(x)) -> x": (("Not",), "Not"),
    "x + 0 -> x": (("Add",), "Add"),
    "-x -> x": (("Neg",), "Neg"),
    "Where(x > 0, x, x * s) -> LeakyRelu(x, alpha=s)": (("Where",), "Greater Mul Where"),
    "com.microsoft.Gelu(x) -> x": (("com.microsoft::Gelu",), "com.microsoft::Gelu"),
    "Sqrt(x ** 2 | x * x) -> Abs(x)": (("Sqrt",), "Sqrt"),
    "Sqrt(Exp(x) | Exp(Neg(x))) -> x": (("Sqrt",), "Exp Sqrt"),
    "Exp(x) | Log(x) -> x": (("Exp", "Log"), ""),
    "d = x - y; Div(d, ReduceMean(d)) -> x": (("Div",), "Div ReduceMean Sub"),
    "product(sqrt(2 / pi), x, Erf(x)) -> x": (("Mul",), "Erf"),
    "x + product(2, x ** 2) -> x": (("Add",), "Add"),
    "a, b = Split(x, *_); (Neg(a), Exp(b)) -> (a, b)": (("Neg",), "Exp Neg Split"),
    "Clip(x, None, [high]) -> Min(x, high)": (("Clip",), "Clip"),
}


@pytest.mark.parametrize("text", EQUATIONS)
def test_outline(text: str) -> None:
    roots, needs = EQUATIONS[text]
    found = outline_of(text)
    assert found.roots == roots
    assert found.needs == {tuple(n.rpartition("::")[::2]) for n in needs.split()}


def test_root() -> None:
    """The search may start from an inner result."""
    assert outline_of("d = Neg(x); Exp(d) -> x", "d").roots == ("Neg",)


def test_not_python() -> None:
    with pytest.raises(OptionError, match="is not valid"):
        outline_of("Neg( -> x")


RULES = {n: c for n, c in all_patterns().items() if issubclass(c, RulePattern)}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_compiled(name: str) -> None:
    """A mistake in the text of a rule of the project is told here."""
    cls = RULES[name]
    assert issubclass(cls, RulePattern)
    assert cls.roots == tuple(dict.fromkeys(s.left.root for s in cls.sides))
    for text, needs in zip(cls.equations, cls.needs, strict=True):
        keys = [s.left.keys for s in cls.sides if s.text == text]
        assert needs == frozenset.intersection(*keys)
