"""The policies for a rewrite that fails."""

from __future__ import annotations

import pytest
from ut_xoptim.toy_patterns import NegNeg

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError, PatternError
from xoptim import MatchResult, PatternOptimization
from xoptim.engine.failures import FAILURES, failure_callback
from xoptim.testing import model_from_text

TEXT = "g (float[a] x) => (float[a] y) { n = Neg(x) m = Neg(n) r = Relu(m) y = Relu(r) }"


class FailsToMatch(PatternOptimization):
    roots = ("Relu",)

    def match(self, g, node, matched):
        raise ZeroDivisionError("no")


class FailsToApply(PatternOptimization):
    roots = ("Relu",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        raise ZeroDivisionError("no")


class ChangesTheType(FailsToApply):
    def apply(self, g, node):
        return [g.make_node("Cast", [node.input[0]], [node.output[0]], to=7)]


class MakesACycle(FailsToApply):
    def apply(self, g, node):
        if node.output[0] != "r":
            return [g.make_node("Relu", [node.input[0]], [node.output[0]])]
        return [g.make_node("Relu", ["y"], ["r"])]


class LosesAResult(FailsToApply):
    def apply(self, g, node):
        return [g.make_node("Relu", [node.input[0]], ["z"])]


class GivesNothing(FailsToApply):
    def match(self, g, node, matched):
        return 3


FAILING = [FailsToMatch, FailsToApply, ChangesTheType, MakesACycle, LosesAResult, GivesNothing]


def optimized(pattern: PatternOptimization, on_failure) -> list[str]:
    options = OptimizationOptions(patterns=[pattern, NegNeg()], on_failure=on_failure)
    builder = GraphBuilder(
        model_from_text(TEXT), infer_shapes_options=True, optimization_options=options
    )
    builder.optimize()
    builder.store.check()
    return [node.op_type for node in builder.nodes]


@pytest.mark.parametrize("cls", FAILING)
def test_raise(cls: type[PatternOptimization]) -> None:
    with pytest.raises(PatternError, match=cls.__name__):
        optimized(cls(), "raise")


@pytest.mark.parametrize("cls", FAILING)
def test_others_go_on(cls: type[PatternOptimization]) -> None:
    """The rewrite that fails is left out, the graph is as it was before it."""
    heard: list[tuple[str, str]] = []
    after = optimized(cls(), lambda error, rewrite: heard.append((str(error), rewrite.name)))
    assert after == ["Relu", "Relu"]
    assert heard and {name for _, name in heard} == {cls.__name__}
    assert all(cls.__name__ in error for error, _ in heard)


def test_warn() -> None:
    with pytest.warns(UserWarning, match="FailsToApply failed: Pattern FailsToApply failed while"):
        assert optimized(FailsToApply(), "warn") == ["Relu", "Relu"]


@pytest.mark.filterwarnings("error")
def test_ignore() -> None:
    assert optimized(FailsToApply(), "ignore") == ["Relu", "Relu"]


def test_callback() -> None:
    assert failure_callback("raise") is FAILURES["raise"]
    with pytest.raises(OptionError, match="did you mean ignore"):
        failure_callback("ignored")
    with pytest.raises(OptionError, match="known:"):
        failure_callback("x")
    with pytest.raises(OptionError, match="on_failure expects"):
        OptimizationOptions(on_failure="x")


def test_a_callback_may_raise() -> None:
    def stop(error, rewrite):
        raise KeyboardInterrupt(rewrite.name)

    with pytest.raises(KeyboardInterrupt, match="FailsToApply"):
        optimized(FailsToApply(), stop)
