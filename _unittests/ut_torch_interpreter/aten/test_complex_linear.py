"""Complex tensors: what moves or fills numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ut_torch_interpreter.aten.test_complex_tensors import DYNAMIC, OTHERS, X, given
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.aten import find_converter
from torch_interpreter.aten.complex_linear import _REAL, _VALUES

I2 = torch.tensor([2, 0])
SOURCE = torch.polar(torch.ones(2, 4, 2), torch.arange(16.0).reshape(2, 4, 2))

FUNCTIONS = {
    "axes": lambda z: (z.movedim(0, -1), z.mT, z.adjoint(), z.swapaxes(0, 1), z.T),
    "diagonals": lambda z: (z.diagonal(0, 1, 2), torch.diag_embed(z), z.tril(1), z.triu(-1)),
    "sizes": lambda z: (z.ravel(), z.unflatten(-1, (3, 1)), z.reshape_as(z.real), z.tile(2, 1)),
    "order": lambda z: (z.roll(1, -1), z.rot90(1, (0, 1)), z.fliplr(), z.roll((1, 2), (0, 1))),
    "places": lambda z: (
        z.gather(-1, torch.zeros(1, 1, 2, dtype=torch.int64)),
        z.take(I2),
        z.narrow(-1, 1, 2),
        z.masked_select(z.real > 0),
        z.repeat_interleave(2, -1),
    ),
    "pieces": lambda z: (*z.tensor_split(2, -1), *z.split([1, 2], -1), *torch.unbind_copy(z, -1)),
    "broadcast": lambda z: (*torch.broadcast_tensors(z, z[0, 0]), z[0, 0].expand_as(z)),
    "meshgrid": lambda z: torch.meshgrid(z[0, 0], z[0, 0].conj(), indexing="ij"),
    "several": lambda z: (torch.hstack([z, z]), torch.block_diag(z[0], z[0, :2])),
    "padding": lambda z: (
        torch.nn.functional.pad(z, (1, 2)),
        torch.nn.functional.pad(z, (1, 0), value=2.5),
        torch.nn.functional.pad(z, (1, 1), mode="reflect"),
    ),
    "filled": lambda z: (
        torch.zeros_like(z) + 1,
        torch.ones_like(z),
        z.new_full((2, 3), 1 + 2j),
        torch.full_like(z, 3 - 1j),
        torch.eye(3, dtype=z.dtype) @ z.mT,
    ),
    "constants": lambda z: (
        z * torch.zeros(3, dtype=z.dtype),
        z + torch.full((3,), 1 - 2j, dtype=z.dtype),
        z + torch.linspace(1, 2 + 4j, 3, dtype=z.dtype),
        z + torch.scalar_tensor(2j, dtype=z.dtype),
    ),
    "where": lambda z: (
        torch.where(z.real > 0, z, z.conj()),
        torch.where(z.real > 0, z, z.real),
        torch.where(z.real > 0, z, 1 + 2j),
        z.masked_fill(z.imag > 0, 2.5 - 1j),
    ),
    "windows": lambda z: (z.unfold(-1, 2, 1), torch.as_strided(z, (2, 2), (1, 2), 1)),
}

WRITTEN = {
    "slice_scatter": lambda z: z.slice_scatter(z[..., :2] * 2, -1, 1, 3),
    "select_scatter": lambda z: z.select_scatter(z[..., 0].conj(), -1, 2),
    "diagonal_scatter": lambda z: z[0, :2].diagonal_scatter(z[0, 0, :2].conj()),
    "index_put": lambda z: z.index_put((torch.tensor([0, 0]),), z[:1], accumulate=True),
    "index_copy": lambda z: z.index_copy(-1, I2, z[..., :2].conj()),
    "index_add": lambda z: z.index_add(-1, I2, z[..., :2]),
    "index_fill": lambda z: (z.index_fill(-1, I2, 2), z.index_fill(-1, I2, torch.tensor(1 - 3j))),
    "masked_scatter": lambda z: z.masked_scatter(z.real > 0, z.conj()),
    "scatter": lambda z: z.scatter(-1, torch.zeros(1, 1, 1, dtype=torch.int64), z[..., 1:2]),
    "scatter_add": lambda z: z.scatter_add(-1, torch.zeros(1, 2, 2, dtype=torch.int64), z[..., 1:]),
    "put": lambda z: z.put(I2, z.ravel()[:2].conj()),
    "copy": lambda z: torch.zeros_like(z).copy_(z.real),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_dynamic_sizes(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X,), DYNAMIC, OTHERS[1:], atol=1e-5)


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_written(name: str) -> None:
    check_export(given(WRITTEN[name]), (X,), DYNAMIC, OTHERS[1:], atol=1e-5)


@pytest.mark.parametrize("name", ["padding", "where", "filled"])
def test_double(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X.double(),), DYNAMIC, atol=1e-12)


def test_in_place() -> None:
    """Parts of a null tensor are written, as Fourier neural operators do."""

    def fct(z: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(z.shape[0], z.shape[1], 5, dtype=z.dtype)
        out[:, :, :2] = z[..., :2] * (1 + 2j)
        out[:, :, -2:] = z[..., 1:]
        return out

    check_export(given(fct), (X,), DYNAMIC, OTHERS, atol=1e-5)


def test_a_number_alone() -> None:
    """Axes 0 and -1 of a tensor without dimension are not the one of both parts."""

    def fct(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = z[0, 0, 0]
        return y.sum(0), y.cumsum(-1), y.mean(0), y.flip(0), y.squeeze(-1), y.unsqueeze(-1)

    check_export(given(fct), (X,), DYNAMIC, OTHERS, atol=1e-6)


def test_no_axis() -> None:
    check_export(given(lambda z: (z[:1].squeeze(()), z.flip(()))), (X,), DYNAMIC, OTHERS)


def test_types_of_sums() -> None:
    def fct(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        real = z.real.sum(-1, dtype=torch.complex64)
        return z.sum(-1, dtype=torch.complex128), z.cumsum(0, dtype=torch.complex128), real

    check_export(given(fct), (X,), DYNAMIC, OTHERS, atol=1e-6)


def test_copies() -> None:
    def fct(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = z.mT.clone(memory_format=torch.contiguous_format), z.to("cpu", torch.complex128)
        return *kept, z.contiguous(), z.type_as(z.to(torch.complex128))

    check_export(given(fct), (X,), DYNAMIC, OTHERS)


def test_empty() -> None:
    fct: Any = given(lambda z: (z.roll(1, -1), torch.where(z.real > 0, z, 1j), z.tril()))
    check_export(fct, (X,), DYNAMIC, [(X[:0],), (X[:1, :1],)])


def test_tables() -> None:
    for name in (*_VALUES, *_REAL):
        assert find_converter(f"aten.{name}") is not None
        assert find_converter(f"complex.aten.{name}") is not None
