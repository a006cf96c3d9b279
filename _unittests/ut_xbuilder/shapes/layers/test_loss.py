"""Losses."""

from __future__ import annotations

import pytest
from ut_xbuilder.shapes.shape_cases import infer

from xbuilder.facts.facts import ResultFacts

SCORES, TARGET = ResultFacts(10, ("n", 5, "d")), ResultFacts(7, ("n", "d"))


@pytest.mark.parametrize(
    ("reduction", "expected"), [("none", ("n", "d")), ("mean", ()), ("sum", ())]
)
def test_losses(reduction: str, expected: tuple) -> None:
    """A scalar unless nothing is reduced."""
    given = {"attributes": {"reduction": reduction}}
    inputs = [SCORES, TARGET]
    found = infer("NegativeLogLikelihoodLoss", inputs, **given)[0]
    assert found == ResultFacts(10, expected)
    found, logs = infer("SoftmaxCrossEntropyLoss", inputs, 2, **given)
    assert found == ResultFacts(10, expected) and logs == SCORES
