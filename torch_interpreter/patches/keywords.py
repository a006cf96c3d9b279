"""Names the arguments ``**kwargs`` receives. torch.export gives them no dynamic dimension."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterable, Iterator
from inspect import Parameter
from typing import Any

import torch


@contextlib.contextmanager
def name_keywords(mod: torch.nn.Module, names: Iterable[str]) -> Iterator[None]:
    """Makes the signature of ``forward`` name the arguments ``**kwargs`` receives in this context.

    A decorator that renames an argument hides its name. The decorator of transformers does so for
    ``past_key_values`` since 5.24.

    :param mod: the model, its ``forward`` is replaced and restored
    :param names: names of the arguments given by name

    >>> import torch
    >>> class Scaled(torch.nn.Module):
    ...     def forward(self, x, **kwargs):
    ...         return x * kwargs["scale"]
    >>> model = Scaled()
    >>> with name_keywords(model, ["x", "scale"]):
    ...     print(inspect.signature(model.forward))
    (x, *, scale, **kwargs)
    >>> print(inspect.signature(model.forward))
    (x, **kwargs)
    """
    forward, own = mod.forward, mod.__dict__.get("forward")
    signature = inspect.signature(forward)
    hidden = [name for name in names if name not in signature.parameters]
    if not hidden:
        yield
        return

    @functools.wraps(forward)
    def named(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    vars(named)["__signature__"] = _with_names(signature, hidden)
    mod.__dict__["forward"] = named
    try:
        yield
    finally:
        if own is None:
            del mod.__dict__["forward"]
        else:
            mod.__dict__["forward"] = own


def _with_names(signature: inspect.Signature, names: Iterable[str]) -> inspect.Signature:
    """A signature with more keyword arguments, before ``**kwargs``."""
    kept = list(signature.parameters.values())
    stars = [p for p in kept if p.kind is Parameter.VAR_KEYWORD]
    kept = [p for p in kept if p.kind is not Parameter.VAR_KEYWORD]
    added = [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
    return signature.replace(parameters=[*kept, *added, *stars])
