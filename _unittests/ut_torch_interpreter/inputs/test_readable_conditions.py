"""Conditions on sizes as text."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
from torch.utils._sympy.functions import CeilToInt, FloorToInt, IntTrueDiv, Max, TruncToInt
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.common.errors import ConversionError
from torch_interpreter.inputs.counterexamples import python_text
from torch_interpreter.inputs.readable_conditions import readable_condition

N = sympy.Symbol("s0", integer=True, positive=True)
M = sympy.Symbol("s01", integer=True, positive=True)
NAMES = {"s0": "n", "s01": "m"}
FUNCTIONS = {"ceil": CeilToInt, "floor": FloorToInt, "trunc": TruncToInt}


def _over(function, base, divisor, added=0):
    return function(added + IntTrueDiv(base, sympy.Integer(divisor)))


def _padded(size, stride):
    """The number of windows of a convolution, as EnCodec computes it."""
    return _over(CeilToInt, size - stride, stride, sympy.Float(1.0))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (sympy.Lt(6, _padded(_padded(N, 2), 4)), "6 < math.ceil(n / 8)"),
        (
            sympy.Lt(Max(6, _padded(N, 1) - N), _padded(_padded(_padded(N, 1), 2), 1)),
            "6 < math.ceil(n / 2)",
        ),
        (
            sympy.Lt(3, _over(CeilToInt, _over(CeilToInt, N, 2) + 3, 4)),
            "3 < math.ceil((6 + n) / 8)",
        ),
        (
            sympy.Lt(3, _over(FloorToInt, _over(FloorToInt, N, 2) + 3, 4)),
            "3 < math.floor((6 + n) / 8)",
        ),
        (sympy.Lt(3, _over(TruncToInt, _over(TruncToInt, N, 2), 4)), "3 < math.trunc(n / 8)"),
        (sympy.Lt(3, _over(CeilToInt, N, 2, sympy.Float(0.5))), "3 < math.ceil(0.5 + (n / 2))"),
        (
            sympy.Lt(3, _over(CeilToInt, _over(FloorToInt, N, 2), 4)),
            "3 < math.ceil((math.floor(n / 2)) / 4)",
        ),
        (sympy.Eq(IntTrueDiv(N, M), 4), "(n / m) == 4"),
        (sympy.Gt(sum(_over(CeilToInt, N * N, p) for p in range(2, 30)), 9), "a condition on n"),
        (sympy.Gt(sum(_over(CeilToInt, N * M, p) for p in range(2, 30)), 9), "a condition on m, n"),
    ],
)
def test_text(condition, text):
    assert readable_condition(condition, NAMES) == text


@pytest.mark.parametrize("outer", FUNCTIONS)
@pytest.mark.parametrize("inner", FUNCTIONS)
@pytest.mark.parametrize("shift", [-9, -5, 0, 3, 8])
def test_merged_quotients_are_equal(outer, inner, shift):
    """They are for each size, below 0 too."""
    value = _over(FUNCTIONS[outer], _over(FUNCTIONS[inner], N - 13, 3, 2) + shift, 4, -1)
    text = readable_condition(sympy.Eq(value, M), NAMES)
    for n in range(1, 40):
        expected = eval(python_text(value), {"math": math, "torch": torch, "s0": n})
        assert eval(text, {"math": math, "n": n, "m": expected})


def test_a_size_that_convolutions_divide():
    class Padded(torch.nn.Module):
        def forward(self, x):
            for stride in (1, 2, 1, 4):
                windows = math.ceil((x.shape[-1] - stride) / stride + 1)
                x = torch.nn.functional.pad(x, (0, windows * stride - x.shape[-1]))
                x = torch.nn.functional.avg_pool1d(x, stride)
            return x * 2 if x.shape[-1] > 6 else x * 3

    with pytest.raises(ConversionError, match=r"right for 6 < math.ceil\(n / 8\) \(not n=48\)"):
        check_export(Padded(), (torch.randn(2, 3, 80),), ({0: "b", 2: "n"},))
