"""Models under names of their own: equal windows have equal programs."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from xoptim.testing import model_from_text
from xoptim.trust.windows.programs import Program, doubled, evaluator_of, is_invalid

TEXT = """g (bool c, float[n] x) => (float[n] z) <float w = {0.5}> {
    mid = Mul(x, w)
    z = If(c) <then_branch = a () => (float[n] p) { p = Neg(mid) },
               else_branch = b () => (float[n] q) { q = Identity(x) }> }"""


def program(text: str) -> Program:
    return Program(model_from_text(text))


def test_names_do_not_count() -> None:
    """Captured results have other names too, those of the bodies keep theirs."""
    first = program(TEXT)
    renamed = TEXT.replace("x", "left").replace("mid", "right").replace("z", "end")
    assert program(renamed).content == first.content
    assert program(TEXT.replace("0.5", "0.25")).content != first.content
    assert program(TEXT.replace("Neg(mid)", "Neg(x)")).content != first.content
    model = onnx.load_from_string(first.content)
    onnx.checker.check_model(model, full_check=True)
    x = np.array([1, 2], dtype=np.float32)
    for condition, expected in ((True, [-0.5, -1]), (False, [1, 2])):
        feeds = first.given({"x": x, "c": np.array(condition), "unknown": x})
        (found,) = ReferenceEvaluator(model).run(None, feeds)
        assert np.asarray(found).tolist() == expected


def test_messages_have_the_names_of_the_model() -> None:
    first = program(TEXT)
    text = f"{first.names['x']}, {first.names['mid']}, window.999"
    assert first.original(text) == "x, mid, window.999"


def test_one_evaluator_by_content() -> None:
    renamed = program(TEXT.replace("mid", "right")).content
    first = program(TEXT).content
    assert evaluator_of(first) is evaluator_of(renamed)
    assert doubled(first) is doubled(renamed)
    found = onnx.load_from_string(doubled(first))
    assert found.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


def test_models_that_are_not_valid() -> None:
    """An axis that does not exist, a type that differs."""
    text = "g (float[n, m] x, int64 i) => (int64 z) { s = Shape(x) z = Gather<axis = 0>(s, i) }"
    assert not is_invalid(model_from_text(text))
    assert is_invalid(model_from_text(text.replace("axis = 0", "axis = 1")))
    assert is_invalid(
        model_from_text("g (float[n] x, int64[n] i) => (float[n] z) { z = Add(x, i) }")
    )
