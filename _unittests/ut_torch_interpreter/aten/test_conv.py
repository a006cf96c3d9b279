"""Convolutions."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import ConversionError, to_onnx

torch.manual_seed(0)
IMAGE = {1: torch.randn(2, 4, 9), 2: torch.randn(2, 4, 9, 8), 3: torch.randn(1, 4, 5, 6, 7)}
CONV = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d, 3: torch.nn.Conv3d}
TRANSPOSED = {
    1: torch.nn.ConvTranspose1d,
    2: torch.nn.ConvTranspose2d,
    3: torch.nn.ConvTranspose3d,
}
OPTIONS = {
    "default": {},
    "no bias": {"bias": False},
    "stride": {"stride": 2},
    "padding": {"padding": 1},
    "dilation": {"dilation": 2},
    "groups": {"groups": 2},
    "all": {"stride": 2, "padding": 2, "dilation": 2, "groups": 4},
}


@pytest.mark.parametrize("name", [*sorted(OPTIONS), "valid", "same"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_conv(n, name):
    options = OPTIONS.get(name, {"padding": name})
    model = CONV[n](4, 8, 3, **options)
    x = IMAGE[n]
    onx = check_export(model, (x,), ({0: "a"},), [(torch.cat([x, x, x]),)], atol=1e-4)
    assert op_types(onx) == ["Conv"]
    check_export(model, (x,), export_options="nostrict-dec", atol=1e-4)


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_conv_transpose(n, name):
    model = TRANSPOSED[n](4, 8, 3, **OPTIONS[name])
    onx = check_export(model, (IMAGE[n],), ({0: "a"},), atol=1e-4)
    assert op_types(onx) == ["ConvTranspose"]


def test_output_padding():
    model = torch.nn.ConvTranspose2d(4, 8, 3, stride=2, output_padding=1)
    check_export(model, (IMAGE[2],), atol=1e-4)
    check_export(model, (IMAGE[2],), export_options="nostrict-dec", atol=1e-4)


def test_same_with_an_even_kernel():
    check_export(torch.nn.Conv2d(4, 8, (4, 3), padding="same"), (IMAGE[2],), atol=1e-4)


def test_without_batch():
    check_export(torch.nn.Conv2d(4, 8, 3), (IMAGE[2][0],), atol=1e-4)
    check_export(torch.nn.ConvTranspose1d(4, 8, 3), (IMAGE[1][0],), atol=1e-4)


def test_dynamic_sizes():
    check_export(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        (IMAGE[2],),
        ({0: "a", 2: "h", 3: "w"},),
        [(torch.randn(1, 4, 12, 20),)],
        atol=1e-4,
    )


def test_weights_keep_their_names():
    model = torch.nn.Conv2d(4, 8, 3)
    onx = check_export(model, (IMAGE[2],), atol=1e-4)
    assert {i.name for i in onx.graph.initializer} == {"weight", "bias"}


@pytest.mark.parametrize("padding", [0, 1, "valid", "same"])
def test_weight_with_dynamic_sizes(padding):
    x, w = torch.randn(1, 4, 9, 8), torch.randn(3, 4, 3, 2)
    check_export(
        lambda x, w: torch.nn.functional.conv2d(x, w, padding=padding),
        (x, w),
        ({0: "n", 2: "h", 3: "w"}, {0: "out", 2: "k", 3: "l"}),
        [(torch.randn(2, 4, 7, 7), torch.randn(5, 4, 4, 5))],
        atol=1e-4,
    )


def test_transposed_weight_with_dynamic_sizes():
    check_export(
        lambda x, w: torch.nn.functional.conv_transpose1d(x, w),
        (torch.randn(1, 4, 9), torch.randn(4, 3, 3)),
        ({0: "n", 2: "h"}, {1: "out", 2: "k"}),
        [(torch.randn(2, 4, 7), torch.randn(4, 5, 2))],
        atol=1e-4,
    )


def test_same_padding_needs_known_sizes_with_a_dilation():
    with pytest.raises(ConversionError, match="whose sizes are known"):
        check_export(
            lambda x, w: torch.nn.functional.conv1d(x, w, padding="same", dilation=2),
            (torch.randn(1, 4, 9), torch.randn(3, 4, 3)),
            ({}, {2: "k"}),
        )


def test_output_padding_above_the_stride():
    x, w = torch.rand(2, 2, 4, 4), torch.rand(2, 2, 4, 5)
    check_export(lambda x, w: torch.conv_transpose2d(x, w, None, 1, (2, 3), (1, 2), 1, 4), (x, w))
    with pytest.raises(ConversionError, match="above the stride and the padding"):
        check_export(lambda x, w: torch.conv_transpose2d(x, w, None, 1, 0, 2, 1, 4), (x, w))


@pytest.mark.parametrize("dilation", [1, 4])
def test_output_padding_that_depends_on_sizes(dilation):
    down = torch.nn.Conv2d(4, 3, 5, stride=3, padding=2)
    up = torch.nn.ConvTranspose2d(3, 4, 3, stride=3, padding=4, dilation=dilation)

    def fct(x):
        return up(down(x), output_size=[size - 8 + 2 * dilation for size in x.shape[2:]])

    others = [(torch.randn(n, 4, *s),) for n, s in ((1, (10, 14)), (3, (14, 17)), (2, (13, 12)))]
    sizes = ({0: "a", 2: "h", 3: "w"},)
    x = torch.randn(2, 4, 16, 16)
    assert "Slice" in op_types(check_export(fct, (x,), sizes, others, atol=1e-4))


def test_groups_that_depend_on_a_size():
    with pytest.raises(ConversionError, match="attribute 'group' of Conv depends on a dynamic"):
        to_onnx(
            Groups(), (torch.randn(4, 9), torch.randn(4, 1, 3)), dynamic_shapes=({0: "n"}, {0: "n"})
        )


class Groups(torch.nn.Module):
    """One kernel for each row."""

    def forward(self, x, weight):
        return torch.nn.functional.conv1d(x[None], weight, groups=x.shape[0])
