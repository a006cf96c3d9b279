"""Keeps the boxes of each category apart without a decision on the number of boxes.

``torchvision.ops.batched_nms`` looks at the number of boxes, which depends on the data, to choose
between two ways that give the same boxes. Here, it moves the boxes of each category away from those
of the others, whatever their number, and calls ``nms`` once.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from .attributes import patched

_MODULE, _NAME = "torchvision.ops.boxes", "batched_nms"


def _kept_boxes(nms: Any) -> Any:
    """The function that calls ``nms`` once."""

    def batched_nms(
        boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float
    ) -> torch.Tensor:
        """The boxes that no better one of the same category overlaps, the best one first."""
        edges = boxes.reshape(-1)
        width = torch.cat([edges, edges.new_zeros(1)]).max() + 1  # there may be no box
        kept: torch.Tensor = nms(boxes + (idxs.to(boxes) * width)[:, None], scores, iou_threshold)
        return kept

    return batched_nms


@contextlib.contextmanager
def separate_categories() -> Iterator[None]:
    """Replaces ``batched_nms`` of torchvision in this context, where it is imported too."""
    original = getattr(sys.modules.get(_MODULE), _NAME, None)
    with contextlib.ExitStack() as stack:
        if original is not None:
            holders = [
                module
                for module in list(sys.modules.values())
                if isinstance(module, ModuleType) and vars(module).get(_NAME) is original
            ]
            replaced = _kept_boxes(vars(sys.modules[_MODULE])["nms"])
            for module in holders:
                stack.enter_context(patched(module, {_NAME: replaced}))
        yield
