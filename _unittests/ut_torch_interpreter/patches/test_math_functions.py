"""Functions of Python that torch does not know, of sizes."""

from __future__ import annotations

import enum
import functools
import math

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import ConversionError
from torch_interpreter.patches.math_functions import symbolic_extremum, symbolic_function


class Sizes(enum.IntEnum):
    SIX = 6


NUMBERS = {
    "an enumeration": lambda n: (n + Sizes.SIX) * (Sizes.SIX - n) % Sizes.SIX,
    "an extremum of an enumeration": lambda n: max(Sizes.SIX, n),
    "numbers of numpy": lambda n: min(np.int64(9), n) + max(n, np.float64(4.5), np.int32(5)),
    "log": lambda n: math.log(n),
    "log10": lambda n: math.log10(n),
    "ceil of a logarithm in base 10": lambda n: math.ceil(math.log10(n)),
    "floor of a logarithm in base 2": lambda n: int(math.log(n, 2)),
    "ceil of a logarithm in base 3": lambda n: math.ceil(math.log(n, 3)),
    "floor of a logarithm in base 7": lambda n: int(math.log(n, 7)),
    "decimals": lambda n: round(n * 0.145, 2),
    "many decimals": lambda n: round(n / 7, 9),
    "a decimal half way": lambda n: round(n / 16, 3),
    "no decimal": lambda n: round(n * 0.5, 0),
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_every_size(name):
    """The numbers are those of Python, which rounds some of them."""
    number = NUMBERS[name]
    model = Fct1(lambda x: x.new_zeros(1, dtype=torch.float64) + number(x.shape[1]))
    onx = to_onnx(model, (torch.randn(2, 8),), dynamic_shapes=({0: "a", 1: "n"},))
    for size in [*range(1, 130), 243, 343, 729, 1000, 2187, 2401, 10000]:
        (got,) = run_ort(onx, [torch.zeros(1, size)])
        np.testing.assert_allclose(got, [float(number(size))], rtol=1e-15, atol=0)


def test_a_branch_names_the_function():
    model = Fct1(lambda x: x * 2 if math.log(x.shape[1]) > 2 else x)
    with pytest.raises(ConversionError, match=r"2 < math\.log\(float\(n\)\) \(not n=7\)"):
        to_onnx(model, (torch.randn(3, 8),), dynamic_shapes=({1: "n"},))


def test_a_number_of_python():
    assert symbolic_function("log")(8) == math.log(8)
    assert symbolic_extremum("min")(3, 1.5, 2) == 1.5
    assert symbolic_extremum("max")([3, 1], key=lambda n: -n) == 1
    assert symbolic_extremum("max")([], default=4) == 4
    assert symbolic_extremum("min")("ba") == "a"


@functools.lru_cache
def above(n):
    return torch.triu(torch.ones(n, n), 1)


class Cached(torch.nn.Module):
    @functools.cache  # noqa: B019
    def positions(self, n):
        return torch.arange(n) * 0.5

    @staticmethod
    @functools.lru_cache(maxsize=4)
    def scale(n):
        return torch.ones(1) / n

    def forward(self, x):
        return above(x.shape[1]) @ x + self.positions(x.shape[2]) * self.scale(x.shape[0])


@pytest.mark.parametrize("shapes", [({0: "a", 1: "n", 2: "m"},), None])
def test_results_that_python_keeps(shapes):
    """The export neither needs the hash of a size nor leaves a tensor without data."""
    model, args = Cached(), (torch.randn(2, 3, 4),)
    above.cache_clear()
    others = [(torch.randn(3, 5, 2),)] if shapes else []
    check_export(model, args, shapes, others)
    assert above.cache_info().currsize == 1 + len(others)
    assert type(above(3)) is torch.Tensor and type(Cached.scale(2)) is torch.Tensor
    check_export(model, args, shapes, others)


CALLS: list[int] = []


@functools.cache
def fibonacci(n):
    CALLS.append(n)
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_a_function_that_calls_itself():
    """Without its results, it would be called 20,000 times."""
    CALLS.clear()
    check_export(lambda x: x * fibonacci(20), (torch.randn(3),), None)
    assert len(CALLS) <= 2 * 21


def test_a_picture_keeps_its_proportions():
    """The ratio is the smallest of two."""

    def letterbox(x):
        height, width = x.shape[-2:]
        ratio = min(16 / height, 16 / width)
        height, width = round(height * ratio), round(width * ratio)
        x = torch.nn.functional.interpolate(x, size=(height, width), mode="bilinear")
        top, left = (16 - height) // 2, (16 - width) // 2
        return torch.nn.functional.pad(x, (left, 16 - width - left, top, 16 - height - top))

    sizes = [(torch.rand(b, 3, *s),) for b, s in ((2, (8, 8)), (1, (13, 9)), (3, (10, 20)))]
    check_export(letterbox, sizes[0], ({0: "b", 2: "h", 3: "w"},), sizes[1:])
