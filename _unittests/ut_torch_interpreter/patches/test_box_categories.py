"""The boxes of each category are kept apart, whatever their number."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import to_onnx
from torch_interpreter.patches.box_categories import separate_categories


def _nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        low = torch.maximum(dets[i, :2], dets[kept, :2])
        common = (torch.minimum(dets[i, 2:], dets[kept, 2:]) - low).clamp(min=0).prod(1)
        areas = (dets[:, 2:] - dets[:, :2]).prod(1)
        if bool((common <= iou_threshold * (areas[i] + areas[kept] - common)).all()):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _shape(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


@pytest.fixture
def boxes(monkeypatch):
    """A module with the name and the decisions of the one of torchvision."""
    if not hasattr(torch.ops.torchvision, "nms"):
        torch.library.custom_op("torchvision::nms", _nms, mutates_args=()).register_fake(_shape)
    module = ModuleType("torchvision.ops.boxes")

    def batched_nms(boxes, scores, idxs, iou_threshold):
        if boxes.numel() > 60:
            each = [torch.where(idxs == category)[0] for category in torch.unique(idxs)]
            kept = [i[module.nms(boxes[i], scores[i], iou_threshold)] for i in each]
            chosen = torch.cat(kept)
            return chosen[scores[chosen].argsort(descending=True)]
        if boxes.numel() == 0:
            return torch.empty(0, dtype=torch.int64)
        offsets = idxs.to(boxes) * (boxes.max() + 1)
        return module.nms(boxes + offsets[:, None], scores, iou_threshold)

    module.nms, module.batched_nms = torch.ops.torchvision.nms, batched_nms
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


class Detector(torch.nn.Module):
    """Keeps the boxes with a high score, then those no better one of their category overlaps."""

    def __init__(self, boxes):
        super().__init__()
        self.boxes = boxes

    def forward(self, corners, scores, categories):
        high = torch.where(scores > 0.3)[0]
        corners, scores, categories = corners[high], scores[high], categories[high]
        kept = self.boxes.batched_nms(corners, scores, categories, 0.4)[:20]
        return corners[kept], scores[kept], categories[kept]


def arguments(n, scale=1.0):
    torch.manual_seed(n)
    low = torch.rand(n, 2) * 20
    corners = torch.cat([low, low + torch.rand(n, 2) * 20 + 1], dim=1)
    return corners, torch.rand(n) * scale, torch.randint(0, 3, (n,))


def test_any_number_of_boxes(boxes):
    """The arguments have no box, few or many: each of the ways of torchvision is taken."""
    others = [arguments(n) for n in (2, 60, 0)] + [arguments(12, scale=0.1)]
    dims = ({0: "n"},) * 3
    onx = check_export(Detector(boxes), arguments(16), dims, others)
    assert op_types(onx).count("NonMaxSuppression") == 1


def test_the_function_comes_back(boxes):
    holder = ModuleType("holder_of_boxes")
    original = holder.batched_nms = boxes.batched_nms
    sys.modules[holder.__name__] = holder
    try:
        with separate_categories():
            assert boxes.batched_nms is holder.batched_nms is not original
        assert boxes.batched_nms is holder.batched_nms is original
    finally:
        del sys.modules[holder.__name__]


def test_without_torchvision(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchvision.ops.boxes", raising=False)
    onx = to_onnx(torch.nn.ReLU(), (torch.ones(2),))
    assert op_types(onx) == ["Relu"]
