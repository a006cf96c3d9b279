"""torch.vmap, associative_scan."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from ut_torch_interpreter.export_checks import (
    Fct1,
    Fct2,
    assert_same,
    check_export,
    op_types,
    run_ort,
)

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


def test_associative_scan_over_a_dynamic_dimension():
    """It is a Scan, which reads the weights around it."""
    sizes = [torch.randn(1, 3), torch.randn(2, 3), torch.randn(9, 3)]
    onx = check_export(sums, (X,), ({0: "n"},), [(x,) for x in sizes])
    assert "Scan" in op_types(onx)
    shapes = ({0: "n", 1: "m"}, {0: "n", 1: "m"})
    check_export(recurrence, (X, X + 1), shapes, [(torch.randn(8, 2), torch.randn(8, 2))])

    class Weighted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))

        def forward(self, x):
            def combine(a, b):
                return torch.maximum(a, b) * self.scale**0

            return associative_scan(combine, x, 0, combine_mode="generic")

    check_export(Weighted(), (X,), ({0: "n"},), [(torch.randn(7, 3),)])


def test_the_scanned_dimension_is_static_with_strict():
    with pytest.raises(ExportError, match="associative_scan over a dynamic dimension"):
        to_onnx(Fct1(sums), (X,), dynamic_shapes=({0: "n"},), export_options="strict")
    shapes = ({0: "n"}, {0: "n"})
    with pytest.raises(ExportError, match="associative_scan over a dynamic dimension"):
        to_onnx(Fct2(recurrence), (X, X), dynamic_shapes=shapes, export_options="strict")


def test_pointwise():
    """torch 2.13 needs a GPU, 2.15 does not."""

    def model(x):
        return associative_scan(lambda a, b: a + b, x, 0, combine_mode="pointwise")

    try:
        onx = to_onnx(Fct1(model), (X,))
    except ExportError as e:
        assert "combine_mode='generic' does the same on any device" in str(e)
    else:
        assert_same(model(X), run_ort(onx, [X]), 1e-5)


def test_vmap():
    def products(x, y):
        return torch.vmap(lambda a, b: (a * b).sum())(x, y)

    y = torch.randn(5, 3)
    shapes = ({0: "n"}, {0: "n"})
    check_export(products, (X, y), shapes, [(torch.randn(7, 3), torch.randn(7, 3))])
