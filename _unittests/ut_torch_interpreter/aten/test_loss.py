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


IGNORED = torch.tensor([0, -100, 2, 1])
WEIGHTS = torch.tensor([0.5, 1.0, 2.0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["equal", "weighted"])
def test_label_smoothing(reduction, weight):
    def loss(x, y):
        return F.cross_entropy(x, y, weight, reduction=reduction, label_smoothing=0.2)

    others = [(X[:2], CLASSES[:2]), (X, IGNORED), (X[:2], IGNORED[1:2].repeat(2))]
    check_export(loss, (X, CLASSES), DYNAMIC, others)
    check_export(loss, (X[0], CLASSES[0]))
    classes = IGNORED.reshape(4, 1).repeat(1, 5)
    check_export(loss, (torch.randn(4, 3, 5), classes))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_probabilities_as_target(reduction, weight, smoothing):
    def loss(x, y):
        return F.cross_entropy(x, y, weight, reduction=reduction, label_smoothing=smoothing)

    check_export(loss, (X, Y.softmax(1)), DYNAMIC, [(X[:2], Y[:2]), (X[:0], Y[:0])])
    check_export(loss, (X[0], Y[0].softmax(0)))
    images = torch.randn(2, 3, 4, 5)
    dynamic = ({0: "a", 3: "b"}, {0: "a", 3: "b"})
    other = torch.randn(1, 3, 4, 2)
    check_export(loss, (images, images.softmax(1)), dynamic, [(other, other.softmax(1))])


def test_label_smoothing_with_a_dynamic_number_of_classes():
    def loss(x, y):
        return F.cross_entropy(x, y, label_smoothing=0.2)

    dynamic = ({0: "a", 1: "c"}, {0: "a"})
    check_export(loss, (X, CLASSES), dynamic, [(torch.randn(3, 6), torch.tensor([5, 0, 3]))])


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


SIGNS = torch.tensor([1.0, -1.0, -1.0, 1.0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_margin_ranking_loss(reduction, margin):
    """torch decomposes it: -y * (a - b) + margin, not below 0."""
    loss = torch.nn.MarginRankingLoss(margin, reduction=reduction)
    args = X[:, 0], Y[:, 0], SIGNS
    others = [tuple(v[:2] for v in args), tuple(-v for v in args)]
    check_export(lambda a, b, y: loss(a, b, y), args, ({0: "a"},) * 3, others)
    check_export(lambda a, b, y: loss(a, b, y), (X, Y, SIGNS[:, None]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("margin", [1.0, 0.2])
def test_hinge_embedding_loss(reduction, margin):
    """torch decomposes it: x where y is 1, margin - x, not below 0, where it is -1."""
    loss = torch.nn.HingeEmbeddingLoss(margin, reduction=reduction)
    signs = torch.where(T > 0, 1.0, -1.0)
    others = [(X[:2], signs[:2]), (-X, signs), (X, -signs)]
    check_export(lambda x, y: loss(x, y), (X, signs), DYNAMIC, others)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin_loss(reduction):
    """Indices after the first -1 are not targets, class 0 included."""
    target = torch.tensor([[0, 2, -1], [1, -1, 2], [-1, 0, 1], [2, 1, 0]])

    def loss(x, y):
        return F.multilabel_margin_loss(x, y, reduction=reduction)

    check_export(loss, (X, target), DYNAMIC, [(X[:2], target[1:3])])
    if reduction != "none":
        # without batch, torch.export and eager do not agree on the shape otherwise
        check_export(loss, (X[0], target[0]))
