"""Decides on the content of a tensor as the model does with the arguments of the export.

The graph has one branch of ``if mask.all():``, the one of the arguments, and each line that decides
so is named. torch computes the values of the tensors beside those without data.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch._functorch import config
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..patches.assumed_sizes import location, user_frame
from ..patches.attributes import patched
from ..patches.content_checks import checked_outcome
from .known_buffers import Export, has_data, is_undecided

#: beginning of the message of a condition that holds for the values of an example
_MESSAGE = "propagate_real_tensors"
_OPTION = "fake_tensor_propagate_real_tensors"
_METHOD = "guard_or_defer_runtime_assert"
#: what torch prints for each condition
_PRINTED = "_log_real_tensor_propagation"
#: what compares the tensors without data with the values
_COMPARED = "_maybe_infer_fake_kernel_from_pytree_out"
pytree = torch.utils._pytree


@contextlib.contextmanager
def taken_branches() -> Iterator[list[str]]:
    """Lists the lines of the model where :func:`decide_with_example` takes the branch of the
    example in this context, but those that only check something.

    ::

        with taken_branches() as lines:
            program = decide_with_example(export, model, (args, kwargs))
        print(lines)
    """
    lines = list[str]()
    assume = vars(ShapeEnv)[_METHOD]

    def assumed(env: Any, condition: Any, message: str, *args: Any, **kwargs: Any) -> Any:
        if message.startswith(_MESSAGE):
            frame = user_frame(sys._getframe(1))
            if frame is None or checked_outcome(frame) is None:
                line = "a line of a library" if frame is None else location(frame)
                lines.extend([] if line in lines else [line])
        return assume(env, condition, message, *args, **kwargs)

    printed = {_PRINTED: _print_nothing} if _PRINTED in vars(ShapeEnv) else {}
    with patched(ShapeEnv, {_METHOD: assumed, **printed}):
        yield lines


def _print_nothing(*_: Any) -> None:
    pass


def _not_compared(mode: Any, operator: Any, given: Any, values: Any, fake: Any, real: Any) -> Any:
    """The result without data: it is not compared with the values, which makes the number of
    selected elements a constant."""
    return fake


def decide_with_example(
    export: Export, mod: torch.nn.Module, given: tuple[tuple[Any, ...], dict[str, Any]]
) -> torch.export.ExportedProgram:
    """Exports a model again with the values of the arguments, if a decision depends on the data.

    :param export: exports the model
    :param mod: the model
    :param given: positional and named arguments
    :raises GuardOnDataDependentSymNode: there is no data
    """
    try:
        return export()
    except Exception as e:
        if not is_undecided(e) or not has_data(mod, given):
            raise
    options: Any = config
    compared = {_COMPARED: _not_compared} if _COMPARED in vars(FakeTensorMode) else {}
    with options.patch({_OPTION: True}), patched(FakeTensorMode, compared):
        program = export()
    _forget_values(program)
    return program


def _forget_values(program: torch.export.ExportedProgram) -> None:
    """Frees the values of the results of a program."""
    for node in program.graph.nodes:
        for fake in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(fake, FakeTensor):
                fake.real_tensor = None


def branch_message(lines: list[str], most: int = 3) -> str:
    """A warning about the lines whose decision is the one of the example; empty for no line.

    :param lines: the lines
    :param most: how many are named
    """
    if not lines:
        return ""
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return (
        "The content of a tensor decides at " + "; ".join(lines[:most]) + f"{more}. The graph "
        "always decides as the model does with the arguments of the export: it is wrong for others "
        "that decide otherwise. torch.where or torch.cond keeps both branches."
    )
