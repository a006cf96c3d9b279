"""Classes of Python as the code of a model sees them: a symbolic size is an ``int``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

#: what torch puts in place of the numbers of Python
_CLASSES: Mapping[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


class _StandIn(type):
    """Stands for a class of Python: the same one, but a call accepts what torch puts in place of
    a number."""

    real: type
    accepted: tuple[type, ...]
    convert: Callable[[Any], Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Converts what torch puts in place of a number, calls the class otherwise."""
        if len(args) == 1 and not kwargs and isinstance(args[0], cls.accepted):
            return cls.convert(args[0])
        return cls.real(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether a value has the class it stands for."""
        return isinstance(instance, cls.real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Whether a class derives from the class it stands for."""
        return issubclass(subclass, cls.real)

    def __getattr__(cls, name: str) -> Any:
        """An attribute of the class it stands for."""
        return getattr(cls.real, name)

    def __eq__(cls, other: object) -> bool:
        """Equal to the class it stands for."""
        return other is cls or other is cls.real

    def __hash__(cls) -> int:
        """The hash of the class it stands for."""
        return hash(cls.real)


def stand_in(real: type, accepted: tuple[type, ...], convert: Callable[[Any], Any]) -> type:
    """A class that behaves as another one, but for what torch puts in place of a number.

    :param real: the class it stands for
    :param accepted: the classes that *convert* accepts
    :param convert: what a call does with one of them

    >>> import torch
    >>> number = stand_in(int, (torch.Tensor,), lambda x: "a tensor")
    >>> number(torch.ones(1)), number("3"), isinstance(3, number), number == int
    ('a tensor', 3, True, True)
    """
    members = {"real": real, "accepted": accepted, "convert": staticmethod(convert)}
    return _StandIn(real.__name__, (), members)


def _is_instance(value: Any, classes: Any) -> bool:
    """Whether a value is an instance of some classes, a symbolic size being an ``int``."""
    known = _CLASSES.get(type(value))
    return isinstance(value, classes) or (known is not None and issubclass(known, classes))


def _class_of(value: Any) -> type:
    return _CLASSES[type(value)]


#: name of a function of Python -> what replaces it in the code of a model
CLASS_NAMES: Mapping[str, Any] = {
    "isinstance": _is_instance,
    "type": stand_in(type, tuple(_CLASSES), _class_of),
}
