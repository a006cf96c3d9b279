"""Wrong rewrites on a real model: a part of the table."""

from __future__ import annotations

import onnx
import pytest
from ut_xoptim.trust.windows.wrong_rewrites import WRONG, Wrong
from ut_xoptim.trust.windows.wrong_table import CAUGHT, MODELS, NEVER, REFUSED, judge

from xoptim.testing import model_from_text

#: a voice detector without If: roots of sums of squares, gates, a state
MODEL = MODELS / "silero_vad" / "data" / "silero_vad_op18_ifless.onnx"
#: those that were missed on it, and others, each by another way
NAMES = ("AddZero", "GemmWithoutAlpha", "MulByOne", "PowerOfTwo", "ReluOfPositive", "SwappedConcat")


@pytest.mark.long
@pytest.mark.skipif(not MODEL.exists(), reason="`make models` downloads the model")
@pytest.mark.filterwarnings("ignore:patterns .* undo each other:UserWarning")
@pytest.mark.parametrize("wrong", [w for w in WRONG if w.name in NAMES], ids=lambda w: w.name)
def test_is_caught_on_a_real_model(wrong: Wrong) -> None:
    """Its window shows that it is wrong, a bisection names it."""
    kind, reason = judge(onnx.load(MODEL), wrong)
    assert kind == CAUGHT, reason


def test_outcomes() -> None:
    """A rewrite that does not apply is not missed; the engine refuses another type."""
    by_name = {w.name: w for w in WRONG}
    first = model_from_text("g (float[n] x) => (float[n] y) { y = Exp(x) }")
    assert judge(first, by_name["AddZero"]) == (NEVER, "")
    second = model_from_text(
        "g (float[n, 2] x, float[2, 3] w) => (float[n, 3] y) { y = MatMul(x, w) }"
    )
    assert judge(second, by_name["SwappedMatmul"])[0] == REFUSED
