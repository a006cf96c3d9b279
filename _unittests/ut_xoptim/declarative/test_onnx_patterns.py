"""Patterns given by two models."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.easy_models import check_pattern_of, graph
from ut_xoptim.unchecked import optimize_toys

from xbuilder.errors import OptionError, PatternError
from xoptim import (
    EasyPatternOptimization,
    OnnxEasyPatternOptimization,
    get_pattern_list,
    make_pattern_from_onnx,
    remove_constants_for_initializers,
)
from xoptim.declarative.onnx_patterns import changed_operator
from xoptim.testing import check_no_match, model_from_text

MATCH = """agraph (float[a] x, float[a] y) => (float[a] r) {
    k = Constant<value = float[1] {1}>()
    m = Mul(x, y)
    r = Add(m, k) }"""
APPLY = "agraph (float[a] x, float[a] y) => (float[a] r) { r = Sub(x, y) }"


def models(match: str = MATCH, apply: str = APPLY, opset: int = 18) -> tuple[Any, Any]:
    return model_from_text(match, opset), model_from_text(apply, opset)


def test_remove_constants_of_something_else() -> None:
    with pytest.raises(OptionError, match="model expects ModelProto, not 'm.onnx'"):
        remove_constants_for_initializers("m.onnx")


def test_remove_constants_for_initializers(capsys) -> None:
    model = model_from_text(MATCH)
    copy = model.SerializeToString()
    new = remove_constants_for_initializers(model)
    assert capsys.readouterr().out == ""
    assert remove_constants_for_initializers(model, verbose=1) == new
    assert "1 Constant nodes are initializers" in capsys.readouterr().out
    assert [n.op_type for n in new.graph.node] == ["Mul", "Add"]
    assert [i.name for i in new.graph.initializer] == ["k"]
    assert model.SerializeToString() == copy
    onnx.checker.check_model(new)


def test_pattern_from_models() -> None:
    pattern = OnnxEasyPatternOptimization(*models())
    assert pattern.roots == ("Add",)
    model = check_pattern_of(graph("m = Mul(Z, X) Y = Add(ones, m)"), pattern)
    assert [n.op_type for n in model.graph.node] == ["Sub"]
    check_no_match(graph("m = Mul(Z, X) Y = Add(two, m)"), pattern)


def test_make_pattern_from_onnx() -> None:
    pattern = make_pattern_from_onnx("MyPattern", *models())
    assert type(pattern).__name__ == "MyPattern" and pattern.name == "My"
    assert isinstance(pattern, EasyPatternOptimization)
    check_pattern_of(graph("m = Mul(X, Z) Y = Add(m, one)"), pattern)
    assert "Sub(x, y)" in pattern.display_pattern()


def test_equality_of_patterns_from_models() -> None:
    a, b = OnnxEasyPatternOptimization(*models()), OnnxEasyPatternOptimization(*models())
    c = OnnxEasyPatternOptimization(*models(apply=APPLY.replace("Sub", "Div")))
    assert a == b and hash(a) == hash(b) and a != c
    assert len(get_pattern_list([a, b, c])) == 2


def test_types_of_the_models() -> None:
    text = graph("m = Mul(X, Z) Y = Add(m, one)").replace("float", "double")
    check_no_match(text, OnnxEasyPatternOptimization(*models()), "cannot be")


def test_models_must_agree() -> None:
    other = APPLY.replace("float[a] x, float[a] y", "float[a] x").replace("Sub(x, y)", "Neg(x)")
    with pytest.raises(OptionError, match="as many inputs, got 2 and 1"):
        OnnxEasyPatternOptimization(*models(apply=other))
    other = APPLY.replace("float[a] r)", "float[a] r, float[a] q)").replace(
        "r = Sub", "q = Neg(x) r = Sub"
    )
    with pytest.raises(OptionError, match="as many outputs, got 1 and 2"):
        OnnxEasyPatternOptimization(*models(apply=other))


def test_models_of_another_opset() -> None:
    """An operator whose signature changed cannot be copied in a graph of another opset."""
    match = "agraph (float[a, b] x) => (float[a, b] r) { n = Neg(x) r = Abs(n) }"
    apply = "agraph (float[a, b] x) => (float[a, 1] r) { r = ReduceMean<axes = [1]>(x) }"
    pattern = OnnxEasyPatternOptimization(*models(match, apply, 13))
    text = "agraph (float[a, b] X) => (float[a, b] Y) { n = Neg(X) Y = Abs(n) }"
    check_no_match(text, pattern, "an operator of the models changed before opset 18")
    assert not changed_operator(model_from_text(match, 13), 18)
    assert changed_operator(model_from_text(apply, 13), 18) == "ReduceMean"


def test_models_with_an_unknown_operator() -> None:
    """onnx knows nothing of it: a domain of its own is registered, the main one has no such thing,
    and that is said."""
    match = "agraph (float[a] x) => (float[a] r) { n = Neg(x) r = Abs(n) }"

    def pattern(operator: str) -> OnnxEasyPatternOptimization:
        apply = f"agraph (float[a] x) => (float[a] r) {{ r = {operator}(x) }}"
        second = model_from_text(apply, 18, domains=("toy",))
        return OnnxEasyPatternOptimization(model_from_text(match, 18), second)

    text = "agraph (float[a, 4] X) => (float[a, 4] Y) { n = Neg(X) Y = Abs(n) }"
    model, _, builder = optimize_toys(model_from_text(text, domains=()), [pattern("toy.Unknown")])
    assert [n.op_type for n in model.graph.node] == ["Unknown"] and builder.opsets["toy"] == 1
    with pytest.raises(PatternError, match="has no operator 'Unknown'"):
        optimize_toys(model_from_text(text, domains=()), [pattern("Unknown")])
