"""Choices among nearly equal numbers: a rounding moves them."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from onnx import ModelProto
from onnx.numpy_helper import from_array

from xbuilder.tensors.closeness import Criterion
from xoptim import verify
from xoptim.testing import model_from_text
from xoptim.trust.choices import Cut, same_around_choices
from xoptim.trust.sessions.runtime import Opener, container_of

#: scores that the last bit tells from one another, in any order
X = (1 + np.random.default_rng(0).permutation(64) * 2.0**-23).astype(np.float32)
FEEDS = {"x": X, "z": np.random.default_rng(1).standard_normal(64).astype(np.float32)}
TAIL = "v, i = TopK(s, k) y = Gather(b, i)"
IF = """y = If(yes) <
    then_branch = t () => (float[8] u) { v, i = TopK(s, k) u = Gather(b, i) },
    else_branch = e () => (float[8] w) { w = Slice(b, zero, k) }
>"""


def detector(scores: str, boxes: str = "b = Exp(z)", tail: str = TAIL) -> ModelProto:
    """The boxes of the eight largest scores."""
    return model_from_text(
        f"""g (float[64] x, float[64] z) => (float[8] y) <int64[1] k = {{8}}, int64[1] zero = {{0}},
        bool yes = {{1}}, float seven = {{7}}> {{ {scores} {boxes} {tail} }}"""
    )


FIRST, SECOND = "s = Identity(x)", "t = Add(x, seven) s = Sub(t, seven)"


@pytest.mark.parametrize("tail", [TAIL, IF])
def test_another_order_of_nearly_equal_scores(tail: str) -> None:
    report = verify(detector(FIRST, tail=tail), detector(SECOND, tail=tail), inputs=FEEDS)
    (row,) = report.rows
    assert row.ok and row.max_rel > 1e-7
    assert row.reason == "TopK chooses among nearly equal numbers, the rest is the same"


@pytest.mark.parametrize(
    "second",
    [
        detector(SECOND, boxes="b = Abs(z)"),
        detector("t = Add(x, seven) s = Neg(t)"),
        detector(SECOND, tail="v, i = TopK<largest = 0>(s, k) y = Gather(b, i)"),
        detector(SECOND, tail="v, i = TopK(s, k) g = Gather(b, i) y = Neg(g)"),
        detector(SECOND.replace("s =", "r ="), tail="v, i = TopK(r, k) y = Gather(b, i)"),
    ],
    ids=["other boxes", "other scores", "other choice", "other end", "other names"],
)
def test_another_model_is_refused(second: ModelProto) -> None:
    assert not verify(detector(FIRST), second, inputs=FEEDS).ok
    with ExitStack() as files:
        models = detector(FIRST), second
        found = same_around_choices(Opener(files), models, FEEDS, ["y"], Criterion())
    assert found == set()


def test_a_constant_output_is_another_model() -> None:
    second = detector(SECOND)
    last = second.graph.node.pop()
    second.graph.initializer.append(from_array(np.zeros(8, np.float32), last.output[0]))
    assert not verify(detector(FIRST), second, inputs=FEEDS).ok


def test_an_output_that_no_choice_decides() -> None:
    model = detector(FIRST, tail="v, i = TopK(s, k) u = Gather(b, i) y = Slice(b, zero, k)")
    assert not Cut(container_of(model)).after.issuperset(["y"])
    with ExitStack() as files:
        found = same_around_choices(Opener(files), (model, model), FEEDS, ["y"], Criterion())
    assert found == set()


def test_the_cut_is_before_the_choices() -> None:
    cut = Cut(container_of(detector(SECOND)))
    assert cut.names == ["s", "b"] and cut.choices == {"TopK"} and cut.after == {"v", "i", "y"}
