"""Functions of complex numbers."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.aten.test_complex_tensors import DYNAMIC, OTHERS, X, given
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import FunctionNotFoundError, to_onnx

FUNCTIONS = {
    "logarithms": lambda z: (z.log(), z.log2(), z.log10(), z.log1p()),
    "exponentials": lambda z: (z.exp2(), z.expm1(), z.sigmoid()),
    "roots": lambda z: (z.sqrt(), (-z).sqrt(), (z + 9).rsqrt(), z.square()),
    "circular": lambda z: (z.sin(), z.cos(), z.tan()),
    "hyperbolic": lambda z: (z.sinh(), z.cosh(), z.tanh()),
    "powers": lambda z: (z**2, z**0.5, z**3, z ** (1 - 2j), (z / 4) ** z.real, 2**z, (1 + 1j) ** z),
    "signs": lambda z: (z.sgn(), (z * 0).sgn(), +z),
    "comparisons": lambda z: (z == z.conj(), z != z.conj(), z == 1, z.real == z, z != (1 + 1j)),
    "conditions": lambda z: (
        z.isfinite(),
        z.isnan(),
        z.isinf(),
        torch.complex(z.real, (z.imag > 0).to(z.real.dtype)).isreal(),
    ),
    "booleans": lambda z: (
        (z * (z.real > 0)).logical_not(),
        z.logical_and(z.real > 0),
        (z * (z.real > 0)).count_nonzero(),
        (z * (z.real > 0)).any(-1),
        z.all(),
    ),
    "norms": lambda z: (z.norm(), torch.linalg.vector_norm(z, 3, -1), z.norm(1, -1, True)),
    "products": lambda z: (
        torch.vdot(z[0, 0], z[0, 0]),
        torch.dot(z[0, 0], z[0, 1]),
        z[0] @ z[0, 0],
        torch.linalg.vecdot(z, z.flip(-1)),
        torch.addmm(z[0, :1, :1], z[0], z[0].mT, beta=2, alpha=3),
        torch.outer(z[0, 0], z[0, 1]),
        torch.addcmul(z, z, z.conj(), value=2),
    ),
    "linear": lambda z: torch.nn.functional.linear(z, z[0, :2], z[0, 0, :2]),
    "einsum": lambda z: (
        torch.einsum("abc, dbc -> ad", z, z),
        torch.einsum("abc,abc,abc->a", z, z, z),
        torch.einsum("abc->cab", z),
    ),
    "differences": lambda z: (z.diff(), torch.lerp(z, z.conj(), 0.25), torch.dist(z, z.conj())),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_dynamic_sizes(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X,), DYNAMIC, OTHERS, atol=2e-5)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_double(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X.double(),), DYNAMIC, atol=1e-11)


@pytest.mark.parametrize("x", [X, X.double()], ids=["float", "double"])
def test_deviations(x: torch.Tensor) -> None:
    """torch makes the dimensions of a variance of complex numbers static."""

    def fct(z):
        spreads = z.var(-1), z.std(), z.var((0, 2), correction=0)
        return *spreads, *torch.std_mean(z, 1), *torch.var_mean(z, unbiased=False)

    check_export(given(fct), (x,))


def test_empty_and_scalar() -> None:
    fct = given(lambda z: (z.sqrt(), z**3, z.sin(), z == 1, z.sgn()))
    check_export(fct, (X,), DYNAMIC, [(X[:0],), (X[:1, :1],)])
    check_export(given(lambda z: (z.sqrt(), z.log(), z**2.5)), (X[0, 0, 0],))


AXES = [0.0, -0.0, 1.0, -1.0, 1e-20, 1e20, -1e20, float("inf"), -float("inf")]


def test_special_values() -> None:
    """Both sides of the branch cut, what would overflow when it is squared."""
    pairs = torch.cartesian_prod(torch.tensor(AXES), torch.tensor(AXES))
    finite = pairs[pairs.isfinite().all(-1)]
    check_export(given(lambda z: (z.abs(), z.isinf(), z.isfinite(), z == z)), (pairs,))
    check_export(given(lambda z: (z.sqrt(), z.log(), z.sgn())), (finite,))


def test_zero_to_a_power() -> None:
    zeros = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, -2.0]])
    check_export(given(lambda z: (z**2, z**3, z**0, z ** (2 + 1j), z**z)), (zeros,))


def test_large_tangents() -> None:
    """No quotient of two infinities."""
    x = torch.tensor([[300.0, 1.0], [-300.0, 2.0], [1.0, 300.0], [0.5, -300.0]])
    check_export(given(lambda z: (z.tanh(), z.tan())), (x,))


WINDOW = torch.hann_window(16)
SOUND = torch.linspace(0, 60, 200).sin().reshape(2, 100)


def denoised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.stft(x, 16, 4, window=WINDOW, return_complex=True)
    return torch.istft(z * (z.abs() > 1), 16, 4, window=WINDOW), z.abs()


@pytest.mark.parametrize("dynamic", [None, ({0: "a"},), ({0: "a", 1: "b"},)])
def test_short_time_fourier(dynamic) -> None:
    others = [(SOUND[:1],), (SOUND[:1, :60],)][: len(dynamic[0]) if dynamic else 0]
    check_export(denoised, (SOUND,), dynamic, others, atol=1e-4)


@pytest.mark.parametrize("options", [{"center": False}, {"onesided": False}, {"normalized": True}])
def test_options_of_stft(options) -> None:
    def fct(x):
        z = torch.stft(x, 12, 5, window=WINDOW[:12], return_complex=True, **options)
        return torch.view_as_real(z)

    check_export(fct, (SOUND,), ({0: "a"},), [(SOUND[:1],)], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hop", [None, 5])
def test_the_usual_stft_is_one_operator_or_a_product(dtype, hop) -> None:
    window = WINDOW.to(dtype)

    def fct(x):
        z = torch.stft(x, 16, hop, window=window, center=False, return_complex=True)
        return torch.view_as_real(z)

    x, dims = SOUND.to(dtype), ({0: "a", 1: "b"},)
    onx = check_export(fct, (x,), dims, [(x[:1],), (x[:, :60],), (x[:, :16],)], atol=1e-4)
    is_product = dtype == torch.float32
    operators = ["Conv", "Reshape"] if is_product else ["STFT"]
    assert op_types(onx) == ["Unsqueeze", *operators, "Transpose"]
    onx = check_export(fct, (x[0],), ({0: "b"},), [(x[1, :33],)], atol=1e-4)
    assert ("Conv" if is_product else "STFT") in op_types(onx)


@pytest.mark.parametrize("options", [{"win_length": 10}, {"window": torch.ones(12).double()}])
def test_another_stft_is_decomposed(options) -> None:
    def fct(x):
        given = {"window": WINDOW[: options.get("win_length", 12)], **options}
        return torch.view_as_real(torch.stft(x, 12, 5, return_complex=True, **given)).float()

    assert "STFT" not in op_types(check_export(fct, (SOUND,), atol=1e-4))


def test_without_converter() -> None:
    """torch has no decomposition for real numbers of this one."""
    with pytest.raises(FunctionNotFoundError, match="acos.default' on complex tensors"):
        to_onnx(_Acos(), (X,))


class _Acos(torch.nn.Module):
    def forward(self, x):
        return torch.view_as_real(torch.view_as_complex(x).acos())
