"""Arguments and dynamic dimensions of an export, from real calls of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from xbuilder.errors import OptionError

from .caches import register_caches
from .specifications import combined_arguments

pytree = torch.utils._pytree


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call of a module.

    :param args: copies of the positional arguments
    :param kwargs: copies of the named arguments
    :param result: a copy of what the module returned
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None

    def flat(self, mod: torch.nn.Module) -> tuple[list[Any], Any]:
        """The leaves of the arguments by name, their structure.

        :param mod: the module
        """
        leaves, spec = pytree.tree_flatten(combined_arguments(mod, self.args, self.kwargs))
        return leaves, spec


class ObservedCalls:
    """The calls of a module seen by :func:`observe_calls`.

    :param mod: the module

    Example::

        >>> from torch_interpreter import observe_calls
        >>> module = torch.nn.Linear(3, 2)
        >>> with observe_calls(module) as calls:
        ...     for batch in (1, 4):
        ...         _ = module(torch.ones(batch, 3))
        >>> len(calls.calls), len(calls.alike())
        (2, 2)
    """

    def __init__(self, mod: torch.nn.Module) -> None:
        self.mod = mod
        self.calls: list[ObservedCall] = []
        #: positions of the calls that did not return yet
        self._running: list[int] = []

    def _start(self, mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        register_caches(args, kwargs)
        copied, named = pytree.tree_map(_copy, (tuple(args), dict(kwargs)))
        self._running.append(len(self.calls))
        self.calls.append(ObservedCall(copied, named))

    def _end(self, mod: torch.nn.Module, args: Any, result: Any) -> None:
        register_caches(result)
        position = self._running.pop()
        result = pytree.tree_map(_copy, result)
        self.calls[position] = replace(self.calls[position], result=result)

    def alike(self) -> list[ObservedCall]:
        """The largest set of calls that one model can replace: they have the same arguments,
        Python values, types and ranks. If two sets are equally large, the last one.

        :raises OptionError: the module was not called
        """
        groups: dict[Any, list[ObservedCall]] = {}
        for call in self.calls:
            leaves, spec = call.flat(self.mod)
            key = (str(spec), tuple(map(_kind, leaves)))
            groups[key] = [*groups.pop(key, []), call]
        if not groups:
            raise OptionError(
                f"{type(self.mod).__name__} was not called while it was observed: its arguments "
                "are not known."
            )
        return max(reversed(groups.values()), key=len)

    def export_arguments(self) -> dict[str, Any]:
        """The keywords ``args``, ``kwargs`` and ``dynamic_shapes`` of
        :func:`torch_interpreter.to_onnx`.

        A dimension is dynamic when two calls give it different sizes. Those that are equal in every
        call have the same name.

        :raises OptionError: the module was not called
        """
        calls = self.alike()
        rows = [call.flat(self.mod)[0] for call in calls]
        example = max(range(len(calls)), key=lambda i: sum(map(_size, rows[i])))
        call = calls[example]
        arguments = combined_arguments(self.mod, call.args, call.kwargs)
        names: dict[tuple[int, ...], str] = {}
        columns = iter(zip(*rows, strict=True))
        shapes = {}
        for name, value in arguments.items():
            spec = pytree.tree_structure(value)
            column = (_dimensions(name, next(columns), names) for _ in range(spec.num_leaves))
            shapes[name] = _nested(spec, column)
        return {"args": call.args, "kwargs": call.kwargs, "dynamic_shapes": shapes}


@contextlib.contextmanager
def observe_calls(mod: torch.nn.Module) -> Iterator[ObservedCalls]:
    """Records the arguments and the results of the calls of a module, including those that
    ``generate`` makes.

    Two calls with different sizes, of the batch for example, make this dimension dynamic.

    :param mod: the module, or one of the modules of a model
    :return: a context, whose value holds the calls

    >>> import torch
    >>> from torch_interpreter import observe_calls, to_onnx
    >>> model = torch.nn.Linear(4, 2)
    >>> with observe_calls(model) as seen:
    ...     _ = model(torch.randn(3, 4)), model(torch.randn(5, 4))
    >>> seen.export_arguments()["dynamic_shapes"]
    {'input': {0: 'input_0'}}
    >>> onx = to_onnx(model, **seen.export_arguments())
    """
    seen = ObservedCalls(mod)
    with (
        mod.register_forward_pre_hook(seen._start, with_kwargs=True),
        mod.register_forward_hook(seen._end, always_call=True),
    ):
        yield seen


def _copy(value: Any) -> Any:
    """A tensor the model cannot modify any more."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _kind(leaf: Any) -> Any:
    """The facts two calls must share: type and rank of a tensor, a Python value."""
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype, leaf.ndim
    return type(leaf), repr(leaf)


def _size(leaf: Any) -> int:
    return leaf.numel() if isinstance(leaf, torch.Tensor) else 0


def _dimensions(
    name: str, values: tuple[Any, ...], names: dict[tuple[int, ...], str]
) -> dict[int, str] | None:
    """The dynamic dimensions of one leaf.

    :param name: the argument, whose name is given to a new dimension
    :param values: the leaf in every call
    :param names: the sizes of a dimension in every call -> its name, completed
    """
    if not isinstance(values[0], torch.Tensor):
        return None
    found = {}
    for axis in range(values[0].ndim):
        sizes = tuple(v.shape[axis] for v in values)
        if len(set(sizes)) > 1:
            found[axis] = names.setdefault(sizes, f"{name}_{axis}")
    return found or None


def _nested(spec: Any, leaves: Iterator[Any]) -> Any:
    """Gives the structure of an argument to the specifications of its leaves."""
    if spec.is_leaf():
        return next(leaves)
    parts = [_nested(child, leaves) for child in spec.children()]
    return dict(zip(spec.context, parts, strict=True)) if issubclass(spec.type, Mapping) else parts
