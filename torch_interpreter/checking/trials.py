"""Runs the graph of a model beside the model, at other sizes than those of the export."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from ..inputs.examples import resized
from ..inputs.inputs import ModelInput
from .other_sizes import at_sizes, elements_at, evaluator
from .own_attributes import restored_attributes
from .validation import clone_arguments, compare

#: operators that stop the graph on sizes torch did not see
_ASSERTIONS = ("aten._assert", "aten.sym_constrain", "aten._functional_assert")
_TOLERANCE = 1e-3
#: a size no memory holds; arguments of more elements are not tried
_NO_MEMORY, _TOO_MANY = 1 << 40, 1 << 26
pytree = torch.utils._pytree
Evaluate = Callable[[Any, int], int]
#: arguments of operators that draw nothing where these are false
_TRAINING = frozenset({"train", "training"})
#: arguments of operators that draw nothing where these are 0
_PROBABILITIES = frozenset({"p", "dropout", "dropout_p"})


class ExampleTrial:
    """Compares a graph with the model it comes from.

    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    :param module: its graph
    :param weights: the placeholders that are weights
    :param inputs: the other placeholders, the leaves of the arguments
    :param count: number of results, the graph gives them last
    """

    def __init__(
        self,
        mod: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        module: torch.fx.GraphModule,
        weights: Mapping[torch.fx.Node, tuple[str, torch.Tensor]],
        inputs: Sequence[ModelInput],
        count: int,
    ) -> None:
        self._mod = mod
        self._leaves, self._tree = pytree.tree_flatten((args, dict(kwargs)))
        self._module = module
        self._weights = weights
        self._inputs = inputs
        self._count = count
        #: whether the graph draws random numbers: only shapes are compared then
        self.is_random = any(map(_is_random, module.graph.nodes))
        self._usable: bool | None = None
        self._failing: dict[frozenset[tuple[str, int]], bool] = {}

    def is_right(self) -> bool:
        """Whether the graph gives the results of the model on its arguments."""
        if self._usable is None:
            try:
                self._usable = self._same(self._leaves)
            except Exception:  # the model itself may fail out of the export
                self._usable = False
        return self._usable

    def fails_at(self, sizes: Mapping[str, int]) -> bool:
        """Whether the graph is wrong, or may be, at some sizes.

        It is not if the model refuses them, nor if no memory holds them. It may be if they are too
        large to be tried, or if the comparison is not possible on the arguments themselves.

        :param sizes: symbols of torch and their sizes
        """
        if max(sizes.values(), default=0) >= _NO_MEMORY:
            return False
        if elements_at(self._inputs, self._leaves, sizes) > _TOO_MANY:
            return True
        key = frozenset(sizes.items())
        if key not in self._failing:
            self._failing[key] = self.fails_on(at_sizes(self._inputs, self._leaves, sizes))
        return self._failing[key]

    def fails_without(
        self, constants: Collection[tuple[int, int]], asked: Collection[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """The dimensions that are constants for the graph and not for the model: the model runs
        with another size of one of them, or of all those that have the same one.

        :param constants: input and axis of dimensions that are constants
        :param asked: those the user asked to be dynamic
        """
        found = []
        for leaf, axis in constants:
            size = self._leaves[leaf].shape[axis]
            alike = [(i, a) for i, a in asked if self._leaves[i].shape[a] == size]
            groups = [[(leaf, axis)], alike] if len(alike) > 1 else [alike]
            tried = (self._resized(dims, n) for dims in groups for n in (size + 1, 2 * size + 2))
            if any(map(self.fails_on, tried)):
                found.append((leaf, axis))
        return found

    def _resized(self, dims: Sequence[tuple[int, int]], size: int) -> list[Any]:
        leaves = list(self._leaves)
        for leaf, axis in dims:
            leaves[leaf] = resized(leaves[leaf], axis, size)
        return leaves

    def fails_on(self, leaves: Sequence[Any]) -> bool:
        """Whether the graph is wrong, or may be, on other leaves, see :meth:`fails_at`.

        :param leaves: leaves of the arguments
        """
        if not self.is_right():
            return True
        try:
            return not self._same(leaves)
        except _Refused:
            return False

    def has_other_shapes(self, leaves: Sequence[Any]) -> bool:
        """Whether a result of the graph has not the shape torch says, a function of the dimensions
        of the arguments.

        :param leaves: leaves of the arguments
        """
        evaluate = evaluator(self._inputs, leaves)
        try:
            self._results(leaves, evaluate)
        except _OtherShape:
            return True
        except Exception:  # the model may refuse these sizes
            return False
        return False

    def _same(self, leaves: Sequence[Any]) -> bool:
        try:
            expected = self._expected(leaves)
        except Exception as e:
            raise _Refused from e
        try:
            got = self._results(leaves)
        except Exception:  # the graph has the sizes of the export
            return False
        if self.is_random:
            return [getattr(e, "shape", None) for e in expected if e is not None] == [
                getattr(g, "shape", None) for g in got if g is not None
            ]
        return not compare(expected, got, _TOLERANCE)

    def _expected(self, leaves: Sequence[Any]) -> list[Any]:
        """The results of the model, which is left as it was."""
        args, kwargs = pytree.tree_unflatten(clone_arguments(list(leaves)), self._tree)
        buffers = {name: b.clone() for name, b in self._mod.named_buffers()}
        with torch.no_grad(), restored_attributes(self._mod):
            found = torch.func.functional_call(self._mod, buffers, args, kwargs)
        results: list[Any] = pytree.tree_leaves(found)
        return results

    def _results(self, leaves: Sequence[Any], evaluate: Evaluate | None = None) -> list[Any]:
        """The results of the graph."""
        cloned = clone_arguments(list(leaves))
        values = {i.node: v for i, v in zip(self._inputs, cloned, strict=True)}
        values.update((node, tensor) for node, (_, tensor) in self._weights.items())
        placeholders = (n for n in self._module.graph.nodes if n.op == "placeholder")
        with torch.no_grad():
            found = _Unchecked(self._module, evaluate).run(*(values.get(n) for n in placeholders))
        return pytree.tree_leaves(tuple(found)[len(found) - self._count :])


class _Refused(Exception):
    """The model does not run on some arguments."""


class _OtherShape(Exception):
    """A result has not the rank it had during the export, which the ONNX model keeps, or not the
    shape that torch says."""


class _Unchecked(torch.fx.Interpreter):
    """Runs a graph without its assertions; the ranks are those of the export.

    :param module: the graph
    :param evaluate: computes a dimension, which is compared with the one of the result
    """

    def __init__(self, module: torch.fx.GraphModule, evaluate: Evaluate | None) -> None:
        super().__init__(module)
        self._evaluate = evaluate

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs a node.

        :param n: the node
        """
        if n.target is operator.getitem and not n.users:
            return None  # a piece that nothing reads, which other sizes may not have
        found: Any = super().run_node(n)
        fake: Any = n.meta.get("val")
        same_kind = isinstance(found, torch.Tensor) and isinstance(fake, torch.Tensor)
        if same_kind and len(found.shape) != len(fake.shape):
            raise _OtherShape
        if same_kind and self._evaluate is not None:
            pairs = zip(fake.shape, found.shape, strict=True)
            if any(self._evaluate(dim, size) != size for dim, size in pairs):
                raise _OtherShape
        return found

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls an operator, unless it only checks sizes.

        :param target: the operator
        :param args: positional arguments
        :param kwargs: named arguments
        """
        if str(target).startswith(_ASSERTIONS):
            return None
        return super().call_function(target, args, kwargs)


def _is_random(node: torch.fx.Node) -> bool:
    """Whether a node draws random numbers: attention and dropout do not out of training."""
    tags: Sequence[Any] = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded not in tags or not isinstance(node.target, OpOverload):
        return False
    given = dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False))
    given |= node.kwargs
    for argument in node.target._schema.arguments:
        value = given.get(argument.name, argument.default_value)
        if argument.name in _TRAINING and value is False:
            return False
        if argument.name in _PROBABILITIES and value == 0:
            return False
    return True
