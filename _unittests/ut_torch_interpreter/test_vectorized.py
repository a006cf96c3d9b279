"""torch.vmap, associative_scan."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from ut_torch_interpreter.export_checks import Fct1, Fct2, check_export

from torch_interpreter import ExportError, to_onnx

X = torch.randn(5, 3)


def sums(x):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def recurrence(x, y):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return associative_scan(combine, (x, y), 0, reverse=True, combine_mode="generic")


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_associative_scan(size):
    check_export(sums, (torch.randn(size, 3),))
    check_export(recurrence, (torch.randn(size, 3), torch.randn(size, 3)))


@pytest.mark.parametrize("strategy", ["nostrict", "nostrict-dec", "strict"])
def test_the_scanned_dimension_is_static(strategy):
    with pytest.raises(ExportError, match="associative_scan over a dynamic dimension"):
        to_onnx(Fct1(sums), (X,), dynamic_shapes=({0: "n"},), export_options=strategy)
    shapes = ({0: "n"}, {0: "n"})
    with pytest.raises(ExportError, match="associative_scan over a dynamic dimension"):
        to_onnx(Fct2(recurrence), (X, X), dynamic_shapes=shapes, export_options=strategy)


def test_vmap():
    def products(x, y):
        return torch.vmap(lambda a, b: (a * b).sum())(x, y)

    y = torch.randn(5, 3)
    shapes = ({0: "n"}, {0: "n"})
    check_export(products, (X, y), shapes, [(torch.randn(7, 3), torch.randn(7, 3))])
