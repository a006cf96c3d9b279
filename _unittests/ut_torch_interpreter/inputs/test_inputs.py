"""Arguments, names, feeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torch_interpreter import match_input_parameters
from torch_interpreter.checking.validation import compare
from torch_interpreter.inputs.inputs import distinct_tensors, split_arguments, to_numpy
from xbuilder.errors import OptionError

X = torch.randn(2, 3)


def fct(x, y=2, *, mask=None, **others):
    return x


def test_split_arguments():
    assert split_arguments((1, 2), {"a": 3}) == ((1, 2), {"a": 3})
    assert split_arguments(None, None) == ((), {})
    assert split_arguments({"a": 3}, {"b": 1}) == ((), {"a": 3, "b": 1})
    assert split_arguments(X, None)[0][0] is X


def test_match_input_parameters():
    found = match_input_parameters(fct, ["mask", "x", "z", "y"], (X,), mask=1, z=4)
    assert list(found) == ["mask", "x", "z", "y"] and found["x"] is X
    assert found["mask"] == 1 and found["z"] == 4 and found["y"] == 2
    model = torch.nn.Linear(3, 2)
    assert match_input_parameters(model, ["input"], (X,))["input"] is X
    with pytest.raises(OptionError, match="do not fit"):
        match_input_parameters(model, ["input"], (X, X, X))


def test_distinct_tensors():
    a, (b, c) = distinct_tensors((X, [X, X + 1]))
    assert a is X and b is not X and torch.equal(b, X) and c is not X


def test_to_numpy():
    assert to_numpy(3).dtype == np.int64 and to_numpy(2.5).dtype == np.float32
    assert to_numpy(True).dtype == np.bool_
    half = to_numpy(X.to(torch.bfloat16))
    assert half.dtype.name == "bfloat16"
    np.testing.assert_allclose(half.astype(np.float32), X.to(torch.bfloat16).float().numpy())
    array = np.ones(2)
    assert to_numpy(array) is array
    assert to_numpy(X.t()).shape == (3, 2)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([X.numpy()], ""),
        ([X.numpy(), X.numpy()], "1 results expected, 2 found"),
        ([X.numpy()[:1]], "output 0: shape (2, 3) became (1, 3)"),
        ([X.numpy().astype(np.float64)], "output 0: type float32 became float64"),
        ([X.numpy() + 1], "output 0: relative difference "),
    ],
)
def test_compare(got, message):
    found = compare([X, None], got)
    assert found.startswith(message) if message else not found


def test_compare_nan():
    nan = torch.tensor([float("nan"), 1.0])
    assert compare([nan], [nan.numpy()]) == ""
    assert compare([nan], [np.array([0.0, 1.0], dtype=np.float32)])
