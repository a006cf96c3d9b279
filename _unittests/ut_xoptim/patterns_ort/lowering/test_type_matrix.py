"""Models in other types load and are right."""

from __future__ import annotations

import re

import pytest
from ut_xoptim.patterns_ort.lowering.type_matrix import (
    LOADS,
    MENDED,
    MISSING,
    UNCOMPARED,
    WRONG,
    Variant,
    judge,
    reason_of,
    variants,
)

from xoptim.testing import model_from_text

#: model -> the type of its floats
SPECIAL = {
    "test_maxunpool_export_with_output_shape": "BFLOAT16",
    "test_onehot_with_bfloat16_values": "FLOAT16",
}


def one(text: str, kind: str) -> Variant:
    """A variant made of a text."""
    return Variant("", text.split("= ")[1].split("(")[0], kind, model_from_text(text, 28), {})


def test_what_it_sees() -> None:
    text = "g (double[a, 3, 3] x) => (double[a] y) { y = Det(x) }"
    assert judge(one(text, "DOUBLE"))[0] == MISSING
    assert judge(one(text.replace("double", "float"), "FLOAT"))[0] == LOADS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (double[a, 3, 3] x) => (double[a] y) { y = Det(x) }", "in these types"),
        ("g (uint8[a] x) => (uint8[h, w, 3] y) { y = ImageDecoder(x) }", "in any type"),
        ("g (optional(float[a]) x) => (bool y) { y = OptionalHasElement(x) }", "in this opset"),
        (
            'g (string[a] x) => (string[a] y) { y = StringNormalizer<case_change_action="LOWER">(x) }',
            "a locale",
        ),
        ("g (float[a] x) => (float[a] y) { y = Relu(x) }", "^$"),
    ],
)
def test_reasons(text: str, reason: str) -> None:
    assert re.search(reason, reason_of(model_from_text(text, 28)))


def test_the_types_of_the_results() -> None:
    """Halves of two kinds; a kernel that reads the shape of its result in another way."""
    kinds = {"FLOAT16": 1e-2, "BFLOAT16": 8e-2}
    found = [v for v in variants(kinds) if v.name in SPECIAL and v.kind == SPECIAL[v.name]]
    assert [judge(v)[0] for v in found] == [UNCOMPARED, MENDED]


@pytest.mark.slow
def test_a_sample() -> None:
    """One model in 23."""
    found = [v for i, v in enumerate(variants()) if i % 23 == 0]
    cells = [judge(v) for v in found]
    assert [c for c in cells if c[0] == WRONG] == []
    missing = [v for v, c in zip(found, cells, strict=True) if c[0] == MISSING]
    assert [v.name for v in missing if not reason_of(v.model)] == []
    assert [c[0] for c in cells].count(MENDED) > 25
