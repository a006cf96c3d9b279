"""Complex tensors, held by both parts of their numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, op_types

from torch_interpreter import FunctionNotFoundError, to_onnx
from torch_interpreter.aten import find_converter
from torch_interpreter.writing.complex_names import COMPLEX, Complex, is_complex, real_tensor
from torch_interpreter.writing.registry import registered_names

REAL = torch.view_as_real
#: two parts a row, which is what the functions below make numbers of
X = torch.linspace(-2.0, 3.0, 48).reshape(2, 4, 3, 2)
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(X[:1, :3] + 0.5,), (X[:, :2],)]


def given(fct: Any) -> Any:
    """The function on complex numbers, given and returned as both parts."""

    def on_parts(x: torch.Tensor) -> Any:
        result = fct(torch.view_as_complex(x))
        flat = result if isinstance(result, tuple) else (result,)
        return tuple(REAL(r.resolve_conj()) if r.is_complex() else r for r in flat)

    return on_parts


FUNCTIONS = {
    "a number": lambda z: (z * 2.5 + 3 - (1 + 2j), 3 - z, z / 4),
    "a complex number": lambda z: (z * (1 - 2j), z / (1 + 2j), (2 - 1j) / (z + 7)),
    "a real tensor": lambda z: (z * z.real, z.real - z, z / (z.imag + 9), z.imag / (z + 9)),
    "a real tensor of lower rank": lambda z: z[:, :, 0].real + z[0, 0, :2, None, None],
    "two complex tensors": lambda z: (z * z.conj() * z, z / (z * z + 40), z + z.conj()),
    "alpha": lambda z: (torch.sub(z, z.conj(), alpha=2), torch.add(z.real, z, alpha=3)),
    "a real tensor and i": lambda z: z.real * 1j,
    "parts": lambda z: (z.real, z.imag, z.abs(), z.angle()),
    "one at a time": lambda z: (-z, z.exp(), (z + 9).reciprocal(), z.conj().resolve_conj()),
    "polar": lambda z: (torch.polar(z.real, z.imag), torch.complex(z.real, z.imag[:, :1])),
    "matrices": lambda z: z @ z.transpose(-1, -2),
    "sums": lambda z: (z.sum(-1), z.sum((0, -1)), z.mean(-1, keepdim=True), z.sum(), z.cumsum(-1)),
    "axes": lambda z: (
        z.unsqueeze(-1).squeeze(-1).permute(1, 0, -1).flip(-1),
        z.transpose(0, -1)[..., :2].select(-1, 0),
        torch.cat([z, z.conj()], -1),
        torch.stack([z, -z], -1).flatten(1, -1),
    ),
    "pieces": lambda z: (*z.split(2, -1), *z.unbind(-1), *z.split([1, 2], -1), *z.chunk(3, -1)),
    "sizes": lambda z: (
        z.reshape(z.shape[0], -1),
        z.unsqueeze(0).expand(2, -1, -1, -1),
        z.repeat(1, 2, 1),
        z.reshape(-1).view(-1, 3),
    ),
    "indices": lambda z: (z[:, :, torch.tensor([2, 0])], z.index_select(-1, torch.tensor([1]))),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_dynamic_sizes(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X,), DYNAMIC, OTHERS, atol=1e-5)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_double(name: str) -> None:
    check_export(given(FUNCTIONS[name]), (X.double(),), DYNAMIC, atol=1e-12)


def test_precisions() -> None:
    check_export(given(lambda z: z.to(torch.complex128) * 2), (X,), DYNAMIC, OTHERS)
    check_export(given(lambda z: z.to(torch.complex64) * 2), (X.double(),), DYNAMIC, atol=1e-6)
    check_export(given(lambda z: z.real.to(torch.complex128)), (X,), DYNAMIC, OTHERS)


def test_empty_and_one() -> None:
    check_export(given(FUNCTIONS["two complex tensors"]), (X,), DYNAMIC, [(X[:1],), (X[:, :0],)])
    check_export(given(lambda z: z * z), (X[0, 0, 0],), atol=1e-6)


class Rotary(torch.nn.Module):
    """Rotary embeddings as Llama and DeepSeek-V2 write them, the angles are a complex weight."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(8.0), torch.tensor([1.0, 0.3, 0.1]))
        self.register_buffer("angles", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return REAL(pairs * self.angles[: x.shape[1]]).flatten(-2).type_as(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rotary_embeddings(dtype: torch.dtype) -> None:
    x = X.reshape(2, 4, 6).to(dtype)
    atol = 1e-5 if dtype == torch.float32 else 1e-2
    onx = check_export(Rotary(), (x,), ({0: "a", 1: "b"},), [(x[:1, :2],)], atol=atol)
    assert {"angles"} <= {i.name for i in onx.graph.initializer}
    assert "MatMul" not in op_types(onx)


class Layer(torch.nn.Module):
    """Reads and returns complex tensors."""

    def forward(self, z):
        return z * torch.polar(z.real, z.imag)


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(), Layer()

    def forward(self, x):
        return REAL(self.second(self.first(torch.view_as_complex(x))))


def test_local_functions_exchange_complex_tensors() -> None:
    onx = check_export(Layers(), (X,), DYNAMIC, OTHERS, atol=1e-3, export_modules_as_functions=True)
    assert "Layer" in {f.name for f in onx.functions}


def test_a_branch_does_not_read_complex_tensors() -> None:
    def fct(x):
        z = torch.complex(x, x)
        return torch.cond(x.sum() > 0, lambda z: z.abs() * 2, lambda z: z.abs() * 3, (z,))

    with pytest.raises(FunctionNotFoundError, match="cond' on complex tensors"):
        to_onnx(Fct1(fct), (X,))


def test_names() -> None:
    z = torch.view_as_complex(X)
    assert is_complex(z) and not is_complex(X) and not is_complex(None)
    assert torch.equal(real_tensor(z.conj())[..., 1], -X[..., 1])
    assert real_tensor(X) is X
    assert Complex("z") == "z"
    names = [n for n in registered_names() if n.startswith(COMPLEX)]
    assert len(names) > 60
    assert find_converter("complex.aten.acos.default") is None
