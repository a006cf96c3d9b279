"""Modules that are not ready for inference."""

from __future__ import annotations

import torch

#: modules that compute something else while they are trained
_BATCH = torch.nn.modules.batchnorm._BatchNorm
_DROPOUT = torch.nn.modules.dropout._DropoutNd


def training_message(mod: torch.nn.Module) -> str:
    """A warning about the modules in training mode, empty if there is no difference.

    :param mod: a model

    >>> training_message(torch.nn.Linear(2, 2))
    ''
    >>> training_message(torch.nn.Sequential(torch.nn.Dropout(), torch.nn.ReLU()))[:51]
    "The model is in training mode: '0' (Dropout). Its r"
    """
    found = [(name, m) for name, m in mod.named_modules() if m.training and _is_different(m)]
    if not found:
        return ""
    listed = ", ".join(f"{name!r} ({type(m).__name__})" for name, m in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"The model is in training mode: {listed}{more}. Its results are random, or depend on the "
        f"other rows of the batch: call eval() before, unless you want that."
    )


def _is_different(module: torch.nn.Module) -> bool:
    """Whether the results of a module are not those of its evaluation mode."""
    if isinstance(module, _DROPOUT):
        return bool(module.p > 0)
    if isinstance(module, torch.nn.RNNBase | torch.nn.MultiheadAttention):
        return bool(module.dropout > 0)
    return isinstance(module, _BATCH | torch.nn.RReLU)
