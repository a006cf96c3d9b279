"""Rules of onnxscript among the patterns."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from onnxscript import ir, optimizer
from onnxscript.rewriter import _DEFAULT_REWRITE_RULES, pattern
from onnxscript.rewriter.models import _bart_encoder, _whisper_encoder
from onnxscript.rewriter.ort_fusions import (
    bias_gelu,
    erfgelu,
    gelu,
    skip_normalization,
)
from onnxscript.rewriter.ort_fusions._core import ORT_PATTERN_REWRITE_RULES
from onnxscript.rewriter.rules.common import _no_op
from onnxscript.rewriter.rules.fusion import _layer_norm

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError, PatternError
from xoptim.testing import (
    assert_same_outputs,
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    run_onnxruntime,
)
from xoptim.toolkit.onnxscript_rules import OnnxScriptRule, patterns_from_rules


def rule_of(before: Any, after: Any, check: Any = None, **options: Any) -> OnnxScriptRule:
    return OnnxScriptRule(pattern.RewriteRule(before, after, check, **options))


def double_neg(op: Any, x: Any) -> Any:
    return op.Neg(op.Neg(x))


def just_x(op: Any, x: Any) -> Any:
    return op.Identity(x)


DOUBLE = "g (float[n] x) => (float[n] y) { a = Neg(x) b = Neg(a) y = Relu(b) }"


def test_rule():
    found = rule_of(double_neg, just_x)
    assert (found.name, found.roots) == ("just_x", ("Neg",))
    check_pattern(DOUBLE, "g (float[n] x) => (float[n] y) { y = Relu(x) }", [found])


def test_rule_and_patterns_in_one_run():
    text = (
        "g (bool[n] x) => (bool[n] y) { a = Not(x) b = Not(a) c = And(b, b) d = Not(c) y = Not(d) }"
    )
    expected = "g (bool[n] x) => (bool[n] y) { y = Or(x, x) }"
    to_or = rule_of(lambda op, x: op.And(x, x), lambda op, x: op.Or(x, x))
    check_pattern(text, expected, [to_or, "NotNot"])


def test_name_of_a_rule():
    assert rule_of(double_neg, just_x, name="MyRule").name == "MyRule"
    names = {p.name for p in patterns_from_rules(_no_op.rules)}
    assert names and all(names)


def test_new_nodes_attributes_and_constants():
    def before(op: Any, x: Any) -> Any:
        return op.Neg(op.Relu(x))

    def after(op: Any, x: Any) -> Any:
        one = op.initializer(ir.tensor(np.array([2], np.float32), name="two"))
        return op.Mul(op.LeakyRelu(x, alpha=0.0), op.Neg(op.Div(one, one)))

    expected = """g (float[n] x) => (float[n] y) <float[1] two = {2}> {
        a = LeakyRelu <alpha=0.0> (x) b = Div(two, two) c = Neg(b) y = Mul(a, c) }"""
    text = "g (float[n] x) => (float[n] y) { a = Relu(x) y = Neg(a) }"
    check_pattern(text, expected, [rule_of(before, after)])


def test_several_results():
    def before(op: Any, x: Any) -> Any:
        return op.Split(x, num_outputs=2, _outputs=["a", "b"])

    def after(op: Any, x: Any, a: Any, b: Any) -> Any:
        low, high = op.Split(x, num_outputs=2, axis=0, _outputs=2)
        return op.Identity(low), op.Identity(high)

    def not_written(context: Any, x: Any, a: Any, b: Any) -> bool:
        return "axis" not in a.producer().attributes

    text = "g (float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs=2> (x) }"
    result = check_pattern(text, None, [rule_of(before, after, not_written)])
    assert [n.op_type for n in result.graph.node] == ["Split"]


def test_conditions_see_types_shapes_and_constants():
    seen = []

    def check(context: Any, x: Any) -> bool:
        seen.append((x.dtype, list(x.shape), None if x.const_value is None else 1))
        return True

    text = """g (float[n,4] x) => (float[n,4] y) <float[4] c = {1, 2, 3, 4}> {
        d = Constant <value = float[2] {1, 2}> () p = Relu(x) a = Neg(p) b = Neg(a) e = Neg(c) f = Neg(e)
        h = Neg(d) i = Neg(h) j = Concat <axis=0> (i, i) k = Add(f, j) y = Add(b, k) }"""
    optimize_with(model_from_text(text, 18), [rule_of(double_neg, just_x, check)])
    rows = [(t, [str(d) for d in s], c) for t, s, c in seen]
    assert (ir.DataType.FLOAT, ["n", "4"], None) in rows
    assert (ir.DataType.FLOAT, ["4"], 1) in rows
    assert (ir.DataType.FLOAT, ["2"], 1) in rows


def test_reasons():
    def check(context: Any, x: Any) -> Any:
        return pattern.MatchResult().fail("x is too long")

    check_no_match(DOUBLE, rule_of(double_neg, just_x, check), "x is too long")
    check_no_match(DOUBLE, rule_of(double_neg, lambda op, x: None), "does not match|gives")
    used = "g (float[n] x) => (float[n] a, float[n] y) { a = Neg(x) y = Neg(a) }"
    check_no_match(used, rule_of(double_neg, just_x), "other uses")


def test_remove_nodes_false():
    used = "g (float[n] x) => (float[n] a, float[n] y) { a = Neg(x) b = Neg(a) y = Relu(b) }"
    expected = "g (float[n] x) => (float[n] a, float[n] y) { a = Neg(x) y = Relu(x) }"
    check_pattern(used, expected, [rule_of(double_neg, just_x, remove_nodes=False)])


def test_bodies():
    text = """g (float[n] x, bool c) => (float[n] y) { p = Abs(x) y = If (c) <
        then_branch = t () => (float[n] u) { a = Neg(p) b = Neg(a) u = Relu(b) },
        else_branch = e () => (float[n] v) { v = Relu(x) }> }"""
    expected = """g (float[n] x, bool c) => (float[n] y) { p = Abs(x) y = If (c) <
        then_branch = t () => (float[n] u) { u = Relu(p) },
        else_branch = e () => (float[n] v) { v = Relu(x) }> }"""
    check_pattern(text, expected, [rule_of(double_neg, just_x)], recursive=True)


def test_another_domain():
    def after(op: Any, x: Any) -> Any:
        return op.Gelu(x, _domain="com.microsoft", _version=1)

    def before(op: Any, x: Any) -> Any:
        half = op.Mul(x, 0.5)
        return op.Mul(half, op.Add(op.Erf(op.Div(x, 1.4142135)), 1.0))

    text = """g (float[n] x) => (float[n] y) <float r = {1.4142135}, float o = {1}, float h = {0.5}> {
        a = Div(x, r) b = Erf(a) c = Add(b, o) d = Mul(x, h) y = Mul(d, c) }"""
    result = check_pattern(text, None, [rule_of(before, after)], atol=1e-6, reference=False)
    assert [(n.domain, n.op_type) for n in result.graph.node] == [("com.microsoft", "Gelu")]
    assert {o.domain for o in result.opset_import} == {"", "com.microsoft"}
    again = rule_of(lambda op, x: op.Gelu(x, _domain="com.microsoft"), lambda op, x: op.Relu(x))
    assert again.roots == ("com.microsoft::Gelu",)


def test_engine_refuses_what_is_wrong():
    wrong = rule_of(double_neg, lambda op, x: op.ReduceSum(x, keepdims=1))
    with pytest.raises(PatternError, match="changes the type or the shape"):
        optimize_with(model_from_text(DOUBLE.replace("[n]", "[3]"), 18), [wrong])


def test_weights_of_other_files_are_not_read(tmp_path):
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    model = model_from_text(
        "g (float[n,64] x, float[64,64] w) => (float[n,64] y) { a = Neg(x) b = Neg(a) y = MatMul(b, w) }",
        18,
    )
    del model.graph.input[1]
    model.graph.initializer.append(weight)
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    options = OptimizationOptions(patterns=[rule_of(double_neg, just_x)])
    builder = GraphBuilder(str(path), optimization_options=options)
    container = builder.to_onnx(large_model=True)

    assert [n.op_type for n in container.proto.graph.node] == ["MatMul"]
    assert builder.graph.constants.initializers["w"].external_data


@pytest.mark.parametrize("what", [3, "Neg", object(), ["Neg"]])
def test_not_a_rule(what):
    with pytest.raises(OptionError, match="is not a"):
        patterns_from_rules(what)


def test_rules_that_make_functions_are_refused():
    with pytest.raises(OptionError, match="as_function"):
        rule_of(double_neg, just_x, as_function=True)


def test_sets():
    rules = pattern.RewriteRuleSet(
        [pattern.RewriteRule(double_neg, just_x, name=n) for n in ("A", "B")]
    )
    assert [p.name for p in patterns_from_rules(rules)] == ["A", "B"]
    assert [p.name for p in patterns_from_rules([rules, rules.rules[0]])] == ["A", "B", "A"]
    assert patterns_from_rules(rules)[0] == OnnxScriptRule(rules.rules[0])


def test_setup_and_cleanup_of_a_rule() -> None:
    """The state a rule keeps for the visit of a graph does not outlive it."""

    class NegNegOnce(pattern.RewriteRuleClassBase):
        seen: ClassVar[list[str]] = []

        def setup(self) -> None:
            self.seen.append("setup")

        def cleanup(self) -> None:
            self.seen.append("cleanup")

        def pattern(self, op: Any, x: Any) -> Any:
            return op.Neg(op.Neg(x))

        def rewrite(self, op: Any, x: Any) -> Any:
            self.seen.append("rewrite")
            return op.Identity(x)

    check_pattern(DOUBLE, None, [OnnxScriptRule(NegNegOnce.rule())])
    assert NegNegOnce.seen[0] == "setup" and NegNegOnce.seen[-1] == "cleanup"
    assert "rewrite" in NegNegOnce.seen
    without = [w for w in NegNegOnce.seen if w != "rewrite"]
    assert without == ["setup", "cleanup"] * (len(without) // 2)


def fusions() -> list[Any]:
    """Rules of the fusions of transformers, those that make functions left out."""
    modules = [_layer_norm, bias_gelu, erfgelu, gelu, skip_normalization]
    sets = [v for m in modules for v in vars(m).values() if isinstance(v, pattern.RewriteRuleSet)]
    return [rule for found in sets for rule in found.rules if not rule.as_function]


RULES: dict[str, Any] = {
    "common": lambda: list(_DEFAULT_REWRITE_RULES),
    "fusions": fusions,
    "onnxruntime": lambda: list(ORT_PATTERN_REWRITE_RULES),
}
MODELS = {
    "whisper encoder": _whisper_encoder.whisper_encoder_test,
    "bart encoder": _bart_encoder.bart_encoder_test,
}


@pytest.mark.parametrize("model", MODELS)
def test_the_engine_of_onnxscript_gives_the_same_nodes(model: str) -> None:
    """Exported models: its own engine, run until nothing changes, and ours."""
    made = MODELS[model]()
    started = made.get_onnx_model()
    optimizer.optimize(started)
    proto = ir.serde.serialize_model(started)
    applied = 0
    for name, rules in RULES.items():
        theirs = ir.serde.deserialize_model(proto)
        count = pattern.RewriteRuleSet(rules()).apply_to_model(theirs)
        applied += count
        while count:
            count = pattern.RewriteRuleSet(rules()).apply_to_model(theirs)
        optimizer.remove_unused_nodes(theirs)
        options = OptimizationOptions(
            patterns=patterns_from_rules(rules()), passes=("patterns",), remove_identity=False
        )
        ours = GraphBuilder(proto, optimization_options=options).to_onnx()
        expected = Counter((n.domain, n.op_type) for n in theirs.graph)
        assert Counter((n.domain, n.op_type) for n in ours.graph.node) == expected, name
        feeds = made.get_ort_inputs()
        expected_outputs = run_onnxruntime(ir.serde.serialize_model(theirs), feeds)
        assert_same_outputs(expected_outputs, run_onnxruntime(ours, feeds), 1e-6, 1e-6, name)
    assert applied > 5
