"""Converters registered by the user, looked up before those of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.support.argument_types import check_type

from ..common.types import to_onnx_type
from ..writing.naming import name_results
from ..writing.registry import (
    UNKNOWN_OUTPUTS,
    Converter,
    OutputFacts,
    call_converter,
    is_registered,
)

# fct(g, sts, outputs, *args, **kwargs)
UserConverter = Callable[..., Any]


def qualified_name(fct: Any) -> str:
    """The name of a function or a class with its module: ``operator.add``, ``math.ceil``."""
    module = getattr(fct, "__module__", "") or ""
    module = {"_operator": "operator", "builtins": "builtins"}.get(module, module)
    return f"{module}.{getattr(fct, '__qualname__', getattr(fct, '__name__', str(fct)))}"


def canonical_name(target: Any) -> str:
    """The name under which a function of an fx graph is registered.

    ``aten.add.Tensor``, ``operator.add``, ``higher_order.cond``, ``method.view``.
    """
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.__name__}"
    return qualified_name(target)


def candidate_names(target: Any) -> Iterator[Any]:
    """All keys under which a Dispatcher may register a function, the most precise first."""
    yield target
    name = canonical_name(target)
    yield name
    if isinstance(target, torch._ops.OpOverload):
        namespace, op, overload = name.split(".")[0], name.split(".")[1], name.split(".")[-1]
        full = [f"{namespace}::{op}.{overload}", f"{namespace}_{op}_{overload}"]
        short = [f"{namespace}.{op}", f"{namespace}::{op}", f"{namespace}_{op}"]
        yield from full
        yield target.overloadpacket
        yield from short
        if namespace != "aten":
            yield from (f"{op}.{overload}", op)
    elif not isinstance(target, str):
        yield from (qualified_name(target), getattr(target, "__name__", None))


class AsUserConverter:
    """Adapts a converter of the library to the signature of the users' converters.

    :param converter: ``fct(g, *args, **kwargs)``
    """

    def __init__(self, converter: Converter) -> None:
        self.converter = converter
        self.__name__ = converter.__name__

    def __call__(
        self,
        g: GraphBuilder,
        sts: OutputFacts | None,
        outputs: Sequence[str] | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Converts, and gives names to the results if the caller has some."""
        size = len(g.store)
        result = call_converter(self.converter, g, sts or UNKNOWN_OUTPUTS, args, kwargs)
        return name_results(g, size, result, outputs) if outputs else result


class AsLibraryConverter:
    """Adapts a converter of a user to the signature of the library.

    :param converter: ``fct(g, sts, outputs, *args, **kwargs)``
    """

    def __init__(self, converter: UserConverter) -> None:
        self.converter = converter
        self.__name__ = getattr(converter, "__name__", type(converter).__name__)
        self.__module__ = converter.__module__

    def __call__(
        self, g: GraphBuilder, *args: Any, expected: OutputFacts = UNKNOWN_OUTPUTS, **kwargs: Any
    ) -> Any:
        """Converts with the names and the facts of the results."""
        return self.converter(g, expected, list(expected.names), *args, **kwargs)


def as_library_converter(fct: UserConverter) -> Converter:
    """Adapts a converter given to a dispatcher to the signature of the library.

    It may already be a converter of the library, registered for an equivalent operator of the user.
    """
    if isinstance(fct, AsUserConverter):
        return fct.converter
    return fct if is_registered(fct) else AsLibraryConverter(fct)


class Dispatcher:
    """Maps operators to converters.

    :param registered_functions: the keys are names (``"aten_add_Tensor"``,
        ``"aten::add.Tensor"``, ``"aten.add.Tensor"``, ``"aten::add"`` for all overloads,
        qualified names of functions, names of custom operators) or the objects themselves,
        the values are converters ``fct(g, sts, outputs, *args, **kwargs)``: the GraphBuilder,
        an :class:`.registry.OutputFacts`, the names to give to the results (the results of a
        converter that ignores them are renamed), then the arguments of the operator
    :param verbose: prints every converter it chooses

    ::

        def twice(g, sts, outputs, x):
            return g.op.Add(x, x, outputs=outputs)

        to_onnx(model, (x,), dispatcher=Dispatcher({"mylib::twice": twice}))
    """

    def __init__(
        self, registered_functions: Mapping[Any, UserConverter] | None = None, verbose: int = 0
    ) -> None:
        what = "a dictionary {name: function}"
        check_type("registered_functions", registered_functions, Mapping, what, optional=True)
        self.registered_functions: dict[Any, UserConverter] = dict(registered_functions or {})
        for key, fct in self.registered_functions.items():
            if not callable(fct):
                raise OptionError(f"The converter of {key!r} must be a function, not {fct!r}.")
        self.verbose = verbose

    @property
    def supported(self) -> set[Any]:
        """The keys of all registered functions."""
        return set(self.registered_functions)

    def merge(
        self, other: Dispatcher | None = None, *, other_dispatcher: Dispatcher | None = None
    ) -> Dispatcher:
        """A dispatcher with both sets of functions; the other one wins.

        :param other: the other one
        :param other_dispatcher: another name of *other*
        """
        found: Any = other_dispatcher if other is None else other
        check_type("other", found, Dispatcher)
        return Dispatcher(
            {**self.registered_functions, **found.registered_functions},
            verbose=max(self.verbose, found.verbose),
        )

    def choose(
        self,
        target: Any,
        is_method: bool,
        known: Converter | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        g: GraphBuilder,
    ) -> Converter | None:
        """Chooses a converter: the user's, the library's, then the fallback's.

        :param target: the operator
        :param is_method: whether *target* is the name of a method
        :param known: the converter of the library
        :param args: positional arguments of the node
        :param kwargs: named arguments of the node
        :param g: the GraphBuilder
        :return: a converter with the signature of the library, None if there is none
        """
        found = self.find_method(target) if is_method else self.find_function(target)
        if found is None and known is not None:
            found = AsUserConverter(known)
        found = self.fallback(target, found, args, kwargs, g)
        return None if found is None else as_library_converter(found)

    def find_function(self, name: Any) -> UserConverter | None:
        """The converter of an operator (name, OpOverload or function), or None."""
        for key in candidate_names(name):
            if key is not None and (fct := self.registered_functions.get(key)) is not None:
                if self.verbose:
                    print(f"[Dispatcher] {name} -> {fct.__name__}")
                return fct
        return None

    def handles(self, name: Any) -> bool:
        """Whether an operator must reach this dispatcher instead of being decomposed."""
        return self.find_function(name) is not None

    def find_method(self, name: str) -> UserConverter | None:
        """The converter of a tensor method, registered as ``aten_meth_<name>``, or None.

        :param name: ``"view"``, or ``"aten_meth_view"``
        """
        name = name.removeprefix("aten_meth_")
        for key in (f"aten_meth_{name}", f"meth_{name}", f"method.{name}"):
            if key in self.registered_functions:
                return self.registered_functions[key]
        return None

    def fallback(
        self, name: Any, fct: UserConverter | None, args: Any, kwargs: Any, builder: Any
    ) -> UserConverter | None:
        """Called after the lookup; its result replaces *fct*, which may be None.

        :param name: the operator
        :param fct: the converter found by this class or by the library, in the users' form
        :param args: positional arguments of the node
        :param kwargs: named arguments of the node
        :param builder: the GraphBuilder
        """
        return fct


