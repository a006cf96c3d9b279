"""Wrong rewrites are caught in their windows, and named by a bisection."""

from __future__ import annotations

from collections import Counter
from typing import Any

import onnx
import pytest
from ut_xoptim.trust.windows.wrong_rewrites import WRONG, Wrong

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import model_from_text
from xoptim.trust.bisection import find_wrong_rewrite
from xoptim.trust.windows.validation import Validation, WrongRewriteError


def validated(model: onnx.ModelProto, patterns: Any, **options: Any) -> Validation:
    """Runs patterns, each rewrite is checked."""
    validation = Validation()
    chosen = OptimizationOptions(patterns=patterns, features=[validation], max_iter=3, **options)
    GraphBuilder(model, infer_shapes_options=True, optimization_options=chosen).optimize()
    return validation


def test_kinds() -> None:
    """There are enough of them, of every kind."""
    kinds = Counter(w.kind for w in WRONG)
    assert len(WRONG) >= 55 and len({w.name for w in WRONG}) == len(WRONG)
    wanted = {
        "operands",
        "axis",
        "condition",
        "branch",
        "size 0",
        "size 1",
        "NaN",
        "negative",
        "ties",
        "rank 1",
    }
    assert wanted <= set(kinds) and "type" in kinds


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.name)
def test_is_caught(wrong: Wrong) -> None:
    with pytest.raises(WrongRewriteError, match=f"Rewrite {wrong.name} is wrong") as caught:
        validated(model_from_text(wrong.graph), [wrong.pattern])
    text = str(caught.value)
    assert "inputs:" in text and ("became" in text or "the nodes written do not run" in text)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.name)
@pytest.mark.filterwarnings("ignore:patterns .* undo each other:UserWarning")
def test_is_named_by_a_bisection(wrong: Wrong) -> None:
    """By the results of the model where inputs show it, in its window otherwise."""
    found = find_wrong_rewrite(model_from_text(wrong.graph), [wrong.pattern])
    assert found is not None and found.patterns == [wrong.name]
    if wrong.shows:
        assert "Rewrite" not in found.reason


def test_the_optimization_goes_on_without_it() -> None:
    """The rewrite is undone when `on_failure` lets the run go on."""
    (wrong,) = (w for w in WRONG if w.name == "SwappedSub")
    model, failures = model_from_text(wrong.graph), []
    validation = validated(
        model, [wrong.pattern], on_failure=lambda error, rewrite: failures.append(rewrite.name)
    )
    assert failures == ["SwappedSub"]
    assert validation.summary.counts() == {"wrong": 1}
