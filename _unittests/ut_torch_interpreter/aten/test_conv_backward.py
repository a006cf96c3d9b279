"""Gradients of convolutions."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import ConversionError

IMAGE = {1: (9,), 2: (9, 8), 3: (5, 6, 7)}
#: stride, padding, dilation, groups
WINDOWS = {
    "default": (1, 0, 1, 1),
    "stride": (2, 0, 1, 1),
    "padding": (1, 1, 1, 1),
    "dilation": (1, 2, 2, 1),
    "groups": (1, 1, 1, 2),
    "depthwise": (2, 1, 1, 4),
    "last elements unread": (3, 0, 1, 1),
    "all": (3, 2, 2, 2),
}


class Backward(torch.nn.Module):
    """convolution_backward for the options of a convolution."""

    def __init__(self, n, window, transposed=False, more=0, mask=(True, True, True)):
        super().__init__()
        stride, padding, dilation, groups = window
        rest = [transposed, [more] * n, groups, [*mask]]
        self.sizes, self.options = [8], [[stride] * n, [padding] * n, [dilation] * n, *rest]

    def forward(self, grad, x, weight):
        found = torch.ops.aten.convolution_backward(grad, x, weight, self.sizes, *self.options)
        return tuple(t for t in found if t is not None)


def arguments_of(model, n, batch=2):
    """A gradient, an image and a weight, random."""
    torch.manual_seed(0)
    stride, padding, dilation, transposed, more, groups = model.options[:-1]
    x = torch.randn(batch, 4, *IMAGE[n])
    weight = torch.randn(*((4, 8 // groups) if transposed else (8, 4 // groups)), *(3,) * n)
    y = torch.ops.aten.convolution(
        x, weight, None, stride, padding, dilation, transposed, more, groups
    )
    return torch.randn_like(y), x, weight


@pytest.mark.parametrize("name", sorted(WINDOWS))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolution(n, name):
    model = Backward(n, WINDOWS[name])
    arguments = arguments_of(model, n)
    onx = check_export(model, arguments, atol=1e-3)
    assert op_types(onx).count("ConvTranspose") == 1
    assert op_types(onx).count("Conv") == 1


@pytest.mark.parametrize("name", sorted(WINDOWS))
def test_dynamic_sizes(name):
    model = Backward(2, WINDOWS[name])
    arguments = arguments_of(model, 2)
    dims = ({0: "n", 2: "h", 3: "w"}, {0: "n", 2: "a", 3: "b"}, None)
    stride, padding, dilation, _, _, groups = model.options[:-1]
    x = torch.randn(3, 4, 12, 11)
    conv = torch.nn.functional.conv2d(x, arguments[2], None, stride, padding, dilation, groups)
    check_export(model, arguments, dims, [(torch.randn_like(conv), x, arguments[2])], atol=1e-3)


@pytest.mark.parametrize("name", sorted({*WINDOWS} - {"depthwise"}))
@pytest.mark.parametrize("n", [1, 2])
def test_transposed(n, name):
    model = Backward(n, WINDOWS[name], transposed=True)
    onx = check_export(model, arguments_of(model, n), atol=1e-3)
    assert op_types(onx).count("Conv") == 2


def test_output_padding():
    model = Backward(2, (2, 1, 1, 1), transposed=True, more=1)
    check_export(model, arguments_of(model, 2), atol=1e-3)


@pytest.mark.parametrize("mask", [(True, False, False), (False, True, False), (False, True, True)])
def test_only_what_is_needed(mask):
    model = Backward(2, WINDOWS["stride"], mask=mask)
    onx = check_export(model, arguments_of(model, 2), atol=1e-3)
    assert len(onx.graph.output) == sum(mask)
    assert op_types(onx).count("ConvTranspose") == mask[0]
    assert op_types(onx).count("Conv") == mask[1]
    assert op_types(onx).count("ReduceSum") == mask[2]


def test_unknown_kernel():
    model = Backward(2, WINDOWS["last elements unread"])
    arguments = arguments_of(model, 2)
    dims = ({2: "h", 3: "w"}, {2: "a", 3: "b"}, {2: "k", 3: "l"})
    x, weight = torch.randn(2, 4, 9, 11), torch.randn(8, 4, 2, 4)
    conv = torch.nn.functional.conv2d(x, weight, None, 3)
    check_export(model, arguments, dims, [(torch.randn_like(conv), x, weight)], atol=1e-3)


def test_groups_of_unknown_channels():
    model = Backward(2, WINDOWS["groups"], mask=(False, True, False))
    grad, x, weight = arguments_of(model, 2)
    dims = (None, {1: "channels"}, {1: "group"})
    with pytest.raises(ConversionError, match="needs its number of channels"):
        check_export(model, (grad, x, weight), dims)
