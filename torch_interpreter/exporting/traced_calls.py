"""Calls that a placeholder cannot answer while a model is traced: torch.cond, len, int, float,
isinstance, loops on the parts of an argument.

``len`` and ``int`` return an int whatever a class says, ``torch.cond`` looks at its condition. The
names are replaced in the files of the model while it is traced.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..patches.number_classes import classes_as_types, stand_in

#: the value of a placeholder that stands for no argument
UNKNOWN = object()
_CONTAINERS = (list, tuple, Mapping)


def length_of(value: Any) -> Any:
    """The length of a value, a symbolic number for a tensor.

    :param value: a tensor or a container
    """
    return value.shape[0] if isinstance(value, torch.Tensor) else len(value)


def int_of(value: Any) -> Any:
    """The integer part of a value, a symbolic number for a dimension or a tensor.

    :param value: a number, or a tensor of one element
    """
    return int(value)


def float_of(value: Any) -> Any:
    """A value as a float, a symbolic number for a dimension or a tensor.

    :param value: a number, or a tensor of one element
    """
    return float(value)


@contextlib.contextmanager
def recorded_calls(
    mod: torch.nn.Module, arguments: Mapping[str, Any], numbers: bool = False
) -> Iterator[None]:
    """Records the calls of ``torch.cond`` and ``len`` on placeholders; ``isinstance`` looks at the
    argument of the export, or its part, when it is asked about its placeholder, ``len`` too when
    this is a container.

    :param mod: the module that is traced
    :param arguments: the arguments of the export by name; without any, they are tensors
    :param numbers: records those of ``int`` and ``float`` too
    """
    functions: dict[str, Any] = {
        "len": functools.partial(_length, arguments),
        "isinstance": functools.partial(_is_instance, arguments),
    }
    if numbers:
        functions.update({"int": _recorded(int, int_of), "float": _recorded(float, float_of)})
    scopes = _scopes(mod)
    with contextlib.ExitStack() as stack:
        if numbers:
            stack.enter_context(classes_as_types())
        stack.enter_context(_replaced(vars(torch), "cond", _cond(torch.cond)))
        for scope in scopes:
            for name, function in functions.items():
                if name not in scope:  # it is the one of Python
                    stack.enter_context(_replaced(scope, name, function))
        yield


def _scopes(mod: torch.nn.Module) -> list[dict[str, Any]]:
    """The global names of the files that define the modules of a model, those of torch left out."""
    classes = {cls for m in mod.modules() for cls in type(m).__mro__}
    methods = [vars(c).get("forward") for c in classes]
    functions = [f for m in methods if m is not None for f in (m, inspect.unwrap(m))]
    found = [getattr(f, "__globals__", None) for f in functions]
    scopes = {id(scope): scope for scope in found if scope is not None}
    return [s for s in scopes.values() if s.get("__name__", "").split(".")[0] != "torch"]


@contextlib.contextmanager
def _replaced(scope: dict[str, Any], name: str, value: Any) -> Iterator[None]:
    """Gives a value to a name, for a while."""
    missing = object()
    before = scope.get(name, missing)
    scope[name] = value
    try:
        yield
    finally:
        if before is missing:
            del scope[name]
        else:
            scope[name] = before


def _recorded(real: type, function: Callable[..., Any]) -> type:
    """A class of numbers, whose calls on a placeholder are recorded."""
    return stand_in(real, (torch.fx.Proxy,), lambda proxy: _record(proxy, function, proxy))


def known_value(node: torch.fx.Node, arguments: Mapping[str, Any]) -> Any:
    """The argument of the export, or the part of it, that a node of a traced graph stands for.

    :param node: the node
    :param arguments: the arguments of the export by name
    :return: :data:`UNKNOWN` for the result of a computation
    """
    if node.op == "placeholder":
        return arguments.get(str(node.target).lstrip("*"), UNKNOWN)
    if node.op != "call_function" or node.target not in (getattr, operator.getitem):
        return UNKNOWN
    base, key = node.args
    if not isinstance(base, torch.fx.Node) or not isinstance(key, str | int | slice):
        return UNKNOWN
    value: Any = known_value(base, arguments)
    if node.target is getattr:
        return getattr(value, str(key), UNKNOWN)
    is_container = isinstance(value, _CONTAINERS)
    try:
        return value[key] if is_container else UNKNOWN
    except (LookupError, TypeError):  # a bound of the slice may be a placeholder
        return UNKNOWN


def known_parts(proxy: torch.fx.Proxy, arguments: Mapping[str, Any]) -> list[Any] | None:
    """The parts of an argument that a loop goes through: keys, placeholders, or both.

    :param proxy: the placeholder of a list, a tuple, a dictionary, or of what ``keys``, ``values``
        and ``items`` return
    :param arguments: the arguments of the export by name
    :return: None for anything else
    """
    node = proxy.node
    method = str(node.target) if node.op == "call_method" and len(node.args) == 1 else ""
    base = node.args[0] if method in ("keys", "values", "items") else node
    if not isinstance(base, torch.fx.Node):
        return None
    value: Any = known_value(base, arguments)
    whole: Any = proxy.tracer.proxy(base)
    if isinstance(value, list | tuple) and not method:
        return [whole[i] for i in range(len(value))]
    if not isinstance(value, Mapping):
        return None
    if method in ("", "keys"):
        return list(value)
    return [(k, whole[k]) if method == "items" else whole[k] for k in value]


def _length(arguments: Mapping[str, Any], value: Any) -> Any:
    """The answer of ``len``, recorded for the placeholder of a tensor or of a result."""
    if not isinstance(value, torch.fx.Proxy):
        return len(value)
    known = known_value(value.node, arguments)
    return len(known) if isinstance(known, _CONTAINERS) else _record(value, length_of, value)


def _is_instance(arguments: Mapping[str, Any], value: Any, classes: Any) -> bool:
    """Whether a value, or the argument a placeholder stands for, is an instance of a class."""
    if isinstance(value, torch.fx.Proxy):
        is_tensor = not arguments and value.node.op == "placeholder"
        known = torch.empty(0) if is_tensor else known_value(value.node, arguments)
        value = value if known is UNKNOWN else known
    return isinstance(value, classes)


def _cond(original: Callable[..., Any]) -> Callable[..., Any]:
    """torch.cond, recorded when its condition is a placeholder."""
    numbers = itertools.count()

    @functools.wraps(original)
    def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        proxy = _proxy((pred, *operands))
        if proxy is None:
            return original(pred, true_fn, false_fn, operands)

        def call(pred: Any, *operands: Any) -> Any:
            return original(pred, true_fn, false_fn, operands)

        call.__name__ = call.__qualname__ = f"cond_{next(numbers)}"
        return _record(proxy, call, pred, *operands)

    return cond


def _proxy(values: Any) -> torch.fx.Proxy | None:
    """The first placeholder among some values."""
    return next((v for v in values if isinstance(v, torch.fx.Proxy)), None)


def _record(proxy: torch.fx.Proxy, function: Callable[..., Any], *args: Any) -> Any:
    """Adds a call to the graph of a placeholder."""
    return proxy.tracer.create_proxy("call_function", function, args, {})
