"""Small tensors that are computed from sizes."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

DIMS = ({0: "a", 1: "n"},)


def halves(x):
    n = torch.div(x.shape[1], 2, rounding_mode="trunc")
    return x.view(x.shape[0], n, 2)


def overlapping(x):
    count = 2 * torch.div(x.size(1), 4, rounding_mode="floor") - 1
    return x.new_ones(x.size(0), 1 + count, 2) * count


@pytest.mark.parametrize("function", [halves, overlapping])
def test_torch_divides_a_size(function):
    others = [(torch.randn(2, 12),), (torch.randn(3, 4),)]
    onx = check_export(function, (torch.randn(2, 8),), DIMS, others)
    shape = onx.graph.output[0].type.tensor_type.shape.dim[1].dim_param
    assert shape == ("n//2" if function is halves else "2*(n//4)")


def test_the_content_of_a_constant():
    """SAM 3 keeps the shapes of its levels in a tensor, which is a constant for static pictures."""

    def grid(x):
        shapes = torch.tensor([x.shape[1:3]], dtype=torch.long)
        h, w = shapes[0, 0], shapes[0, 1]
        bias = (torch.arange(0, h)[:, None] / h + torch.arange(0, w)).flatten()
        return x.flatten(1, 2) + bias[:, None] if bias.shape[0] == h * w else x

    for dims in (({0: "a"},), ({0: "a", 2: "w"},)):
        others = [(torch.randn(3, 4, 5, 2),)] if len(dims[0]) == 1 else [(torch.randn(2, 4, 7, 2),)]
        onx = check_export(grid, (torch.randn(2, 4, 5, 2),), dims, others)
        assert "If" not in op_types(onx)


def test_a_constant_that_changes_is_not_known():
    def changed(x):
        sizes = torch.tensor([2, 3])
        sizes[0] = x.sum().long()
        return x * sizes[0] + sizes[1]

    check_export(changed, (torch.ones(2, 8),), DIMS, [(torch.ones(3, 5),)])


def test_torch_divides_tensors_as_before():
    def quotient(x):
        return torch.div(x, 2, rounding_mode="floor"), torch.div(x.shape[1], 2)

    check_export(quotient, (torch.randn(2, 8),), DIMS, [(torch.randn(3, 5),)])


#: what a model computes from a size, in tensors, before it asks for the content
NUMBERS = {
    "ceil of a quotient": lambda n: torch.ceil((n - 3) / 4).to(torch.int64) * 4,
    "floor of a quotient": lambda n: torch.floor(n / 3 + 1).long(),
    "truncation of a quotient": lambda n: (n * 0.5).int(),
    "negative": lambda n: -torch.div(-n, 3, rounding_mode="floor"),
    "truncated negative": lambda n: -torch.div(-n, 3, rounding_mode="trunc"),
    "reversed": lambda n: 100 - n,
    "in place": lambda n: n.clone().add_(3).mul_(2),
    "with alpha": lambda n: torch.add(n, n, alpha=2),
    "remainder": lambda n: n % 3 + n // 3,
    "bounds": lambda n: n.clamp(min=6, max=9) + torch.maximum(n, n * 2 - 5),
    "condition": lambda n: (n >= 7) * 3 + (n != 8).to(torch.int64),
    "product": lambda n: torch.stack([n, n + 1]).prod(),
    "sum": lambda n: torch.cat([n.view(1), torch.tensor([4])]).sum(),
    "element": lambda n: torch.tensor([4, 2]).add(n)[1],
    "largest": lambda n: torch.stack([n, n * 2 - 7, 13 - n]).max(),
    "smallest": lambda n: torch.stack([n, n * 2 - 7, 13 - n]).min(),
    "sums": lambda n: torch.stack([n, n + 1, 3 * n]).cumsum(0)[1],
    "products": lambda n: torch.stack([n, n + 1, n]).cumprod(0)[1],
    "distance": lambda n: (n - 7).abs(),
    "full": lambda n: torch.full((), 5) + n,
    "zeros and ones": lambda n: (torch.zeros(2, dtype=torch.int64) + torch.ones(()) * n)[1].long(),
    "steps": lambda n: (torch.arange(8, 0, -2) * n).flip(0)[1],
    "part": lambda n: torch.stack([n, n + 1, n + 2])[1:].unbind()[1],
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_size_of_a_tensor(name):
    """The size is an expression, so the model is right for all of them."""

    def zeros(x):
        return x.new_zeros(NUMBERS[name](torch.tensor(x.shape[1])).item(), 2)

    others = [(torch.randn(2, n),) for n in (4, 5, 6, 7, 10, 11)]
    onx = check_export(zeros, (torch.randn(2, 8),), DIMS, others)
    assert "u0" not in onx.graph.output[0].type.tensor_type.shape.dim[0].dim_param


def test_axes_in_a_tensor():
    """Asteroid writes so a list of axes that TorchScript reads."""

    def normalized(x):
        axes = torch.arange(1, len(x.shape)).tolist()
        return x - x.mean(dim=axes, keepdim=True) + torch.arange(x.shape[1])

    others = [(torch.randn(b, n),) for b, n in ((1, 31), (2, 1))]
    check_export(normalized, (torch.randn(2, 8),), DIMS, others)


class Padded(torch.nn.Module):
    """A convolution that pads what it needs, with the reflected borders."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 4, 7, 3)
        self.stride = torch.nn.Buffer(torch.tensor(3), persistent=False)
        self.kernel = torch.nn.Buffer(torch.tensor(7), persistent=False)
        self.total = torch.nn.Buffer(self.kernel - self.stride, persistent=False)

    def forward(self, x):
        length = x.shape[-1]
        frames = (length - self.kernel + self.total) / self.stride + 1
        frames = torch.ceil(frames).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - self.total - length
        added = 0
        if length <= max(self.total, extra):
            added = max(self.total, extra) - length + 1
            x = torch.nn.functional.pad(x, (0, added))
        x = torch.nn.functional.pad(x, (self.total, extra), "reflect")
        return self.conv(x[..., : x.shape[-1] - added])


def test_padding_computed_in_tensors():
    others = [(torch.randn(b, 1, n),) for b, n in ((1, 31), (2, 32), (3, 77))]
    with pytest.warns(UserWarning, match="5 <= n"):
        onx = check_export(Padded(), (torch.randn(2, 1, 30),), ({0: "a", 2: "n"},), others)
    assert "Ceil" not in op_types(onx)


#: what is not a fraction of integers, or whose sign is not known
UNKNOWN = {
    "tenth": lambda n: (n * 0.1).ceil().long() + 1,
    "half precision": lambda n: torch.tensor(n, dtype=torch.float16).floor().long(),
    "sign": lambda n: torch.div(n - 7, 2, rounding_mode="trunc") + 3,
    "many": lambda n: torch.stack([n] * 20).sum(),
}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_unknown_numbers(name):
    """The size is read from the tensor."""

    def zeros(x):
        return x.new_zeros(UNKNOWN[name](torch.tensor(x.shape[1])).item(), 2)

    check_export(zeros, (torch.randn(2, 8),), DIMS, [(torch.randn(2, n),) for n in (5, 6, 11)])


def test_a_tensor_that_changes():
    """A tensor that replaces the content of another one is not known, even if the other one is."""

    def zeros(x):
        n = torch.tensor(x.shape[1])
        n.copy_(x.argmax(1)[0])
        return x.new_zeros(n.item() + 1, 2)

    check_export(zeros, (torch.randn(2, 8),), DIMS, [(torch.randn(2, n),) for n in (5, 6)])
