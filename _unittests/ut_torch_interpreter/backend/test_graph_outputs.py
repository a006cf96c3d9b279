"""Where the outputs of a graph come from, and in which order a tensor is stored."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter.backend.graph_outputs import (
    Computed,
    Constant,
    InputBack,
    split_outputs,
    stride_order,
)


def graph_of(fct, *args):
    return torch.fx.experimental.proxy_tensor.make_fx(fct, tracing_mode="fake")(*args)


def test_split_outputs():
    def fct(x, y):
        total = x + y
        return y, None, total, total.t(), 3, total

    x = torch.randn(2, 3)
    module = graph_of(fct, x, x)
    reduced, outputs = split_outputs(module)
    assert outputs == [
        InputBack(1),
        Constant(None),
        Computed(0),
        Computed(1, order=(1, 0)),
        Constant(3),
        Computed(0),
    ]
    total, turned = reduced(x, x)
    torch.testing.assert_close(total, x + x)
    torch.testing.assert_close(turned, (x + x).t())
    assert len(module(x, x)) == 6, "the graph that is given does not change"


def test_strides_nobody_sees():
    module = graph_of(lambda x: (x.t(), x.t() + 1), torch.randn(2, 3))
    assert split_outputs(module, 1)[1] == [Computed(0, order=(1, 0)), Computed(1)]
    assert split_outputs(module, 0)[1] == [Computed(0), Computed(1)]


def test_symbolic_numbers():
    make = torch.fx.experimental.proxy_tensor.make_fx
    module = make(lambda x: (x.shape[0] * 2, x + 1), tracing_mode="symbolic")(torch.randn(3, 4))
    assert split_outputs(module)[1] == [Computed(0, number=int), Computed(1)]


@pytest.mark.parametrize(
    "tensor, order",
    [
        (torch.empty(2, 3), None),
        (torch.empty(2, 3).t(), (1, 0)),
        (torch.empty(2, 5)[:, :3], None),
        (torch.empty(()), None),
        (torch.empty(0, 3).t(), None),
        (torch.empty(1, 4, 3, 2).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
    ],
)
def test_stride_order(tensor, order):
    assert stride_order(tensor) == order
    if order:
        assert torch.empty_permuted(tensor.shape, order).stride() == tensor.stride()
