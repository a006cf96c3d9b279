"""Modules that torch does not export, each replaced by one operator.

The shapes of its results are learnt from real calls. A dimension is constant, or a dimension of an
argument, a multiple of one, or the sum of one and a number or another one.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError

from ..checking.validation import clone_arguments
from ..dispatch.dispatcher import Dispatcher
from ..inputs.observed_calls import ObservedCalls
from ..patches.attributes import patched

#: domain of the operators, in torch and in the model
DOMAIN = "pieces"
#: the size of a dimension, from the tensors an operator receives
Length = Callable[[Sequence[torch.Tensor]], Any]
_OPERATORS: Any = torch.ops
pytree = torch.utils._pytree


@contextlib.contextmanager
def modules_as_operators(
    calls: Mapping[str, ObservedCalls], dispatcher: Dispatcher | None = None
) -> Iterator[Dispatcher]:
    """Replaces modules by operators of the domain ``pieces``, in this context.

    :param calls: the calls of each module, by the name of the module in the model
    :param dispatcher: converters of the user
    :return: a context, whose value is a dispatcher that converts these operators too
    :raises OptionError: the calls do not give the shapes of the results of a module

    >>> import torch
    >>> from torch_interpreter import observe_calls
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
    >>> with observe_calls(model[1]) as seen:
    ...     _ = model(torch.ones(3, 4)), model(torch.ones(5, 4))
    >>> with modules_as_operators({"1": seen}):
    ...     program = torch.export.export(model, (torch.ones(3, 4),))
    >>> [str(n.target) for n in program.graph.nodes if n.op == "call_function"][-1]
    'pieces.ReLU_1.default'
    """
    found = copy.copy(dispatcher) if dispatcher else Dispatcher()
    found.registered_functions = dict(found.registered_functions)
    with contextlib.ExitStack() as stack:
        library = stack.enter_context(torch.library._scoped_library(DOMAIN, "FRAGMENT"))
        for name, seen in calls.items():
            operator = _Operator(name, seen)
            operator.define(library)
            found.registered_functions[f"{DOMAIN}::{operator.name}"] = operator.convert
            stack.enter_context(patched(seen.mod, {"forward": operator.forward()}))
        yield found


class _Operator:
    """A module that is called as one operator.

    :param name: its name in the model
    :param seen: its calls
    :raises OptionError: the calls do not give the shapes of its results
    """

    def __init__(self, name: str, seen: ObservedCalls) -> None:
        self.label = name
        self.name = re.sub(r"\W", "_", f"{type(seen.mod).__name__}_{name}")
        self.original = seen.mod.forward
        rows = [self._row(call.args, call.kwargs) for call in seen.alike()]
        self.types = [value.dtype for value in rows[0][1]]
        if len({(len(given), len(results)) for given, results in rows}) > 1 or not self.types:
            raise self._error("the number of its tensors changes, or is 0")
        self.shapes = self._shapes(rows)
        #: structure and values of the arguments of each call the export makes, tensors left out
        self.calls: list[tuple[list[Any], Any]] = []

    def _error(self, reason: str) -> OptionError:
        return OptionError(f"Module {self.label!r} cannot be an operator: {reason}.")

    def _row(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The tensors a call receives, and those it returns."""
        given = clone_arguments((args, kwargs))
        before = _tensors(clone_arguments(given))
        with torch.no_grad():
            result = self.original(*given[0], **given[1])
        after = _tensors(given)
        same = [a.shape == b.shape and bool(a.eq(b).all()) for a, b in zip(before, after)]  # noqa: B905
        if len(before) != len(after) or not all(same):
            raise self._error("it modifies its arguments")
        self.results, self.tree = pytree.tree_flatten(result)
        return before, _tensors(result)

    def _shapes(self, rows: list[Any]) -> list[list[Length]]:
        """The length of every dimension of the results."""
        known: dict[tuple[int, ...], Length] = {}
        for i, value in enumerate(rows[0][0]):
            for axis in range(value.ndim):
                sizes = tuple(given[i].shape[axis] for given, _ in rows)
                known.setdefault(sizes, functools.partial(_dimension, i, axis))
        shapes: list[list[Length]] = []
        for i, value in enumerate(rows[0][1]):
            shapes.append([])
            for axis in range(value.ndim):
                sizes = tuple(results[i].shape[axis] for _, results in rows)
                length = _length(sizes, known)
                if length is None:
                    raise self._error(f"no dimension of its arguments gives the sizes {sizes}")
                shapes[-1].append(length)
        return shapes

    def define(self, library: Any) -> None:
        """Defines the operator of torch.

        :param library: its library
        """
        returned = ", ".join(["Tensor"] * len(self.types))
        returned = f"({returned})" if len(self.types) > 1 else returned
        library.define(f"{self.name}(Tensor[] inputs, int call) -> {returned}")
        library.impl(self.name, self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{DOMAIN}::{self.name}", self._fake, lib=library)

    def _run(self, inputs: list[torch.Tensor], call: int) -> Any:
        leaves, tree = self.calls[call]
        tensors = iter(inputs)
        given = [next(tensors) if leaf is torch.Tensor else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(given, tree)
        return self._returned([value.clone() for value in _tensors(self.original(*args, **kwargs))])

    def _fake(self, inputs: list[torch.Tensor], call: int) -> Any:
        made = [
            inputs[0].new_empty([length(inputs) for length in lengths], dtype=dtype)
            for lengths, dtype in zip(self.shapes, self.types, strict=True)
        ]
        return self._returned(made)

    def _returned(self, values: list[torch.Tensor]) -> Any:
        return tuple(values) if len(self.types) > 1 else values[0]

    def forward(self) -> Callable[..., Any]:
        """A replacement for the forward of the module, which calls the operator."""

        @functools.wraps(self.original)
        def call(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = pytree.tree_flatten((args, kwargs))
            inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            known = [torch.Tensor if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            self.calls.append((known, tree))
            operator = getattr(getattr(_OPERATORS, DOMAIN), self.name)
            found = iter(_tensors(operator(inputs, len(self.calls) - 1)))
            results = [next(found) if isinstance(v, torch.Tensor) else v for v in self.results]
            return pytree.tree_unflatten(results, self.tree)

        return call

    def convert(
        self, g: GraphBuilder, sts: Any, outputs: list[str], inputs: Sequence[str], call: int
    ) -> Any:
        """Writes the node of one call.

        :param g: the GraphBuilder
        :param sts: types and shapes of the results
        :param outputs: names of the results
        :param inputs: names of the tensors it receives
        :param call: its number among the calls of the module
        """
        g.add_domain(DOMAIN, 1)
        return g.make_node(self.name, list(inputs), outputs, domain=DOMAIN)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [v for v in pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]


def _dimension(index: int, axis: int, inputs: Sequence[torch.Tensor]) -> Any:
    return inputs[index].shape[axis]


def _affine(length: Length | None, scale: int, shift: int, inputs: Sequence[torch.Tensor]) -> Any:
    return shift if length is None else length(inputs) * scale + shift


def _sum(left: Length, right: Length, inputs: Sequence[torch.Tensor]) -> Any:
    return left(inputs) + right(inputs)


def _length(sizes: tuple[int, ...], known: Mapping[tuple[int, ...], Length]) -> Length | None:
    """A function that gives the sizes a dimension has in each call.

    :param sizes: the sizes
    :param known: what gives other sizes
    :return: None if nothing does
    """
    first = sizes[0]
    if len(set(sizes)) == 1:
        return functools.partial(_affine, None, 0, first)
    if sizes in known:
        return known[sizes]
    for given, length in known.items():
        scale, shift = first // given[0] if given[0] else 0, first - given[0]
        if [scale * n for n in given] == [*sizes]:
            return functools.partial(_affine, length, scale, 0)
        if [n + shift for n in given] == [*sizes]:
            return functools.partial(_affine, length, 1, shift)
    for (a, left), (b, right) in itertools.combinations(known.items(), 2):
        if [m + n for m, n in zip(a, b, strict=True)] == [*sizes]:
            return functools.partial(_sum, left, right)
    return None
