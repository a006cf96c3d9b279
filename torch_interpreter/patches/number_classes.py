"""Classes of Python as the code of a model sees them: a symbolic size is an ``int``."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _device

from ..common.symbolic_ranges import SymbolicList, SymbolicRange
from .attributes import patched

#: what torch puts in place of the numbers of Python
_CLASSES: Mapping[type, type] = {
    torch.SymInt: int,
    torch.SymFloat: float,
    torch.SymBool: bool,
    SymbolicRange: range,
    SymbolicList: list,
}
#: functions of torch, methods of tensors, that accept a class of Python as a type (``dtype=int``)
_TYPED = (
    *("arange", "as_tensor", "asarray", "cumprod", "cumsum", "empty", "empty_like", "eye", "full"),
    *("empty_permuted", "empty_strided", "full_like", "linspace", "log_softmax", "logspace"),
    *("mean", "nanmean", "nansum", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"),
    *("norm", "normal", "ones", "ones_like", "prod", "rand", "rand_like", "randint"),
    *("randint_like", "randn", "randn_like", "randperm", "range", "softmax", "sum", "tensor"),
    *("to", "tril_indices", "triu_indices", "type", "view", "zeros", "zeros_like"),
)


class _StandIn(type):
    """Stands for a class of Python: the same one, but a call accepts what torch puts in place of
    a number."""

    real: type
    accepted: tuple[type, ...]
    convert: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Converts what torch puts in place of a number, calls the class otherwise."""
        if args and not kwargs and all(isinstance(a, cls.accepted) for a in args):
            return cls.convert(*args)
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


def stand_in(real: type, accepted: tuple[type, ...], convert: Callable[..., Any]) -> type:
    """A class that behaves as another one, but for what torch puts in place of a number.

    :param real: the class it stands for
    :param accepted: the classes that *convert* accepts
    :param convert: what a call does with arguments of these classes

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


def _class_of(*args: Any) -> type:
    """The class of a value as the code that asks for it names it: ``type(n) is int``, even where
    something stands for ``int``."""
    if len(args) != 1:
        return type(*args)
    found = _CLASSES.get(type(args[0]), type(args[0]))
    named = sys._getframe(2).f_globals.get(found.__name__)
    return named if isinstance(named, _StandIn) and named.real is found else found


#: name of a function of Python -> what replaces it in the code of a model
CLASS_NAMES: Mapping[str, Any] = {
    "isinstance": _is_instance,
    "type": stand_in(type, (object,), _class_of),
}


def _with_classes(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that receives a class of Python where it is called with its stand-in."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(a.real if isinstance(a, _StandIn) else a for a in args)
        named = {k: v.real if isinstance(v, _StandIn) else v for k, v in kwargs.items()}
        return original(*args, **named)

    return call


@contextlib.contextmanager
def classes_as_types() -> Iterator[None]:
    """torch accepts what stands for a class where it accepts the class, in this context.

    >>> import torch
    >>> number = stand_in(int, (torch.SymInt,), abs)
    >>> with classes_as_types():
    ...     torch.zeros(2, dtype=number), torch.ones(2).to(number)
    (tensor([0, 0]), tensor([1, 1]))
    """
    # what torch looks up once must be its own functions
    _device._device_constructors()
    torch.overrides.get_overridable_functions()
    with contextlib.ExitStack() as stack:
        for owner in (torch, torch.Tensor):
            known = {n: _with_classes(getattr(owner, n)) for n in _TYPED if hasattr(owner, n)}
            stack.enter_context(patched(owner, known))
        yield