class ForceDispatcher(Dispatcher):
    """Writes the operators without converter as nodes of another domain.

    Tensors are the inputs of the node, every other argument becomes an attribute.

    :param signatures: for an operator, the names of its parameters; by default the ones of its
        torch schema, or ``arg_<i>``
    :param domain: domain of the nodes
    :param version: version of the domain
    :param strict: an operator must have a signature
    :param only_registered: only the operators with a signature are written this way
    """

    def __init__(
        self,
        signatures: Mapping[str, list[str]] | None = None,
        verbose: int = 0,
        domain: str = "aten.lib",
        version: int = 1,
        strict: bool = False,
        only_registered: bool = False,
    ) -> None:
        super().__init__({}, verbose=verbose)
        what = "a dictionary {operator: names of its parameters}"
        check_type("signatures", signatures, Mapping, what, optional=True)
        check_type("domain", domain, str)
        check_type("version", version, int)
        self.signatures = dict(signatures or {})
        self.domain = domain
        self.version = version
        self.strict = strict
        self.only_registered = only_registered

    def handles(self, name: Any) -> bool:
        """Whether the operator has a signature; such an operator is not decomposed."""
        return super().handles(name) or self._signature(name) is not None

    def _signature(self, target: Any) -> list[str] | None:
        for key in candidate_names(target):
            if key in self.signatures:
                return list(self.signatures[key])
        return None

    def fallback(
        self, name: Any, fct: UserConverter | None, args: Any, kwargs: Any, builder: Any
    ) -> UserConverter | None:
        """A converter that writes one node for an operator without converter."""
        if fct is not None:
            return fct
        signature = self._signature(name)
        if signature is None and (self.only_registered or self.strict):
            if self.strict and not self.only_registered:
                raise OptionError(
                    f"ForceDispatcher(strict=True) has no signature for {canonical_name(name)}, "
                    f"add it to signatures, it has {sorted(map(str, self.signatures))}."
                )
            return None
        if signature is None and isinstance(name, torch._ops.OpOverload):
            signature = [a.name for a in name._schema.arguments]
        return self._make_converter(name, signature or [])

    def _make_converter(self, target: Any, signature: list[str]) -> UserConverter:
        op_type = canonical_name(target).replace(".", "_").replace("::", "_")

        def convert(
            g: GraphBuilder,
            sts: OutputFacts | None,
            outputs: list[str] | None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            names = [*signature, *(f"arg_{i}" for i in range(len(signature), len(args)))]
            named = [*zip(names, args, strict=False), *kwargs.items()]
            inputs: list[str] = []
            attributes: dict[str, Any] = {}
            for key, value in named:
                tensors = _tensor_list(g, value)
                if tensors is not None:
                    inputs.extend(tensors)
                elif (converted := _attribute(value)) is not None:
                    attributes[key] = converted
            g.add_domain(self.domain, self.version)
            return g.make_node(op_type, inputs, outputs or 1, domain=self.domain, **attributes)

        return convert


def _tensor_list(g: GraphBuilder, value: Any) -> list[str] | None:
    """The names of results in an argument, None if one of its strings is not a result."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    known = [isinstance(v, str) and g.has_type(v) for v in values]
    return values if values and all(known) else None


def _attribute(value: Any) -> Any:
    """The value of an attribute, None if the argument is not set."""
    converters: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
        (bool, int),
        ((int, float, str, np.ndarray), lambda v: v),
        (torch.dtype, to_onnx_type),
        ((list, tuple), lambda v: list(v) if len(v) else None),
        ((torch.device, torch.layout, torch.memory_format), str),
    )
    for types, convert in converters:
        if isinstance(value, types):
            return convert(value)
    return None
