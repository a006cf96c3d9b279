"""Names of complex tensors. ONNX has no operator on them: a real tensor holds both parts.

It has one more dimension, the last one, of size 2: the real part, then the imaginary one, as
``torch.view_as_real`` and the operator DFT write it. Converters of complex tensors have names that
start with :data:`COMPLEX`; they recognize complex operands by the class of their names.
"""

from __future__ import annotations

from typing import Any

import torch

from ..common.types import to_onnx_type
from ..inputs.dynamic_shapes import DimensionNamer
from .graph_writer import Shape

#: prefix of the name of a converter that reads or returns a complex tensor
COMPLEX = "complex."


class Complex(str):
    """Name of the real tensor that holds a complex one."""

    __slots__ = ()


def is_complex(fake: Any) -> bool:
    """Whether a fake value is a complex tensor."""
    return isinstance(fake, torch.Tensor) and fake.is_complex()


def real_tensor(value: torch.Tensor) -> torch.Tensor:
    """The tensor stored in the model: the tensor itself, or both parts of a complex one."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def real_facts(namer: DimensionNamer, fake: torch.Tensor) -> tuple[int, Shape]:
    """Element type and shape of the tensor stored in the model.

    :param namer: prints the dimensions
    :param fake: fake tensor
    """
    shape = namer.shape(fake.shape)
    if fake.is_complex():
        return to_onnx_type(fake.dtype.to_real()), (*shape, 2)
    return to_onnx_type(fake.dtype), shape
