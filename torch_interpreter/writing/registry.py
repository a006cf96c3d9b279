"""The registry of converters, one function for each operator torch.export may leave in a graph.

A converter is a function of the operands, ``fct(g, *args, **kwargs)``:

* *g* is the :class:`.graph_writer.GraphWriter` that receives the nodes,
* then come the arguments of the operator: a tensor is the name of a result (str), a symbolic
  scalar is a :class:`.symbols.SymScalar`, everything else is the python value.

It returns the name of the result, or a list of names. The interpreter gives them the names of the
fx nodes, their types and their shapes. A converter that depends on the facts of torch about the
results declares a parameter ``expected: OutputFacts = UNKNOWN_OUTPUTS``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch

from .graph_writer import GraphWriter, Shape

Converter = Callable[..., Any]
_T = TypeVar("_T")
_Registered = TypeVar("_Registered", bound=Converter)


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """Facts torch knows about the outputs of the node being converted.

    :param types: ONNX element type of each output, 0 when unknown
    :param shapes: shape (int or str dimensions) of each output, None when unknown
    :param node: the ``torch.fx.Node``
    :param names: the names the results will have
    """

    types: Sequence[int] = ()
    shapes: Sequence[Shape | None] = ()
    node: torch.fx.Node | None = None
    names: Sequence[str] = ()

    @property
    def type(self) -> int:
        """Element type of the first output."""
        return self.types[0] if self.types else 0

    @property
    def shape(self) -> Shape | None:
        """Shape of the first output."""
        return self.shapes[0] if self.shapes else None

    @property
    def count(self) -> int:
        """Number of outputs, 0 when it is unknown."""
        return len(self.types)

    def is_used(self, index: int) -> bool:
        """Whether something reads one of several outputs."""
        users = [] if self.node is None else list(self.node.users)
        return any(len(u.args) > 1 and u.args[1] == index and u.users for u in users)


#: for a converter called by another one
UNKNOWN_OUTPUTS = OutputFacts()

_CONVERTERS: dict[str, Converter] = {}
#: converter -> whether it declares the parameter `expected`, None before its first call
_WANTS_FACTS: dict[Converter, bool | None] = {}


def aten(*names: str) -> Callable[[_Registered], _Registered]:
    """Registers a converter for one or several operators.

    :param names: full names: ``"aten.flip.default"``, ``"operator.add"``, ``"math.ceil"``
    :raises ValueError: an operator already has a converter

    ::

        @aten("aten.flip.default")
        def flip(g, x, dims): ...
    """

    def register(fct: _Registered) -> _Registered:
        for name in names:
            if name in _CONVERTERS:
                known = _CONVERTERS[name]
                raise ValueError(
                    f"{name!r} already has the converter {known.__module__}.{known.__name__}, "
                    f"{fct.__module__}.{fct.__name__} cannot replace it. "
                    f"Use a Dispatcher to overwrite a converter."
                )
            _CONVERTERS[name] = fct
        _WANTS_FACTS.setdefault(fct, None)
        return fct

    return register


def curried(function: Callable[..., _T]) -> Callable[..., Callable[..., _T]]:
    """Decorator: the arguments before the graph come first, and give a converter.

    :param function: a converter with other parameters before the graph

    ::

        @curried
        def same_operator(op_type, g, x): ...

        aten("aten.abs.default")(same_operator("Abs"))
    """

    def converter_of(*row: Any) -> Callable[..., _T]:
        converter = partial(function, *row)
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(converter, name, getattr(function, name))
        return converter

    return converter_of


def aten_table(
    factory: Callable[[Any], Converter], table: Mapping[str, Any], *templates: str
) -> None:
    """Registers a family of converters.

    :param factory: makes a converter from a row
    :param table: for each operator, the row of its converter
    :param templates: the names to register, braces stand for the operator

    ::

        aten_table(same_operator, {"abs": "Abs", "neg": "Neg"}, "aten.{}.default")
    """
    for name, row in table.items():
        aten(*(template.format(name) for template in templates))(factory(row))


def find_converter(name: str) -> Converter | None:
    """The converter of an operator, None if there is none."""
    return _CONVERTERS.get(name)


def is_registered(fct: Converter) -> bool:
    """Whether a function is one of the converters of the library."""
    return isinstance(fct, Hashable) and fct in _WANTS_FACTS


def registered_names() -> list[str]:
    """The sorted names of all operators with a converter."""
    return sorted(_CONVERTERS)


def call_converter(
    fct: Converter,
    g: GraphWriter,
    expected: OutputFacts,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Calls a converter, with the facts torch knows about the results if it asks for them."""
    if _wants_facts(fct):
        return fct(g, *args, **kwargs, expected=expected)
    return fct(g, *args, **kwargs)


def _wants_facts(fct: Converter) -> bool:
    """Whether a converter declares the parameter `expected`; one of the library is read once."""
    known = _WANTS_FACTS.get(fct) if is_registered(fct) else None
    if known is None:
        known = "expected" in inspect.signature(fct).parameters
        if is_registered(fct):
            _WANTS_FACTS[fct] = known
    return known
