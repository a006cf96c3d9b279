"""Names of operators in the declaration of a pattern."""

from __future__ import annotations

import warnings

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization, explain, rewrite, rule
from xoptim.authoring import patterns
from xoptim.authoring.operator_names import (
    DECLARATIONS,
    check_declared_operators,
    check_operators,
    is_tested,
)
from xoptim.catalogue.registry import all_patterns, register_pattern
from xoptim.declarative.rule_patterns import RulePattern
from xoptim.declarative.rules import check_right_sides, check_sides
from xoptim.testing import model_from_text


def declared_rewrite(**names):
    """A rewrite that names some operators."""
    return rewrite(**names)(lambda g, node: None)


def declared_rule(*equations):
    """A rule whose function returns nothing."""

    @rule(*equations)
    def checked(g):
        """It checks nothing."""

    return checked


@pytest.mark.parametrize("word", ["root", "after", "reads", "beyond", "read_by"])
def test_a_typo_in_a_rewrite(word):
    with pytest.raises(
        OptionError, match="names operator 'Lgo' of the main domain, did you mean Log"
    ):
        declared_rewrite(**{"root": "Exp", word: ("Exp", "Lgo")})


def test_a_table_of_operators_names_them():
    """Only `reads` gives the operators of each root."""
    table = {"Log": 1.0, "Abs": None}
    declared = declared_rewrite(root="Exp", after=table, read_by=table)
    assert declared.after == declared.read_by == ("Log", "Abs")
    assert declared.reads_of == {} and declared.reads == ()


def test_a_typo_in_the_operators_of_a_root():
    with pytest.raises(OptionError, match="did you mean Log"):
        declared_rewrite(root="Exp", reads={"Exp": ("Lgo",)})


@pytest.mark.parametrize(
    "text", ["Lgo(Exp(x)) -> x", "Log(Exqp(x)) -> x", "Log(Lgo(x) | Exp(x)) -> x"]
)
def test_a_typo_in_a_rule(text):
    with pytest.raises(OptionError, match=r"did you mean (Log|Exp).* 'domain.Operator\(x\)'"):
        declared_rule(text)
    with pytest.warns(UserWarning, match="com.microsoft::Gellu', .* did you mean Gelu"):
        declared_rule("com.microsoft.Gellu(Exp(x)) -> x")


def test_typos_in_another_domain():
    """onnx knows all the operators of its own domains, onnxruntime may know more than its tables."""
    with pytest.raises(OptionError, match="'ai.onnx.ml', did you mean LabelEncoder"):
        declared_rewrite(root="ai.onnx.ml::Lablencoder")
    with pytest.warns(
        UserWarning, match="Gellu', which onnxruntime does not have, did you mean Gelu"
    ) as found:
        declared_rewrite(root="com.microsoft::Gellu", read_by="com.microsoft::FusedMatMul")
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared_rewrite(root="com.microsoft::OfAnotherProcessor", read_by="com.microsft::Gelu")


def test_a_typo_in_a_class():
    """Registered or not."""
    with pytest.raises(OptionError, match="Pattern 'Own' names operator 'Ngg'.* did you mean Neg"):

        class Own(PatternOptimization):
            roots = ("Ngg",)

    class Other(PatternOptimization):
        """Nothing."""

    with pytest.raises(OptionError, match="Pattern 'Other' names operator 'Ngg'"):
        register_pattern("default", roots=("Ngg",))(Other)


def test_a_typo_in_the_body_of_a_rewrite():
    """The reason of the refusal names the operator that exists."""

    @rewrite(root="Neg")
    def typo(g, node):
        return g.before(node, "Sigmoid", "Ngg").input[0]

    model = model_from_text("g (float[n] x) => (float[n] y) { z = Neg(x) y = Neg(z) }")
    answers = {row["answer"].partition(" (")[0] for row in explain(model, typo())}
    assert answers == {"no Sigmoid nor Ngg before, did you mean Neg?"}


def test_an_unknown_precision():
    with pytest.raises(OptionError, match="Precision of '<lambda>' must be one of"):
        declared_rewrite(root="Exp", precision="exct")


def test_no_right_hand_side():
    with pytest.raises(OptionError, match="has no right-hand side: 'left -> right' is expected"):
        declared_rule("Log(Exp(x))")
    with pytest.raises(OptionError, match="has no right-hand side"):
        declared_rule("Log(Exp(x)) -> x", "Exp(Log(x))")


def test_a_function_that_writes_it():
    @rule("y = Log(Exp(x)); y")
    def log_exp(g, x):
        """Log(Exp(x)) -> x."""
        return x

    assert log_exp.roots == ("Log",)


def test_other_names():
    check_operators("it", ["Log", "Upsample", "custom::Anything", "LocalAttention*", "*"])
    with pytest.raises(OptionError, match="'Zzzz' of the main domain, that onnx does not know"):
        check_operators("it", ["Zzzz"])


@pytest.mark.parametrize(
    "text,message",
    [
        ("Softmax(x, axsi=1) -> x", "gives Softmax an attribute 'axsi', did you mean axis?"),
        ("Log(Exp(x, base=2)) -> x", "gives Exp an attribute 'base', it has none"),
        ("Log(x, y) -> x", "gives Log 2 inputs, it has 1 at most"),
    ],
)
def test_a_call_that_onnx_refuses(text, message):
    with pytest.raises(OptionError, match=message):
        declared_rule(text)


def test_calls_of_older_opsets_and_other_domains():
    for text in (
        "Squeeze(x, axes=[0]) -> x",
        "Pad(x, pads=[0, 0], mode='edge') -> x",
        "Concat(a, b, c, d, axis=0) -> a",
        "my.domain.Log(x, y, bases=1) -> x",
        "Log(x, **_) -> x",
    ):
        declared_rule(text)


def test_the_operators_of_the_patterns_of_this_project(recwarn):
    """No process that optimizes a model checks them."""
    checked = 0
    for name, pattern in all_patterns().items():
        assert is_tested(pattern.__module__) or issubclass(pattern, RulePattern), name
        declared = {word: getattr(pattern, word) for word in DECLARATIONS}
        check_declared_operators(name, declared)
        if issubclass(pattern, RulePattern):
            check_sides(name, pattern.sides)
            check_right_sides(name, pattern.equations, getattr(pattern, "condition", None))
        checked += any(declared.values())
    assert checked > 200 and not recwarn.list


def test_the_operators_of_a_tested_pattern_are_not_checked(monkeypatch):
    monkeypatch.setattr(patterns, "check_declared_operators", lambda *_: pytest.fail("checked"))
    shipped = type("Shipped", (PatternOptimization,), {"__module__": "xoptim.patterns.a"})
    assert shipped.roots == ("*",)
