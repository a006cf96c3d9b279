"""Dataclasses whose methods are not compiled before they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


class _Factory:
    """The default value of a field that a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()


@dataclass_transform(field_specifiers=(field,))
def light_dataclass(
    *, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> Callable[[type[T]], type[T]]:
    """Decorator that does what :func:`dataclasses.dataclass` does, with the same options.

    The latter compiles up to seven methods of a class when its module is imported. A command
    imports many classes, and makes objects of a few. Here the constructor is compiled when it is
    first read, and the other methods are not compiled, because they do the same for every class.

    >>> @light_dataclass(frozen=True)
    ... class Interval:
    ...     begin: int
    ...     end: int = 0
    >>> Interval(2) == Interval(2, 0)
    True
    """

    def decorate(cls: Any) -> Any:
        own = {name for name, value in vars(cls).items() if value is not None}
        made: Any = dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        methods: dict[str, Any] = {"__init__": _Constructor(made, frozen), "__repr__": _text}
        if eq:
            methods |= _comparison([f.name for f in fields(made) if f.compare], frozen)
        if frozen:
            methods |= {"__setattr__": _set_nothing, "__delattr__": _delete_nothing}
        if frozen and slots:
            methods |= {"__getstate__": _state, "__setstate__": _restore}
        for name in methods.keys() - own:
            setattr(made, name, methods[name])
        return made

    return decorate


class _Constructor:
    """Stands for the constructor of a class, which it compiles and replaces when it is first read.

    :param cls: the class
    :param frozen: no statement sets its attributes
    """

    def __init__(self, cls: Any, frozen: bool):
        self.cls, self.frozen = cls, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        self.cls.__init__ = made = self._compiled()
        return made.__get__(instance, owner)

    def _compiled(self) -> Any:
        cls, known = self.cls, {"FACTORY": FACTORY, "set_": object.__setattr__}
        words, lines = ["self"], []
        for f in sorted(fields(cls), key=attrgetter("kw_only")):
            default, has_factory = f"default_{f.name}", f.default_factory is not MISSING
            known[default] = f.default_factory if has_factory else f.default
            value = f"{default}()" if has_factory else default
            if f.init:
                words += ["*"] if f.kw_only and "*" not in words else []
                end = f"={'FACTORY' if has_factory else default}"
                words.append(f.name if known[default] is MISSING else f.name + end)
                value = f"{value} if {f.name} is FACTORY else {f.name}" if has_factory else f.name
            if f.init or known[default] is not MISSING:
                setting = f"set_(self, {f.name!r}, {value})"
                lines.append(setting if self.frozen else f"self.{f.name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        text = f"def make({', '.join(known)}):\n def __init__({', '.join(words)}):\n  "
        text += "\n  ".join(lines or ["pass"]) + "\n return __init__"
        space: dict[str, Any] = {}
        exec(text, vars(sys.modules[cls.__module__]), space)
        init = space["make"](**known)
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        init.__annotations__ = {f.name: f.type for f in fields(cls) if f.init} | {"return": None}
        return init


def _comparison(names: list[str], frozen: bool) -> dict[str, Any]:
    """The methods that compare objects of one class.

    :param names: the attributes they compare
    :param frozen: objects have a hash
    """
    key = attrgetter("__class__", *names)

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return key(self) == key(other)

    def hashed(self: Any) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed if frozen else None}


@recursive_repr()
def _text(self: Any) -> str:
    values = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(values)})"


def _set_nothing(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_nothing(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
