"""Notices the decisions on the content of a tensor whose error the code of a model catches.

torch.export raises an error for ``if x.sum() > 0`` or ``x.numpy()``. In a ``try`` with ``except
Exception``, the graph would take the second branch without a word.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..patches.assumed_sizes import is_of_user, location
from ..patches.attributes import patched

#: the tensors of an export, and the methods that read the content that they do not have
_CLASSES = (FakeTensor, FunctionalTensor)
_READERS = ("numpy", "__array__", "data_ptr")
_ERRORS = (DataDependentOutputException, GuardOnDataDependentSymNode)


@contextlib.contextmanager
def caught_decisions() -> Iterator[list[str]]:
    """Lists the lines whose decision depends on the content of a tensor and whose error a model
    catches in this context; the list is complete after it.
    """
    errors, lines = list[BaseException](), list[str]()
    with contextlib.ExitStack() as stack:
        for kind in _ERRORS:
            changes = {"__init__": _listed(kind.__init__, errors)}
            stack.enter_context(patched(kind, changes))
        readers = {name: _kept_error(getattr(torch.Tensor, name), errors) for name in _READERS}
        for owner in _CLASSES:
            stack.enter_context(patched(owner, readers))
        yield lines
    lines.extend(dict.fromkeys(line for e in errors if (line := _caught_line(e))))


def _listed(original: Callable[..., None], errors: list[BaseException]) -> Callable[..., None]:
    @functools.wraps(original)
    def call(self: BaseException, *args: Any, **kwargs: Any) -> None:
        errors.append(self)
        original(self, *args, **kwargs)

    return call


def _kept_error(original: Callable[..., Any], errors: list[BaseException]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except RuntimeError as e:
            errors.append(e)
            raise

    return call


def _caught_line(error: BaseException) -> str:
    """The line of the model that raises an error, if the frame that catches it is one of the model:
    it is the first of the trace. Empty otherwise."""
    trace = error.__traceback__
    if trace is None or not is_of_user(trace.tb_frame):
        return ""
    found = trace
    while trace is not None:
        found = trace if is_of_user(trace.tb_frame) else found
        trace = trace.tb_next
    return location(found.tb_frame, found.tb_lineno)
