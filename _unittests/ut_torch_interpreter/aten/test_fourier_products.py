"""Fourier transforms of real numbers as products."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

ATOL = 1e-4


def parts(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [1, 2, 3, 100, 400, 512, 1000])
def test_transform_of_a_known_length(size: int) -> None:
    """DFT is up to 1e-2 from torch at 1000."""
    others = [(rows(3, size),), (rows(1, size),)]
    fct = lambda x: parts(torch.fft.rfft(x))  # noqa: E731
    found = check_export(fct, (rows(2, size),), ({0: "a"},), others, atol=ATOL)
    assert sorted(op_types(found)) == ["MatMul", "Reshape"]


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
    "a large power of 2": (lambda x: torch.fft.rfft(x), (2, 1024), {0: "a"}),
    "a large number": (lambda x: torch.fft.rfft(x, n=1025), (2, 16), {0: "a"}),
    "another dimension": (lambda x: torch.fft.rfft(x, dim=0), (16, 3), {1: "a"}),
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
