"""Decides with the content of the buffers of a model, which is known when it is exported.

torch.export gives no content to the buffers: ``if self.rates[i] > 0`` depends on the data for it.
The ONNX model holds the values of the buffers, the decision is always the same.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..checking.validation import clone_arguments
from ..patches.attributes import patched
from ..patches.fake_tensors import has_no_data

#: largest number of elements of the buffers whose content is known
_ELEMENTS = 1024
_TRACE: Any = importlib.import_module("torch.export._trace")
_NAME = "_fakify_params_buffers"
pytree = torch.utils._pytree
Export = Callable[[], torch.export.ExportedProgram]


def decide_with_buffers(
    export: Export, mod: torch.nn.Module, given: tuple[tuple[Any, ...], dict[str, Any]]
) -> torch.export.ExportedProgram:
    """Exports a model again with the content of its buffers, if a decision depends on the data.

    The buffers that the model changes are not among them.

    :param export: exports the model
    :param mod: the model
    :param given: positional and named arguments
    :raises GuardOnDataDependentSymNode: a decision depends on something else
    """
    try:
        return export()
    except Exception as e:
        if not is_undecided(e) or not has_data(mod, given):
            raise
        names = _unchanged_buffers(mod, given)
        if not names:
            raise
        with _known_buffers(names):
            return export()


def _unchanged_buffers(mod: torch.nn.Module, given: Any) -> set[str]:
    """The names of the buffers that a model does not change, none if it does not run."""
    before = dict(mod.named_buffers())
    try:
        _, after = run_apart(mod, given)
    except Exception:
        return set()
    return {name for name, buffer in before.items() if torch.equal(buffer, after[name])}


def is_undecided(error: BaseException | None) -> bool:
    """Whether an error comes from a decision on the content of a tensor.

    :param error: the error
    """
    while error is not None and not isinstance(error, GuardOnDataDependentSymNode):
        error = error.__cause__ or error.__context__
    return error is not None


def has_data(mod: torch.nn.Module, given: Any) -> bool:
    """Whether a model and its arguments have data, so that it runs.

    :param mod: the model
    :param given: the arguments
    """
    tensors = (*pytree.tree_leaves(given), *mod.parameters(), *mod.buffers())
    return not any(map(has_no_data, tensors))


def run_apart(mod: torch.nn.Module, given: Any) -> tuple[list[Any], dict[str, torch.Tensor]]:
    """Runs a model on copies of its buffers and of its arguments.

    :param mod: the model
    :param given: positional and named arguments
    :return: its results, and its buffers afterwards
    """
    args, kwargs = clone_arguments(given)
    buffers = {name: b.clone() for name, b in mod.named_buffers()}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = torch.func.functional_call(mod, buffers, args, kwargs)
    return pytree.tree_leaves(found), buffers


@contextlib.contextmanager
def _known_buffers(names: Collection[str]) -> Iterator[None]:
    """Gives their content to some buffers in this context, if they are small."""
    before = getattr(_TRACE, _NAME)

    def with_content(mode: Any, mod: torch.nn.Module) -> dict[str, Any]:
        fakes: dict[str, Any] = before(mode, mod)
        for name, buffer in mod.named_buffers():
            fake = fakes[name]
            if name in names and buffer.numel() <= _ELEMENTS and fake.constant is None:
                fake.constant = buffer.detach().clone()
                mode.fake_tensor_converter.add_constant_storage_mapping(fake)
        return fakes

    with patched(_TRACE, {_NAME: with_content}):
        yield
