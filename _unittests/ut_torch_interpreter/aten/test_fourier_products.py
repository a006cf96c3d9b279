"""Fourier transforms of known lengths as products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types, run_ort

ATOL = 1e-4


def parts(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def check_precision(fct: Any, *shape: int, dims: Any = ({0: "a"},), atol: float = 2e-6) -> Any:
    """The results are those of 64 bits; torch refuses a tensor without rows."""
    x = rows(*shape)
    found = check_export(fct, (x,), dims, [(x[:1],)], atol=ATOL)
    expected, got = fct(x.double()).numpy(), run_ort(found, (x,))[0]
    assert run_ort(found, (x[:0],))[0].shape == (0, *expected.shape[1:])
    assert np.abs(got - expected).max() <= atol * np.abs(expected).max()
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 100, 400, 512, 1000])
def test_half_of_real_numbers(size: int) -> None:
    """DFT is up to 1e-2 from torch at 1000."""
    found = check_precision(lambda x: parts(torch.fft.rfft(x)), 3, size)
    few = ["MatMul", "Reshape"]
    assert sorted(op_types(found)) == few if size < 400 else op_types(found).count("MatMul") == 2


@pytest.mark.parametrize("size", [1, 2, 3, 50, 257, 300])
@pytest.mark.parametrize("more", [0, 1])
def test_real_numbers_from_their_half(size: int, more: int) -> None:
    """An even and an odd length of each half."""

    def fct(x: torch.Tensor) -> torch.Tensor:
        z = torch.complex(x[:, 0], x[:, 1])
        return torch.fft.irfft(z, n=max(2 * (size - 1) + more, 1))

    assert "MatMul" in op_types(check_precision(fct, 3, 2, size))


@pytest.mark.parametrize("size", [1, 5, 30, 90, 192, 210, 257])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_complex_numbers(name: str, size: int) -> None:
    def fct(x: torch.Tensor) -> torch.Tensor:
        return parts(getattr(torch.fft, name)(torch.complex(x[:, 0], x[:, 1]), norm="ortho"))

    found = op_types(check_precision(fct, 3, 2, size))
    assert found.count("MatMul") == 1 + (size in {192, 210}) and "DFT" not in found


@pytest.mark.parametrize("n", [150, 200, 330, 600])
def test_another_length(n: int) -> None:
    """Zeros are added by the constants, or once."""
    check_precision(lambda x: parts(torch.fft.fft(x, n=n)), 3, 250)
    check_precision(lambda x: parts(torch.fft.rfft(x, n=n)), 3, 250)
    check_precision(lambda x: torch.fft.irfft(torch.complex(x, -x), n=n), 3, 250)


def test_several_dimensions() -> None:
    """The rows are a dimension or two, dynamic or not; the transform is along any of them."""
    both = ({0: "a", 1: "b"},)
    for dim in (2, 3, (2, 3)):
        fct = lambda x, dim=dim: torch.fft.fft2(x, dim=dim, s=None).abs()  # noqa: E731
        if isinstance(dim, int):
            fct = lambda x, dim=dim: torch.fft.ifft(x, dim=dim).abs()  # noqa: E731
        found = check_precision(fct, 2, 3, 150, 160, dims=both)
        assert "DFT" not in op_types(found)
    check_precision(lambda x: torch.fft.rfft2(x).abs(), 2, 3, 150, 160)
    check_precision(lambda x: torch.fft.irfft2(torch.complex(x, x)), 2, 3, 150, 81)
    check_precision(lambda x: torch.fft.hfft(torch.complex(x, x), dim=1), 2, 201, 3)


def test_three_factors() -> None:
    found = op_types(check_precision(lambda x: parts(torch.fft.rfft(x)), 2, 9261))
    assert found.count("MatMul") == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_types_and_norms(dtype: torch.dtype, norm: str) -> None:
    x = (rows(2, 3, 30) * 10).to(dtype)
    fct = lambda x: parts(torch.fft.rfft(x, norm=norm, n=25))  # noqa: E731
    assert "MatMul" in op_types(check_export(fct, (x,), ({0: "a"},), [(x[:1],)], atol=ATOL))


def test_one_row() -> None:
    found = check_export(lambda x: torch.fft.rfft(x).abs(), (rows(48),), atol=ATOL)
    assert "MatMul" in op_types(found)


LEFT = {
    "a large power of 2": (lambda x: torch.fft.rfft(x), (2, 4096), {0: "a"}),
    "a large prime": (lambda x: torch.fft.rfft(x), (2, 1511), {0: "a"}),
    "an unknown length": (lambda x: torch.fft.rfft(x), (3, 16), {1: "a"}),
}


@pytest.mark.parametrize("name", sorted(LEFT))
def test_transforms_left_to_onnx(name: str) -> None:
    fct, shape, dims = LEFT[name]
    found = check_export(lambda x: parts(fct(x)), (rows(*shape),), (dims,), atol=2e-2)
    assert "DFT" in op_types(found) and "MatMul" not in op_types(found)


@pytest.mark.parametrize("size", [25, 400, 512])
def test_frames(size: int) -> None:
    """STFT is 2e-3 from torch at 400."""
    window = torch.hann_window(size)

    def fct(x: torch.Tensor) -> torch.Tensor:
        return parts(torch.stft(x, size, size // 3, window=window, return_complex=True))

    others = [(rows(1, 1500),), (rows(3, 901),)]
    found = check_export(fct, (rows(2, 1100),), ({0: "a", 1: "t"},), others, atol=ATOL)
    assert "Conv" in op_types(found) and "STFT" not in op_types(found)


def test_a_window_that_is_an_argument() -> None:
    def fct(x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        return parts(torch.stft(x, 40, 10, window=window, center=False, return_complex=True))

    given, others = (rows(2, 100), rows(40)), [(rows(1, 131), rows(40) + 1)]
    found = check_export(fct, given, ({0: "a", 1: "t"}, None), others, atol=ATOL)
    assert "Conv" in op_types(found)


def test_frames_left_to_onnx() -> None:
    window = torch.hann_window(1024)

    def fct(x: torch.Tensor) -> torch.Tensor:
        return parts(torch.stft(x, 1024, 256, window=window, return_complex=True))

    assert "STFT" in op_types(check_export(fct, (rows(2, 3000),), ({0: "a"},), atol=1e-3))
