"""Decomposing an exported program does not make a dynamic dimension constant."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import FunctionNotFoundError
from torch_interpreter.exporting import decompositions


def test_a_batch_of_one_and_an_operator_in_place():
    def model(x):
        y = x * 2
        y += 1
        return y.reshape(-1, 4)

    others = [(torch.randn(2, 5, 4),), (torch.randn(1, 1, 4),)]
    check_export(model, (torch.randn(1, 3, 4),), ({0: "batch", 1: "n"},), others)


def test_a_batch_of_one_keeps_its_place():
    w = torch.randn(5, 3)

    def model(x):
        y = torch.nn.functional.linear(x.transpose(1, 2), w).transpose(1, 2).contiguous()
        y += 1
        return y.reshape(y.shape[0], -1)

    check_export(model, (torch.randn(1, 3, 4),), ({0: "b", 2: "n"},), [(torch.randn(2, 3, 6),)])


def test_the_table_of_torch_is_built_once(monkeypatch):
    """Building it takes a tenth of a second."""
    args = (torch.randn(2, 1600),)

    def spectrum(x):
        return torch.stft(x, 400, 160, return_complex=True).abs()

    check_export(spectrum, args, None, atol=1e-3)
    monkeypatch.delattr(torch.export, "default_decompositions")
    check_export(spectrum, args, None, atol=1e-3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 2, padding=1),
        lambda x: F.pad(x, (1, 2), value=3.0),
        lambda x: torch.diagonal_scatter(x[0, 0], x[0, 0].diagonal() * 2),
        lambda x: x.repeat_interleave(3, dim=1),
        lambda x: F.scaled_dot_product_attention(x, x, x),
    ],
    ids=["max_pool2d", "pad", "diagonal_scatter", "repeat_interleave", "attention"],
)
def test_all_decompositions(function):
    """The decompositions of padding write in a tensor: torch refuses them in a graph."""
    x, others = torch.randn(2, 3, 6, 6), [(torch.randn(1, 2, 6, 6),)]
    shapes = ({0: "batch", 1: "channels"},)
    check_export(function, (x,), shapes, others, export_options="decall")


@torch.library.triton_op("ut_decompositions::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    """An operator that torch.compile traces, without a kernel in it."""
    return torch.relu(x) * factor + x.sum(-1, keepdim=True)


@torch.library.custom_op("ut_decompositions::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    """An operator that torch.compile does not trace."""
    return torch.relu(x)


@opaque.register_fake
def _(x):
    return torch.empty_like(x)


def test_an_operator_that_is_traced():
    """torch.export keeps it."""
    onx = check_export(
        lambda x: scaled(x, 3.0) + 1, (torch.randn(2, 3),), ({0: "b"},), [(torch.randn(5, 3),)]
    )
    assert [n.op_type for n in onx.graph.node] == ["Relu", "Mul", "ReduceSum", "Add", "Add"]


def test_an_operator_that_is_not_traced():
    with pytest.raises(FunctionNotFoundError, match="ut_decompositions.opaque"):
        check_export(opaque, (torch.randn(2, 3),))


def test_no_warning_of_torch_on_its_own_code():
    def model(x):
        y = x * 2
        y += 1
        return torch.trace(y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(_Called(model), (torch.randn(3, 3),))


class _Called(torch.nn.Module):
    """Calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


_SEED = torch.Generator().manual_seed(0)
X, CUBES = torch.randn(4, 3, generator=_SEED), torch.randn(2, 3, 3, generator=_SEED)
COUNTS = torch.tensor([2, 0, 1])
#: operators that torch writes with others -> a tensor
CONVERTED = {
    "cross": (lambda x: torch.linalg.cross(x, x.flip(0)), X),
    "cross of the middle": (lambda x: torch.linalg.cross(x, x[:1] + 1, dim=1), CUBES),
    "cross with a dimension": (lambda x: torch.linalg.cross(x, x + 1, dim=-1), CUBES),
    "diag_embed": (torch.diag_embed, X),
    "diag_embed above": (lambda x: torch.diag_embed(x, 1, 0, 2), X),
    "diag_embed below": (lambda x: torch.diag_embed(x.t() > 0, -2, -1, 0), X),
    "cumprod": (lambda x: x.cumprod(0), CUBES),
    "cumprod of booleans": (lambda x: (x > 0).cumprod(-1), CUBES),
    "cumprod in 64 bits": (lambda x: x.cumprod(1, dtype=torch.float64), CUBES),
    "flips": (lambda x: (x.fliplr(), x.flipud()), X),
    "angles": (lambda x: (torch.deg2rad(x), torch.rad2deg(x.int())), X),
    "cosine_similarity": (lambda x: F.cosine_similarity(x[:, None], x, dim=-1), X),
    "cosine of a repeated element": (lambda x: F.cosine_similarity(x, x[:, :1]), X),
    "cosine of fewer dimensions": (lambda x: F.cosine_similarity(x[0], x[:, None], dim=1), X),
    "cosine of rows": (lambda x: F.cosine_similarity(x, x[0], dim=0), X),
    "cosine of zeros": (lambda x: F.cosine_similarity(x, x * 0), X),
    "repeat_interleave": (lambda x: x.repeat_interleave(COUNTS, 1), X),
    "repeat_interleave once": (lambda x: x.repeat_interleave(torch.tensor(2)), X),
    "mH": (lambda x: x.mH * torch.real(x), CUBES),
    "solve": (lambda x: torch.linalg.solve(x @ x.mT + torch.eye(3), x), CUBES),
    "slogdet": (torch.slogdet, CUBES),
    "chunks": (lambda x: (*x.unsafe_chunk(2, 1), *x.unsafe_split(2, 1)), X),
}


@pytest.mark.parametrize("name", sorted(CONVERTED))
def test_converted_operators(name, monkeypatch):
    """They have converters: tracing what torch writes them with costs up to two exports."""

    def refused(program, table, on_complex):
        raise AssertionError(f"{sorted(map(str, table))} are decomposed")

    monkeypatch.setattr(decompositions, "_locally_decomposed", refused)
    function, x = CONVERTED[name]
    others = [(torch.cat([x, x[:1]]),), (x[:2] if name != "chunks" else x[:3],)]
    check_export(function, (x,), None, atol=1e-4)
    check_export(function, (x,), ({0: "n"},), others, atol=1e-4)
