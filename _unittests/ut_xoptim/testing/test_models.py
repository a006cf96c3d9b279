"""Models written as text."""

from __future__ import annotations

from xbuilder.errors import XoptimError
from xoptim.testing import PatternTestError, model_from_text

GRAPH = "agraph (float[a, b] X) => (float[a, b] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"


def test_model_from_text() -> None:
    model = model_from_text(GRAPH, 20, ("com.microsoft", "toy"))
    assert {o.domain: o.version for o in model.opset_import} == {
        "": 20,
        "com.microsoft": 1,
        "toy": 1,
    }
    full = f'<ir_version: 8, opset_import: ["": 15]>\n{GRAPH}'
    assert model_from_text(full).opset_import[0].version == 15


def test_error_type() -> None:
    assert issubclass(PatternTestError, AssertionError) and issubclass(
        PatternTestError, XoptimError
    )
