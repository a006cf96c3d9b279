"""Gradients of poolings and paddings."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

IMAGE = {1: (9,), 2: (9, 8), 3: (5, 6, 7)}
DYNAMIC = {0: "n", 2: "h", 3: "w"}, {0: "n", 2: "a", 3: "b"}
#: kernel, stride, padding, ceil mode, the padding counts, divisor
MEANS = {
    "default": (2, [], 0, False, True, None),
    "overlap": (3, 2, 1, False, True, None),
    "padding does not count": (3, 2, 1, False, False, None),
    "ceil": (3, 2, 0, True, True, None),
    "ceil and padding": (3, 2, 1, True, True, None),
    "ceil, padding does not count": (3, 2, 1, True, False, None),
    "divisor": (3, 2, 1, True, True, 5),
    "some elements unread": (2, 3, 0, False, True, None),
}


class AvgPool(torch.nn.Module):
    def __init__(self, n, kernel, stride, padding, *rest):
        super().__init__()
        self.call = getattr(torch.ops.aten, f"avg_pool{n}d_backward")
        self.options = ([kernel] * n, stride and [stride] * n, [padding] * n, *rest)

    def forward(self, grad, x):
        return self.call(grad, x, *self.options)


def pooled(name, n, x):
    """A gradient for the pooling of an image."""
    kernel, stride, padding, ceil, *rest = MEANS[name]
    call = getattr(torch.nn.functional, f"avg_pool{n}d")
    return torch.randn_like(call(x, kernel, stride or None, padding, ceil, *rest))


@pytest.mark.parametrize("name", sorted(MEANS))
@pytest.mark.parametrize("n", [2, 3])
def test_avg_pool(n, name):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *IMAGE[n])
    onx = check_export(AvgPool(n, *MEANS[name]), (pooled(name, n, x), x), atol=1e-5)
    assert {*op_types(onx)} <= {"MatMul", "Transpose", "Div", "Reshape"}


@pytest.mark.parametrize("name", sorted(MEANS))
def test_avg_pool_dynamic(name):
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 9, 8), torch.randn(3, 3, 12, 7)
    others = [(pooled(name, 2, y), y)]
    check_export(AvgPool(2, *MEANS[name]), (pooled(name, 2, x), x), DYNAMIC, others, atol=1e-5)


def test_avg_pool_without_batch():
    torch.manual_seed(0)
    x = torch.randn(3, 9, 8)
    check_export(AvgPool(2, *MEANS["overlap"]), (pooled("overlap", 2, x), x), atol=1e-5)


@pytest.mark.parametrize("n, sizes", [(2, (1, 1)), (2, (3, 2)), (2, (4, 9)), (3, (2, 6, 3))])
def test_adaptive_avg_pool(n, sizes):
    class Model(torch.nn.Module):
        def forward(self, grad, x):
            return getattr(torch.ops.aten, f"_adaptive_avg_pool{n}d_backward")(grad, x)

    torch.manual_seed(0)
    grad, x = torch.randn(2, 3, *sizes), torch.randn(2, 3, *IMAGE[n])
    check_export(Model(), (grad, x), atol=1e-5)
    if n == 2:
        others = [(torch.randn(3, 3, 5, 4), torch.randn(3, 3, 11, 6))]
        check_export(Model(), (torch.randn(2, 3, 2, 3), x), DYNAMIC, others, atol=1e-5)


@pytest.mark.parametrize("n, padding", [(1, (2, 1)), (2, (1, 3, 0, 2)), (3, (1, 0, 2, 1, 1, 1))])
def test_replication_pad(n, padding):
    class Model(torch.nn.Module):
        def forward(self, grad, x):
            return getattr(torch.ops.aten, f"replication_pad{n}d_backward")(grad, x, [*padding])

    torch.manual_seed(0)
    x = torch.randn(2, 3, *IMAGE[n])
    grad = torch.randn_like(torch.nn.functional.pad(x, padding, mode="replicate"))
    check_export(Model(), (grad, x), atol=1e-5)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 1, 1)])
def test_max_pool(n, kernel, stride, padding):
    window = [kernel] * n, [stride] * n, [padding] * n, [1] * n, False

    class Model(torch.nn.Module):
        def forward(self, grad, x, indices):
            call = getattr(torch.ops.aten, f"max_pool{n}d_with_indices_backward")
            return call(grad, x, *window, indices)

    torch.manual_seed(0)
    x = torch.randn(2, 3, *IMAGE[n])
    values, indices = getattr(torch.ops.aten, f"max_pool{n}d_with_indices")(x, *window)
    onx = check_export(Model(), (torch.randn_like(values), x, indices), atol=1e-5)
    assert op_types(onx).count("ScatterElements") == 1
