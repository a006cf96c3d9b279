"""The registry of converters, one function for each operator torch.export may leave in a graph.

A converter has the signature ``fct(g, sts, outputs, *args, **kwargs)``:

* *g* is the GraphBuilder,
* *sts* is an :class:`OutputFacts`, or None when another converter makes the call,
* *outputs* is the list of names to give to the results, or None to let the builder choose,
* then the arguments of the operator: a tensor is the name of a result (str), a symbolic scalar
  is a :class:`torch_interpreter.symbols.SymScalar`, everything else is the python value.

It returns the name of the result, or a list of names. Types and shapes of the results come
from torch, the interpreter sets them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Converter = Callable[..., Any]


@dataclass(slots=True)
class OutputFacts:
    """What torch knows about the outputs of the node being converted.

    :param types: ONNX element type of each output, 0 when unknown
    :param shapes: shape (int or str dimensions) of each output, None when unknown
    :param node: the ``torch.fx.Node``
    """

    types: list[int] = field(default_factory=list)
    shapes: list[tuple[int | str, ...] | None] = field(default_factory=list)
    node: Any = None

    @property
    def type(self) -> int:
        """Element type of the first output."""
        return self.types[0] if self.types else 0

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Shape of the first output."""
        return self.shapes[0] if self.shapes else None


_CONVERTERS: dict[str, Converter] = {}


def aten(*names: str) -> Callable[[Converter], Converter]:
    """Registers a converter for one or several operators.

    :param names: full names: ``"aten.flip.default"``, ``"operator.add"``, ``"math.ceil"``
    :raises ValueError: an operator already has a converter

    ::

        @aten("aten.flip.default")
        def flip(g, sts, outputs, x, dims): ...
    """

    def register(fct: Converter) -> Converter:
        for name in names:
            if name in _CONVERTERS:
                known = _CONVERTERS[name]
                raise ValueError(
                    f"{name!r} already has the converter {known.__module__}.{known.__name__}, "
                    f"{fct.__module__}.{fct.__name__} cannot replace it. "
                    f"Use a Dispatcher to overwrite a converter."
                )
            _CONVERTERS[name] = fct
        return fct

    return register


def find_converter(name: str) -> Converter | None:
    """Returns the converter of an operator, None if there is none."""
    return _CONVERTERS.get(name)


def registered_names() -> list[str]:
    """Returns the sorted names of all operators with a converter."""
    return sorted(_CONVERTERS)
