"""A mixture of experts that loops on the experts some tokens chose."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import ExportError


class Experts(torch.nn.Module):
    """Adds to each token the results of the two experts it chose, as transformers does."""

    def __init__(self, form="tensor", offset=0.0, classes=5):
        super().__init__()
        self.router = torch.nn.Linear(4, 5)
        self.weight = torch.nn.Parameter(torch.randn(5, 4, 4))
        self.form, self.offset, self.classes = form, offset, classes

    def forward(self, x):
        scores, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        mask = torch.nn.functional.one_hot(chosen, self.classes).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0)
        result = torch.zeros_like(x)
        for expert in torch.nonzero(hit) if self.form == "function" else hit.nonzero():
            e = int(expert.item()) if self.form == "number" else expert[0]
            if e < 0:
                continue
            place, token = torch.where(mask[e])
            if self.form == "number" and token.numel() == 0:
                continue
            found = x[token] @ self.weight[e] * scores[token, place, None]
            result.index_add_(0, token, found)
            result = result + self.offset
        return result


@pytest.mark.parametrize("form", ["tensor", "number", "function"])
def test_experts_that_some_tokens_chose(form):
    torch.manual_seed(0)
    others = [(torch.randn(n, 4),) for n in (1, 2, 40)]
    onx = check_export(Experts(form).eval(), (torch.randn(7, 4),), ({0: "n"},), others)
    assert sum(n.op_type == "NonZero" for n in onx.graph.node) == 5


def test_a_class_without_expert():
    """No token can choose it: the model refuses it."""
    torch.manual_seed(0)
    model = Experts(classes=6).eval()
    check_export(model, (torch.randn(7, 4),), ({0: "n"},), [(torch.randn(30, 4),)])
    with pytest.raises(ExportError, match="depends on the content of a tensor"):
        to_onnx(Experts(classes=7).eval(), (torch.randn(7, 4),), dynamic_shapes=({0: "n"},))


def test_a_loop_whose_number_of_rounds_matters():
    """The rounds on the experts that nobody chose would add something."""
    torch.manual_seed(0)
    with pytest.raises(ExportError, match="depends on the content of a tensor"):
        to_onnx(Experts(offset=1.0).eval(), (torch.randn(7, 4),), dynamic_shapes=({0: "n"},))


def test_a_loop_on_all_positions():
    """Nothing tells what a round on a position that is not selected would do."""

    class Sums(torch.nn.Module):
        def forward(self, x):
            total = x.sum()
            for i in (x.sum(1) > -1e9).nonzero():
                total = total + x[i[0]].sum()
            return total

    with pytest.raises(ExportError, match="depends on the content of a tensor"):
        to_onnx(Sums(), (torch.ones(3, 4),))
