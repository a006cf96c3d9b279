"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh, shape_of

from xbuilder.facts.facts import ResultFacts

SIZES = [{"a": 2, "n": 8}, {"a": 1, "n": 11}]


def scalar(value: int) -> np.ndarray:
    """An int64 scalar."""
    return np.array(value, dtype=np.int64)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("size", [None, 6])
@pytest.mark.parametrize("opset", [17, 20])
def test_dft(onesided: int, size: Any, opset: int) -> None:
    """Real signals, onnxruntime and onnx's reference evaluator."""
    inputs: list[Any] = [In(("a", "n", 1)), None if size is None else scalar(size)]
    attributes = {"onesided": onesided}
    if opset == 17:
        attributes["axis"] = 1
    inputs = inputs[:1] if size is None else inputs
    facts = check_runs("DFT", inputs, SIZES, attributes=attributes, opset=opset, reference=True)
    assert facts[0].shape is not None and not any(is_fresh(d) for d in facts[0].shape)


def test_dft_axis_and_inverse() -> None:
    """The axis is an input since opset 20, the one-sided inverse is real."""
    x = ResultFacts(1, ("a", "n", 2))
    both = {"attributes": {"inverse": 1, "onesided": 1}, "opset": 20}
    assert shape_of("DFT", [x, None, scalar(1)], **both) == ("a", "2*n-2", 1)
    assert shape_of("DFT", [x, scalar(9), scalar(0)], opset=20) == (9, "n", 2)
    found = infer("DFT", [x, None, ResultFacts(7, ())], opset=20)[0]
    assert found == ResultFacts(1, None, 3)
    assert is_fresh(shape_of("DFT", [x, ResultFacts(7, ())], opset=20)[1])


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [False, True])
def test_stft(onesided: int, window: bool) -> None:
    """Frames and bins."""
    inputs: list[Any] = [In(("a", "n", 1)), scalar(2), In((4,)) if window else None, scalar(4)]
    attributes = {"onesided": onesided}
    expected = ("a", "(n-4)//2+1", 3 if onesided else 4, 2)
    facts = check_runs("STFT", inputs, SIZES, attributes=attributes, opset=17)
    assert facts[0].shape[0::2] == expected[0::2]
    assert not any(is_fresh(d) for d in facts[0].shape)


def test_stft_unknown() -> None:
    """Unknown step, frame length of the window, or the whole signal."""
    x = ResultFacts(1, ("a", "n", 1))
    found = shape_of("STFT", [x, ResultFacts(7, ()), ResultFacts(1, (4,))])
    assert found[0] == "a" and is_fresh(found[1]) and found[2:] == (3, 2)
    found = shape_of("STFT", [x, scalar(2), None, ResultFacts(7, ())])
    assert is_fresh(found[1]) and is_fresh(found[2])
    assert shape_of("STFT", [x, scalar(2)])[1] == 1


@pytest.mark.parametrize("op_type", ["BlackmanWindow", "HammingWindow", "HannWindow"])
def test_windows(op_type: str) -> None:
    """The size is a content."""
    check_runs(op_type, [scalar(10)], [{}], [(10,)])
    assert shape_of(op_type, [ResultFacts(7, (), None, "n")]) == ("n",)
    assert is_fresh(shape_of(op_type, [ResultFacts(7, ())])[0])
    assert infer(op_type, [scalar(3)], attributes={"output_datatype": 11})[0].type == 11


def test_mel() -> None:
    """Bins and bands."""
    low, high = np.array(0.0, np.float32), np.array(4000.0, np.float32)
    inputs = [scalar(8), scalar(16), scalar(8192), low, high]
    check_runs("MelWeightMatrix", inputs, [{}], [(9, 8)])
    assert all(is_fresh(d) for d in shape_of("MelWeightMatrix", [ResultFacts(7, ())] * 5))
