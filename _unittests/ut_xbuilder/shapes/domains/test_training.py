"""Optimizers and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import infer, is_fresh

from xbuilder.facts.facts import ResultFacts

MS: dict[str, Any] = {"domain": "com.microsoft", "opset": 1}
X, Y, W = ResultFacts(1, ("a", 3)), ResultFacts(1, ("b",)), ResultFacts(1, (4, 3, 2))
RATE = ResultFacts(1, ())


@pytest.mark.parametrize(
    ("op_type", "groups", "expected"),
    [
        ("Adagrad", 3, [X, Y, X, Y]),
        ("Momentum", 3, [X, Y, X, Y]),
        ("Adam", 4, [X, Y, X, Y, X, Y]),
    ],
)
def test_optimizers(op_type: str, groups: int, expected: list) -> None:
    """Tensors and states of two parameters."""
    given = {"domain": "ai.onnx.preview.training", "opset": 1}
    inputs = [RATE, ResultFacts(7, ()), *([X, Y] * groups)]
    assert infer(op_type, inputs, len(expected), **given) == expected
    assert infer(op_type, inputs[:-1], 1, **given)[0] == ResultFacts()


def test_gradient() -> None:
    """Like the first inputs."""
    given = {"domain": "ai.onnx.preview.training", "opset": 1}
    assert infer("Gradient", [X, Y, W], 2, **given) == [X, Y]


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [
        ("SoftmaxGrad", [X]),
        ("SoftmaxGrad_13", [X]),
        ("GeluGrad", [X]),
        ("LayerNormalizationGrad", [Y, W, W]),
        ("SimplifiedLayerNormalizationGrad", [Y, W]),
        ("SoftmaxCrossEntropyLossGrad", [Y]),
        ("ConvGrad", [Y, W, ResultFacts(1, (4,), 1)]),
    ],
)
def test_gradients(op_type: str, expected: list) -> None:
    """Each output is like one input."""
    assert infer(op_type, [X, Y, W], len(expected), **MS) == expected


def test_gather_grad() -> None:
    """The shape is a content."""
    shape = np.array([5, 6], np.int64)
    assert infer("GatherGrad", [shape, ResultFacts(7), X], **MS)[0] == ResultFacts(1, (5, 6))
    followed = ResultFacts(7, (2,), None, ("a", 3))
    assert infer("GatherNDGrad", [followed, ResultFacts(7), X], **MS)[0] == X
    assert infer("SliceGrad", [X, followed], **MS)[0] == X
    found = infer("GatherGrad", [ResultFacts(7, (2,)), ResultFacts(7), X], **MS)[0]
    assert len(found.shape) == 2 and is_fresh(found.shape[0])


def test_others() -> None:
    """Losses and broadcast axes."""
    found = infer("SoftmaxCrossEntropyLossInternal", [X, Y], 2, **MS)
    assert found == [ResultFacts(1, ()), X]
    given = {"attributes": {"reduction": "none"}, **MS}
    assert infer("SoftmaxCrossEntropyLossInternal", [X, Y], 1, **given)[0] == Y
    found = infer("BroadcastGradientArgs", [ResultFacts(7), ResultFacts(7)], 2, **MS)
    assert all(f.type == 7 and is_fresh(f.shape[0]) for f in found)
