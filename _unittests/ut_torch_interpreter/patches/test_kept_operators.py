"""Functions traced in another way during an export; test_vectorized.py has associative_scan."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Categorical, Distribution, Normal, kl_divergence
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.common.errors import ExportError

X, OTHER = torch.randn(4, 3), torch.randn(6, 3)
DENSITIES = {
    "normal": lambda x: Normal(x, x.exp()).log_prob(x + 1),
    "entropy": lambda x: Categorical(logits=x).entropy(),
    "divergence": lambda x: kl_divergence(Normal(x, 1.0), Normal(0.0, x.exp())),
}


@pytest.mark.parametrize("name", sorted(DENSITIES))
def test_distributions(name):
    check_export(DENSITIES[name], (X,), ({0: "n"},), [(OTHER,)])


@pytest.fixture
def checked_distributions(monkeypatch):
    """Arguments are checked, although dynamo stops that for the process the first time it runs."""
    monkeypatch.setattr(Distribution, "_validate_args", True)


@pytest.mark.usefixtures("checked_distributions")
def test_distributions_check_their_arguments_after_the_export():
    check_export(lambda x: Normal(x, x.exp()).mean, (X,))
    assert Distribution._validate_args
    with pytest.raises(ValueError, match="parameter scale"):
        Normal(X, -torch.ones_like(X))


@pytest.mark.usefixtures("checked_distributions")
def test_distributions_are_not_checked_after_the_export_if_they_were_not_before():
    Distribution.set_default_validate_args(False)
    check_export(lambda x: Normal(x, x.exp()).mean, (X,))
    assert not Distribution._validate_args


def test_masks_are_not_read():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    n = {1: "n"}
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
    other = torch.zeros(7, 7)
    other[1:, 3] = -torch.inf
    check_export(
        lambda x, mask: encoder(x, mask=mask),
        (torch.randn(2, 5, 8), causal),
        (n, {0: "n", 1: "n"}),
        [(torch.randn(2, 7, 8), other)],
        atol=1e-5,
    )


def test_a_mask_said_causal_is_used():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
    x = torch.randn(2, 5, 8)
    check_export(lambda x: layer(x, src_mask=causal, is_causal=True), (x,), atol=1e-5)


@pytest.mark.parametrize("scale", [lambda n: n**-0.5, lambda n: 1 / math.sqrt(n), lambda n: n])
def test_the_scale_of_an_attention_is_an_expression(scale):
    attention = torch.nn.functional.scaled_dot_product_attention

    def model(x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=scale(x.shape[2]))

    others = [(torch.randn(1, 2, 9, 4),), (torch.randn(3, 2, 2, 4),)]
    check_export(model, (torch.randn(2, 2, 5, 4),), ({0: "b", 2: "n"},), others)
    assert torch.nn.functional.scaled_dot_product_attention is attention


class Segments(torch.nn.Module):
    """The attention of transformers inside each segment of a sequence."""

    def __init__(self, is_causal):
        super().__init__()
        self.is_causal = is_causal

    def forward(self, x, ends):
        attend = pytest.importorskip("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS["sdpa"]
        segments = x.split((ends[1:] - ends[:-1]).tolist(), 2)
        return torch.cat([attend(self, q, q, q, attention_mask=None)[0] for q in segments], 1)


def test_attention_of_transformers_inside_segments():
    names = pytest.importorskip("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
    before = names["sdpa"]
    x, other = torch.randn(1, 2, 7, 4), torch.randn(1, 2, 5, 4)
    ends, others = torch.tensor([0, 3, 7]), torch.tensor([0, 4, 5])
    check_export(Segments(False), (x, ends), ({2: "length"}, {}), [(other, others)])
    assert names["sdpa"] is before
    with pytest.raises(ExportError, match="data-dependent"):
        check_export(Segments(True), (x, ends), ({2: "length"}, {}))
