"""Traces of TorchScript: the operators of one run, exported with the arguments of the model.

TorchScript only takes tensors by position. Those of the arguments are given in order, the other
values are constants, and the arguments and results get their structure back for torch.export.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..patches.recurrent import keep_recurrent_layers

pytree = torch.utils._pytree
#: the place of a tensor among the results
_TENSOR = object()


def jit_trace(
    mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> torch.nn.Module:
    """A module made of the operators that run for these arguments, whose sizes are static.

    :param mod: module
    :param args: positional arguments
    :param kwargs: named arguments
    """
    from torch._export.converter import TS2EPConverter

    leaves, spec = pytree.tree_flatten((args, dict(kwargs)))
    tensors = tuple(v for v in leaves if isinstance(v, torch.Tensor))
    forward, results = mod.forward, _Results()

    def on_tensors(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left = iter(given)
        values = [next(left) if isinstance(v, torch.Tensor) else v for v in leaves]
        positional, named = pytree.tree_unflatten(values, spec)
        return results.split(forward(*positional, **named))

    # without a name, the arguments take those of results
    names = (f"argument{i}" for i in range(len(tensors)))
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    vars(on_tensors)["__signature__"] = inspect.Signature(parameters)
    trace: Callable[..., torch.jit.ScriptModule] = torch.jit.trace
    with _forward(mod, on_tensors), keep_recurrent_layers():
        # the graph is compared with the model, a second trace may take another branch
        traced = trace(mod, tensors, strict=False, check_trace=False)
    program = TS2EPConverter(traced, tensors, {}).convert()
    return _Traced(program.module(), forward, results)


@contextlib.contextmanager
def _forward(mod: torch.nn.Module, function: Callable[..., Any]) -> Iterator[None]:
    """Gives another ``forward`` to a module in this context: its weights keep their names."""
    own = mod.__dict__.get("forward")
    mod.__dict__["forward"] = function
    try:
        yield
    finally:
        del mod.__dict__["forward"]
        if own is not None:
            mod.__dict__["forward"] = own


class _Results:
    """The structure of the results, and those that are no tensor."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.spec: Any = None

    def split(self, result: Any) -> tuple[torch.Tensor, ...]:
        """The tensors of a result."""
        leaves, self.spec = pytree.tree_flatten(result)
        self.leaves = [_TENSOR if isinstance(v, torch.Tensor) else v for v in leaves]
        return tuple(v for v in leaves if isinstance(v, torch.Tensor))

    def join(self, tensors: Iterator[torch.Tensor]) -> Any:
        """The result made again."""
        leaves = [next(tensors) if v is _TENSOR else v for v in self.leaves]
        return pytree.tree_unflatten(leaves, self.spec)


class _Traced(torch.nn.Module):
    """The operators of a trace, with the weights and the signature of the model."""

    def __init__(
        self, program: torch.nn.Module, forward: Callable[..., Any], results: _Results
    ) -> None:
        super().__init__()
        for name in ("_modules", "_parameters", "_buffers"):
            vars(self)[name] = getattr(program, name)  # torch.export replaces them

        @functools.wraps(forward)
        def joined(*args: Any, **kwargs: Any) -> Any:
            leaves = pytree.tree_leaves((args, kwargs))
            tensors = program(*(v for v in leaves if isinstance(v, torch.Tensor)))
            return results.join(iter(tensors))

        self.forward = joined
