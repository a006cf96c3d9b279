"""What torch does in another way during an export, see test_vectorized.py for associative_scan."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, Distribution, Normal, kl_divergence
from ut_torch_interpreter.export_checks import check_export

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
