"""The base of the rewriters made of others."""

from __future__ import annotations

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of

from xbuilder.errors import OptionError, PatternError
from xoptim.authoring.patterns import PatternOptimization
from xoptim.engine.failures import FAILURES
from xoptim.testing import optimizer_of
from xoptim.toolkit import MergeOptimizer, SubstitutionNodeRewriter
from xoptim.toolkit.composite import CompositeRewriter

TEXT = "g (float[a] x) => (float[a] y) { y = Relu(x) }"
ONE = SubstitutionNodeRewriter("Relu", "Abs")


def test_members_are_resolved_in_their_order() -> None:
    merge = MergeOptimizer()
    found = CompositeRewriter(["ClipClip", merge, ONE, ONE, "TransposeTranspose"]).rewriters
    assert [m.name for m in found] == [
        "ClipClip",
        "MergeOptimizer",
        "Relu_to_Abs",
        "Relu_to_Abs",
        "TransposeTranspose",
    ]
    assert isinstance(found[0], PatternOptimization) and found[1] is merge
    with pytest.raises(OptionError, match="Unknown pattern"):
        CompositeRewriter(["ClipClap"])


def test_names() -> None:
    assert CompositeRewriter([ONE]).name == "CompositeRewriter"
    assert repr(CompositeRewriter([ONE], name="mine")) == "mine(Relu_to_Abs)"


def test_failing_is_restored() -> None:
    state = optimizer_of(TEXT, [])
    before = state.on_failure
    with CompositeRewriter([ONE]).failing(state):
        assert state.on_failure is before
    with (
        pytest.raises(ZeroDivisionError),
        CompositeRewriter([ONE], on_failure="warn").failing(state),
    ):
        assert state.on_failure is FAILURES["warn"]
        raise ZeroDivisionError
    assert state.on_failure is before


def test_must_define_apply() -> None:
    with pytest.raises(PatternError, match="must define method apply"):
        CompositeRewriter([ONE]).rewrite(builder_of(TEXT))
