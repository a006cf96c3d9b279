"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer

from xbuilder.facts.facts import ResultFacts

X = ResultFacts(1, ("a", 4))
SCALE = ResultFacts(1, ())


@pytest.mark.parametrize("zero", [2, 3, 4, 17, 19, 21, 22, 23])
def test_quantize(zero: int) -> None:
    """The type is the one of the zero point, 4 bits and float 8 included."""
    found = infer("QuantizeLinear", [X, SCALE, ResultFacts(zero, ())])[0]
    assert found == ResultFacts(zero, ("a", 4))
    assert infer("QuantizeLinear", [X, SCALE])[0].type == 2
    given = {"attributes": {"output_dtype": zero}}
    assert infer("QuantizeLinear", [X, SCALE], **given)[0].type == zero


@pytest.mark.parametrize("scale", [1, 10, 16])
def test_dequantize(scale: int) -> None:
    """The type is the one of the scale."""
    x = ResultFacts(22, ("a", 4))
    found = infer("DequantizeLinear", [x, ResultFacts(scale, ())])[0]
    assert found == ResultFacts(scale, ("a", 4))
    given = {"attributes": {"output_dtype": 11}, "opset": 23}
    assert infer("DequantizeLinear", [x, ResultFacts(scale, ())], **given)[0].type == 11


def test_runs() -> None:
    """Real runs."""
    sizes = [{"a": 2}, {"a": 3}]
    scale, zero = np.array(0.1, np.float32), np.array(3, np.int8)
    check_runs("QuantizeLinear", [In(("a", 4)), scale, zero], sizes, [("a", 4)])
    check_runs("DequantizeLinear", [In(("a", 4), np.int8), scale, zero], sizes, [("a", 4)])
    expected = [("a", 4), (), ()]
    check_runs("DynamicQuantizeLinear", [In(("a", 4))], sizes, expected, n_outputs=3)
