"""VirtualTensor: the name, type, shape and device of a tensor without content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dims import Shape


@dataclass(frozen=True)
class VirtualTensor:
    """Name, type, shape and device of a tensor, to build a graph without any data.

    :param name: its name
    :param dtype: element type (`TensorProto.DataType`)
    :param shape: dimensions, int or expressions
    :param device: where it lives
    """

    name: str
    dtype: int
    shape: Shape
    device: Any = None
