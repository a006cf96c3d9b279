"""Symbolic tracing: a graph of the functions and modules a model calls, for any sizes.

torch.fx runs the model on placeholders, torch.export runs after it. A decision of python that
depends on the content or the size of a tensor fails at once. The graph keeps nothing of the
arguments except the values of those that are not tensors.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import torch

from ..checking.validation import clone_arguments, compare
from ..common.errors import ExportError
from ..inputs.specifications import combined_arguments
from .traced_calls import known_parts, known_value, recorded_calls

#: whether a module, which has a name, is not traced
Condition = Callable[[torch.nn.Module, str], bool]
#: classes of modules that are not traced, with an optional condition
Leaves = Collection[type] | Mapping[type, Condition]
#: the types of tensors that classes of Python stand for
_TYPES = {int: torch.int64, float: torch.float64, bool: torch.bool, complex: torch.complex128}
pytree = torch.utils._pytree


class _Proxy(torch.fx.Proxy):
    """A placeholder whose parts can be assigned: ``x[0] = 1``. ``keys`` is any attribute, that of
    a layer of a cache for example."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def __getattr__(self, name: str) -> _Attribute:
        return _Attribute(self, name)

    @property
    def keys(self) -> _Attribute:
        return _Attribute(self, "keys")


class _Attribute(_Proxy, torch.fx.proxy.Attribute):
    """An attribute of a placeholder."""


