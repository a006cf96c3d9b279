"""Models in other types load and are right."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.lowering.type_matrix import (
    LOADS,
    MENDED,
    MISSING,
    WRONG,
    Variant,
    judge,
    variants,
)

from xoptim.testing import model_from_text


def one(text: str, kind: str) -> Variant:
    """A variant made of a text."""
    return Variant("", text.split("= ")[1].split("(")[0], kind, model_from_text(text, 28), {})


def test_what_it_sees() -> None:
    text = "g (double[a, 3, 3] x) => (double[a] y) { y = Det(x) }"
    assert judge(one(text, "DOUBLE"))[0] == MISSING
    assert judge(one(text.replace("double", "float"), "FLOAT"))[0] == LOADS


@pytest.mark.slow
def test_a_sample() -> None:
    """One model in 23; the output shape of MaxUnpool is read in another way by onnxruntime."""
    found = [v for i, v in enumerate(variants()) if i % 23 == 0 and v.op_type != "MaxUnpool"]
    cells = [judge(v) for v in found]
    assert [c for c in cells if c[0] == WRONG] == []
    assert [c[0] for c in cells].count(MENDED) > 25
