"""Replaces results without elements by constants, whatever onnxruntime would check."""

from __future__ import annotations

from typing import Any

import torch


def empty_results(node: torch.fx.Node, fake: Any) -> list[torch.Tensor] | torch.Tensor | None:
    """The results of an operator when torch knows that all of them are empty.

    :param node: the node, which must have no side effect
    :param fake: its fake tensors
    :return: as many tensors, None if one may have an element
    """
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    fakes = list(fake) if isinstance(fake, list | tuple) else [fake]
    if not fakes or not all(_is_empty(f) for f in fakes):
        return None
    constants = [torch.empty(tuple(f.shape), dtype=f.dtype) for f in fakes]
    return constants if isinstance(fake, list | tuple) else constants[0]


def _is_empty(fake: Any) -> bool:
    if not isinstance(fake, torch.Tensor) or fake.is_complex() or fake.is_sparse:
        return False
    sizes = list(fake.shape)
    return all(isinstance(size, int) for size in sizes) and 0 in sizes