class CustomTracer(torch.fx.Tracer):
    """A tracer of torch.fx that records what a placeholder cannot answer.

    ``len``, ``int`` and ``float`` of a placeholder are symbolic numbers, ``isinstance`` looks at
    the argument it stands for, loops go through the parts of an argument, ``torch.cond`` keeps
    both branches, parts of a tensor may be assigned, and a cache may be made and returned.

    :param module_leaves: modules that are called as they are, beside those of ``torch.nn``:
        classes, or conditions on the module and its name by class
    :param arguments: arguments of the model by name, for ``isinstance`` and loops; without any,
        the placeholders stand for tensors

    ::

        import torch
        from torch_interpreter import CustomTracer

        class Half(torch.nn.Module):
            def forward(self, x):
                x = x.clone()
                x[:, 0] = len(x)
                return x[: int(x.shape[0] / 2)]

        graph = CustomTracer().trace(Half())
        module = torch.fx.GraphModule(Half(), graph)
        assert module(torch.ones(6, 2)).tolist() == [[6, 1]] * 3
    """

    def __init__(
        self, module_leaves: Leaves = (), arguments: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.module_leaves: Mapping[type, Condition | None] = (
            module_leaves if isinstance(module_leaves, Mapping) else dict.fromkeys(module_leaves)
        )
        self.arguments = dict(arguments or {})

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is called as it is instead of being traced.

        :param m: the module
        :param module_qualified_name: its name in the model
        """
        for kind, condition in self.module_leaves.items():
            if isinstance(m, kind) and (condition is None or condition(m, module_qualified_name)):
                return True
        return super().is_leaf_module(m, module_qualified_name)

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """The function to run, and the placeholders to give it. torch.fx reads the parameters of
        the function inside the decorators, then changes the code of the decorator, which may have
        other ones (``*args, **kwargs``): it fails.

        :param root_fn: the function to trace
        :param is_module: it is a method, its first argument is not a placeholder
        :param concrete_args: arguments whose value is constant
        """
        inner = inspect.unwrap(root_fn)
        function, args = super().create_args_for_root(inner, is_module, concrete_args)
        if inner is root_fn or len(args) != len(inspect.signature(inner).parameters):
            return function, args
        return _decorated(root_fn, inner), args

    def create_arg(self, a: Any) -> Any:
        """The value that stands for an argument of a call in the graph.

        :param a: the argument; ``int`` and its like are types of tensors, an object that torch can
            flatten, a cache for example, is made again from its tensors
        """
        if isinstance(a, type):
            return super().create_arg(_TYPES.get(a, a))
        kind = pytree._get_node_type(a)
        if kind not in pytree.SUPPORTED_NODES or kind in pytree.BUILTIN_TYPES or is_dataclass(a):
            return super().create_arg(a)
        leaves, structure = pytree.tree_flatten(a)

        def made(*tensors: Any) -> Any:
            return pytree.tree_unflatten(tensors, structure)

        made.__name__ = made.__qualname__ = f"made_{kind.__name__}"
        return self.create_node("call_function", made, tuple(map(self.create_arg, leaves)), {})

    def iter(self, obj: torch.fx.Proxy) -> Iterator[Any]:
        """The parts of an argument.

        :param obj: the placeholder of a list, a tuple or a dictionary
        """
        parts = known_parts(obj, self.arguments)
        return super().iter(obj) if parts is None else iter(parts)

    def to_bool(self, obj: torch.fx.Proxy) -> bool:
        """Whether an argument, or a part of it, is true.

        :param obj: the placeholder of a boolean, of a text or of a container
        """
        value = known_value(obj.node, self.arguments)
        is_known = value is None or isinstance(value, bool | str | list | tuple | Mapping)
        return bool(value) if is_known else super().to_bool(obj)

    def proxy(self, node: torch.fx.Node) -> torch.fx.Proxy:
        """The placeholder that stands for the result of a node while the model runs.

        :param node: the node
        """
        return _Proxy(node, self)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> torch.fx.Graph:
        """The graph of the functions and modules a model calls.

        :param root: the module, or a function
        :param concrete_args: arguments whose value is constant
        """
        if not isinstance(root, torch.nn.Module):
            return _in_order(super().trace(root, concrete_args), root)
        try:
            with recorded_calls(root, self.arguments):
                return _in_order(super().trace(root, concrete_args), root.forward)
        except TypeError as e:
            if "int()" not in str(e) and "float()" not in str(e):
                raise
        with recorded_calls(root, self.arguments, numbers=True):
            return _in_order(super().trace(root, concrete_args), root.forward)


def _decorated(function: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """Calls a decorated function with the arguments of the one inside, in the order of torch.fx:
    those with a name, then ``*args`` and ``**kwargs``."""
    parameters = list(inspect.signature(inner).parameters.values())
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters.sort(key=lambda p: stars.index(p.kind) if p.kind in stars else -1)

    def call(*values: Any) -> Any:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter, value in zip(parameters, values, strict=True):
            if parameter.kind is parameter.VAR_POSITIONAL:
                for each in value:  # a placeholder has no length
                    positional.append(each)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(**value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        return function(*positional, **named)

    return call


def _in_order(graph: torch.fx.Graph, function: Callable[..., Any]) -> torch.fx.Graph:
    """Moves the placeholders of keyword-only arguments after ``*args``, where torch.fx does not put
    them: they would become positional."""
    parameters = inspect.signature(function).parameters
    places = {name: place for place, name in enumerate(parameters)}
    found = [n for n in graph.nodes if n.op == "placeholder"]
    known = {n: places.get(_parameter(n, parameters), len(places)) for n in found}
    ordered = sorted(found, key=known.__getitem__)
    for node in reversed(ordered) if ordered != found else ():
        first = next(iter(graph.nodes))
        if node is not first:
            first.prepend(node)
    return graph


def _parameter(placeholder: torch.fx.Node, parameters: Collection[str]) -> str:
    """The argument a placeholder stands for. torch gives a number to the arguments whose value is
    known."""
    name = str(placeholder.target).lstrip("*")
    return name if name in parameters else name.rpartition("_")[0]


def trace_module(
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    leaves: Leaves = (),
    dynamic_shapes: Mapping[str, Any] | None = None,
) -> torch.nn.Module:
    """Traces a module symbolically.

    :param mod: module
    :param args: positional arguments
    :param kwargs: named arguments
    :param leaves: modules which are called as they are, beside those of ``torch.nn``
    :param dynamic_shapes: dynamic shapes for torch.export; a number they describe is not constant
    :raises ExportError: the model takes a decision that a placeholder cannot answer
    """
    given = combined_arguments(mod, args, kwargs)
    parameters = inspect.signature(mod.forward).parameters
    hidden = {k: v for k, v in given.items() if k not in parameters}
    for name, parameter in parameters.items():
        starred: dict[Any, Any] = {parameter.VAR_POSITIONAL: (), parameter.VAR_KEYWORD: hidden}
        default = starred.get(parameter.kind, parameter.default)
        if default is not parameter.empty:
            given.setdefault(name, default)
    dynamic = {k for k, spec in (dynamic_shapes or {}).items() if spec is not None}
    known = {
        k: v for k, v in given.items() if k in parameters and k not in dynamic and _is_python(v)
    }
    tracer = CustomTracer(leaves, given)
    try:
        graph = tracer.trace(mod, concrete_args=known)
    except Exception as e:
        raise ExportError(
            f"torch.fx cannot trace the model: {type(e).__name__}: {e}\nA module it fails in can "
            f"be called as it is: ExportOptions(tracing=True, tracing_module_leaves={{TheClass}})."
        ) from e
    for node in list(graph.nodes):
        if node.op == "placeholder" and node.target.lstrip("*") not in parameters:
            # torch checks the value of an argument when it is known
            node.target = _parameter(node, parameters)
            _erase_checks(graph, node)
    return _Traced(mod, torch.fx.GraphModule(tracer.root, graph, type(mod).__name__))


class _Traced(torch.nn.Module):
    """A module with the modules, parameters and code of a graph. torch.export runs a graph module
    itself and gives its arguments in order, whatever their names and default values are."""

    def __init__(self, mod: torch.nn.Module, graph_module: torch.fx.GraphModule) -> None:
        super().__init__()
        for name in ("_modules", "_parameters", "_buffers"):
            getattr(self, name).update(getattr(graph_module, name))
            # the branches of torch.cond use modules which are not in the graph
            getattr(self, name).update(getattr(mod, name))
        self.forward = types.MethodType(type(graph_module).forward, self)


def _erase_checks(graph: torch.fx.Graph, placeholder: torch.fx.Node) -> None:
    for user in list(placeholder.users):
        for check in [*user.users, user]:
            graph.erase_node(check)


def _is_python(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def check_traced(
    traced: torch.nn.Module, mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Compares a model and its traced graph on the arguments of the export.

    A condition such as ``isinstance(x, torch.Tensor)`` is false for a placeholder.

    :raises ExportError: the results differ
    """
    before = [(b, b.detach().clone()) for b in mod.buffers()]
    found = []
    for model in (mod, traced):
        copied, named = clone_arguments((args, dict(kwargs)))
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found.append(pytree.tree_leaves(model(*copied, **named)))
            for buffer, value in before:
                buffer.copy_(value)
    problem = compare(found[0], found[1], 1e-4)
    if problem:
        raise ExportError(
            f"The graph that was traced and the model disagree, a condition of the model does not "
            f"see the same thing in both: {problem}. Use another strategy, 'nostrict' for example."
        )
