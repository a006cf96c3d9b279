"""Fourier transforms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.linspace(-2.0, 3.0, 72).cos().reshape(3, 4, 6)
DYNAMIC = ({0: "a"},)
ATOL = 2e-5


def parts(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj())


def check(fct: Any, x: torch.Tensor = X, dynamic: Any = DYNAMIC, atol: float = ATOL) -> Any:
    return check_export(fct, (x,), dynamic, [(x[:2],)], atol=atol)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"])
def test_complex(name: str, norm: str | None) -> None:
    def fct(x):
        z = torch.polar(x, x)
        return parts(getattr(torch.fft, name)(z, norm=norm))

    # the first dimension is dynamic
    assert ("DFT" in op_types(check(fct))) == name.endswith("fftn")


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["rfft", "rfft2", "rfftn"])
def test_half(name: str, norm: str | None) -> None:
    forward, backward = getattr(torch.fft, name), getattr(torch.fft, f"i{name}")
    check(lambda x: parts(forward(x, norm=norm)))
    check(lambda x: backward(forward(x, norm=norm), norm=norm))


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_number_of_elements(n: int) -> None:
    check(lambda x: parts(torch.fft.fft(x, n=n)))
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x, n=n), n=n))
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x), n=n, norm="ortho"))
    check(lambda x: parts(torch.fft.fftn(x, s=(3, n))))


def test_a_dimension_that_is_not_known() -> None:
    def fct(x):
        z = torch.fft.fft(x, dim=0, norm="ortho")
        return parts(z), parts(torch.fft.fft(x, n=2, dim=0)), parts(torch.fft.rfft(x, dim=0))

    check(fct)
    check(lambda x: parts(torch.fft.fft(x, n=5, dim=0)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.int32])
def test_types(dtype: torch.dtype) -> None:
    atol = 1e-10 if dtype == torch.float64 else 1e-4
    x = (X * 9).to(dtype)
    check(lambda x: parts(torch.fft.fft(x)), x, atol=atol)
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x)), x, atol=atol)


@pytest.mark.parametrize("axes", [None, 0, (0, -1), (1, 2)])
def test_shifts(axes: Any) -> None:
    def fct(x):
        z = torch.polar(x, x)
        return parts(torch.fft.fftshift(z, axes)), parts(torch.fft.ifftshift(z, axes))

    check(fct)
    check(fct, X[:, :3, :5])


def test_fourier_layer() -> None:
    check(lambda x: torch.fft.fftn(x, dim=(1, 2)).real)


def test_filter() -> None:
    weight = torch.fft.rfft(torch.arange(6.0))
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x) * weight, n=6), atol=1e-4)


@pytest.mark.parametrize("opset", [17, 18, 20, 21])
def test_opsets(opset: int) -> None:
    fct = lambda x: parts(torch.fft.fft(x, dim=1))  # noqa: E731
    check_export(fct, (X,), DYNAMIC, [(X[:2],)], atol=ATOL, target_opset=opset)


def test_after_decompositions() -> None:
    def fct(x):
        z = torch.fft.fft2(torch.fft.rfft(x).conj(), dim=(0, 1))
        return torch.fft.irfft(z), parts(torch.fft.ifft(z)), parts(torch.fft.fft(x))

    check_export(fct, (X,), atol=1e-4, export_options="nostrict-dec")


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("suffix", ["", "2", "n"])
def test_hermitian(suffix: str, norm: str | None) -> None:
    forward, backward = (getattr(torch.fft, f"{name}{suffix}") for name in ("hfft", "ihfft"))
    check(lambda x: forward(torch.polar(x, x), norm=norm), atol=1e-4)
    check(lambda x: parts(backward(x, norm=norm)))


@pytest.mark.parametrize("name", ["irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"])
def test_inverse_of_real_numbers(name: str) -> None:
    check(getattr(torch.fft, name), atol=1e-4)
    check(lambda x: getattr(torch.fft, name)(x > 0), atol=1e-4)


def test_a_size_that_is_not_known() -> None:
    """The result of irfft2 has the sizes of the argument of rfft2, odd or even."""

    def fct(x):
        return torch.fft.irfft2(torch.fft.rfft2(x), s=(x.shape[-2], x.shape[-1])), parts(
            torch.fft.fft(x, n=x.shape[1], dim=0)
        )

    others = [(X[:2, :3, :5],), (X[:, :2],), (X[:1, :, :3],)]
    check_export(fct, (X,), ({0: "a", 1: "b", 2: "c"},), others, atol=ATOL)


W, LONG = torch.hann_window(32), torch.randn(2, 160)
RATE = {"n_fft": 32, "hop_length": 8}
SIGNALS = {
    "usual": (RATE, {}),
    "length": (RATE, {"length": lambda x: x.shape[-1]}),
    "shorter": (RATE, {"length": lambda x: x.shape[-1] // 2}),
    "longer": (RATE, {"length": lambda x: x.shape[-1] + 50}),
    "long step": ({"n_fft": 32, "hop_length": 20}, {"length": lambda x: x.shape[-1]}),
    "known length": (RATE, {"length": lambda x: 120}),
    "default step": ({"n_fft": 32}, {}),
    "odd": ({"n_fft": 31, "hop_length": 7, "window": W[:31] + 0.1}, {}),
    "short window": ({**RATE, "win_length": 20, "window": W[:20] + 0.1, "normalized": True}, {}),
    "not centered": ({**RATE, "window": torch.ones(32), "center": False}, {}),
    "no window": ({**RATE, "window": None}, {}),
}


@pytest.mark.filterwarnings("ignore:The length of signal is shorter:UserWarning")
@pytest.mark.filterwarnings("ignore:A window was not provided:UserWarning")
@pytest.mark.parametrize("name", sorted(SIGNALS))
def test_signal_of_a_spectrum(name: str) -> None:
    both, options = SIGNALS[name]
    both = {"window": W, **both}

    def fct(x):
        z = torch.stft(x, **both, return_complex=True)
        return torch.istft(input=z * 2, **both, **{key: value(x) for key, value in options.items()})

    others = [(torch.randn(*shape),) for shape in ((1, 100), (3, 133), (1, 401))]
    onx = check_export(fct, (LONG,), ({0: "a", 1: "t"},), others, atol=1e-4, options="default")
    assert op_types(onx).count("Col2Im") == 2
    # the rewrites prove that no zero is needed, but for these; the spectrum has a Pad too
    padded = name in {"longer", "long step", "known length"}
    assert op_types(onx).count("Pad") == padded + (name != "not centered")


def test_signal_without_rows() -> None:
    def fct(x):
        return torch.stft(x, **RATE, window=W, return_complex=True).istft(32, 8, window=W)

    check_export(fct, (LONG[0],), ({0: "t"},), [(torch.randn(133),)], atol=1e-4)


def test_other_signals_are_left_to_torch() -> None:
    w, rate = W.double(), {**RATE, "return_complex": True}

    def fct(x):
        return torch.istft(torch.stft(x.double(), **rate, window=w), **RATE, window=w)

    def whole(x):
        z = torch.stft(x, **rate, window=W, onesided=False)
        return torch.istft(z, **RATE, window=W, onesided=False)

    for function in (fct, whole):
        onx = check_export(function, (LONG,), ({0: "a"},), [(LONG[:1],)], atol=1e-4)
        assert "Col2Im" not in op_types(onx)
