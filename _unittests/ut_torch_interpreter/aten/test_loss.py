"""Losses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
X, Y = torch.randn(4, 3), torch.randn(4, 3)
P, T = torch.rand(4, 3), (torch.rand(4, 3) > 0.5).float()
CLASSES = torch.tensor([0, 2, 1, 1])
DYNAMIC = ({0: "a"}, {0: "a"})
REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
def test_regression(name, reduction):
    fct = getattr(F, name)
    check_export(lambda x, y: fct(x, y, reduction=reduction), (X, Y), DYNAMIC, [(X[:2], Y[:2])])


def test_smooth_l1_beta():
    check_export(lambda x, y: F.smooth_l1_loss(x, y, beta=0.3), (X, Y))
    check_export(lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), (X, Y))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
def test_classification(reduction, weighted):
    weight = torch.tensor([0.5, 1.0, 2.0]) if weighted else None
    others = [(X[:2], CLASSES[:2])]
    check_export(
        lambda x, y: F.cross_entropy(x, y, weight, reduction=reduction),
        (X, CLASSES),
        DYNAMIC,
        others,
    )
    check_export(
        lambda x, y: F.nll_loss(x, y, weight, reduction=reduction), (X, CLASSES), DYNAMIC, others
    )


def test_ignored_classes():
    check_export(lambda x, y: F.cross_entropy(x, y, ignore_index=1), (X, CLASSES))
    check_export(F.cross_entropy, (X, torch.tensor([0, -100, 1, 1])))


def test_one_sample_and_images():
    check_export(F.cross_entropy, (X[0], CLASSES[0]))
    check_export(F.cross_entropy, (torch.randn(2, 3, 4), torch.randint(0, 3, (2, 4))))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary(reduction):
    check_export(lambda x, y: F.binary_cross_entropy(x, y, reduction=reduction), (P, T), DYNAMIC)
    check_export(
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=reduction), (X, T), DYNAMIC
    )


def test_binary_weights():
    weight = torch.tensor([0.5, 1.0, 2.0])
    check_export(lambda x, y: F.binary_cross_entropy(x, y, weight), (P, T))
    check_export(
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, weight, pos_weight=weight), (X, T)
    )


def test_mean_of_an_empty_loss():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    shapes = ({0: "a"}, {0: "a"})
    check_export(torch.nn.functional.l1_loss, (x, y), shapes, [(x[:0], y[:0])])
