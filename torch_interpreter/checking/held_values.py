"""Values that Python holds between two calls of a model: attributes, globals, generators."""

from __future__ import annotations

import contextlib
import pickle
import random
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from operator import length_hint
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

#: the attributes of torch: what an export does with parameters, buffers and hooks is its own matter
_OF_TORCH = frozenset(vars(torch.nn.Module()))
_NOT_WALKED = (torch.nn.Module, torch.Tensor, type, FunctionType, ModuleType)
_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
_SEQUENCES = (list, tuple, deque)
_CONTAINERS = (list, set, deque, *_MAPPINGS)
#: values that are the same when they are equal
_PLAIN = (int, float, complex, str, bytes, set)
_STATES = (*_PLAIN, tuple, type(None), *_CONTAINERS, torch.Tensor)
#: packages whose classes and functions keep what they hold
_LIBRARIES = frozenset({"torch", "torch_interpreter", "numpy", "sympy", *sys.stdlib_module_names})
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
_HOLDERS = frozenset((*_CONTAINERS, *_GENERATORS))
#: beginning of the names of the generators that modules hold
OF_PYTHON = "the generator of"
#: modules of the iterators of Python, which tell their position in their text or by their length
_OF_ITERATORS = ("builtins", "itertools")
_DECORATED = (FunctionType, type(lru_cache(id)))
_MISSING = object()
Values = Mapping[Any, Any]


class Held(NamedTuple):
    """Some values, which have a name each.

    :param owner: what holds them: ``self.0``, the name of a class, nothing for globals
    :param read: reads them
    :param write: gives them back
    :param before: the values first read
    :param is_whole: the names are those of items, or of nothing: only the owner is told
    """

    owner: str
    read: Callable[[], Values]
    write: Callable[[Values], None]
    before: Values
    is_whole: bool = False

    def changes(self) -> list[str]:
        """The names of what has another value."""
        if self._is_as_before():
            return []
        values, before = self.read(), self.before
        found = dict[str, None]()
        for name in dict.fromkeys((*before, *values)):
            old, new = before.get(name, _MISSING), values.get(name, _MISSING)
            if not _is_same(old, new):
                found[self.owner if self.is_whole else f"{self.owner}.{name}".lstrip(".")] = None
        return list(found)

    def restore(self) -> None:
        """Gives back the values first read."""
        if not self._is_as_before():
            self.write(self.before)

    def _is_as_before(self) -> bool:
        values, before = self.read(), self.before
        return len(values) == len(before) and all(
            values.get(name, _MISSING) is value for name, value in before.items()
        )


def _is_same(old: Any, new: Any) -> bool:
    """Whether a value is the same, or a copy of the same items."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, _MAPPINGS):
        return old.keys() == new.keys() and all(_is_same(v, new[k]) for k, v in old.items())
    if isinstance(old, _SEQUENCES):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return isinstance(old, _PLAIN) and bool(old == new)


def held_values(mod: torch.nn.Module) -> list[Held]:
    """The attributes of the modules of a model and of the objects they hold, those of their
    classes, the globals that their methods name, the items of the containers among all these, the
    generators of random numbers.

    :param mod: the model
    """
    found = [*_attributes(mod), *_of_classes(mod)]
    seen = set[int]()
    for held in list(found):
        for name, value in held.before.items():
            if type(value) in _HOLDERS:
                found.extend(_items(f"{held.owner}.{name}".lstrip("."), value, seen))
            elif _is_iterator(value):
                found.append(_iterator(held, name, value))
    found.append(_generator(f"{OF_PYTHON} random", random.getstate, random.setstate))
    put = np.random.set_state
    found.append(_generator(f"{OF_PYTHON} numpy.random", np.random.get_state, put))
    return found


def _attributes(mod: torch.nn.Module) -> Iterator[Held]:
    """The attributes of the modules of a model and of the objects they hold."""
    seen = set[int]()
    for path, module in mod.named_modules():
        owner = f"self.{path}".rstrip(".")
        yield _of_dict(owner, vars(module), _OF_TORCH)
        for name, value in vars(module).items():
            owned = getattr(value, "__dict__", None)
            if name in _OF_TORCH or isinstance(value, _NOT_WALKED) or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(owned, dict):
                yield _of_dict(f"{owner}.{name}", owned)
            if slots := _slots(value):
                yield _of_slots(f"{owner}.{name}", value, slots)


def _of_dict(owner: str, values: dict[Any, Any], left: Collection[Any] = ()) -> Held:
    """The attributes in a dictionary, those of some names excepted."""

    def read() -> Values:
        return {name: value for name, value in values.items() if name not in left}

    def write(before: Values) -> None:
        for name in [n for n in values if n not in before and n not in left]:
            del values[name]
        values.update(before)

    return Held(owner, read, write, read())


def _slots(value: Any) -> list[str]:
    """The names of the attributes of an object that are in no dictionary."""
    if _is_of_library(type(value)):
        return []
    owned = (vars(c).get("__slots__", ()) for c in type(value).__mro__)
    names = (name for slots in owned for name in ((slots,) if isinstance(slots, str) else slots))
    return [name for name in names if name[:2] != "__"]


def _of_slots(owner: str, value: Any, names: Collection[str]) -> Held:
    """The attributes of an object that are in no dictionary."""

    def read() -> Values:
        return {name: getattr(value, name) for name in names if hasattr(value, name)}

    def write(before: Values) -> None:
        for name in [n for n in names if n not in before and hasattr(value, n)]:
            delattr(value, name)
        _set(value, before)

    return Held(owner, read, write, read())


def _of_classes(mod: torch.nn.Module) -> Iterator[Held]:
    """The attributes of the classes of a model and the globals that their methods name."""
    classes = {c: None for m in mod.modules() for c in type(m).__mro__ if not _is_of_library(c)}
    functions = list[FunctionType]()
    for cls in classes:
        names = [n for n, v in vars(cls).items() if n[:2] != "__" and isinstance(v, _STATES)]
        read = partial(_read, vars(cls), names)
        yield Held(cls.__name__, read, partial(_set, cls), read())
        functions.extend(f for v in vars(cls).values() if (f := _function(v)) is not None)
    for values, own in _globals_of(functions):
        read = partial(_read, values, own)
        yield Held("", read, values.update, read())


def _read(values: Values, names: Collection[str]) -> Values:
    return {name: values[name] for name in names if name in values}


def _set(owner: Any, values: Values) -> None:
    for name, value in values.items():
        setattr(owner, name, value)


def _is_of_library(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in _LIBRARIES


def _function(value: Any) -> FunctionType | None:
    """The function of a method, of a property, of what decorates it."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    while isinstance(value, _DECORATED) and "__wrapped__" in vars(value):
        value = vars(value)["__wrapped__"]
    return value if isinstance(value, FunctionType) else None


def _globals_of(functions: list[FunctionType]) -> list[tuple[dict[str, Any], set[str]]]:
    """The globals that functions name, and those of the functions that they name, if they may be a
    state."""
    found = dict[int, tuple[dict[str, Any], set[str]]]()
    seen = set[CodeType]()
    for function in functions:  # the list grows
        values = function.__globals__
        _, own = found.setdefault(id(values), (values, set()))
        for code in _codes(function.__code__):
            if code in seen:
                continue
            seen.add(code)
            for name in code.co_names:
                value = values.get(name)
                called = None if isinstance(value, _STATES) else _function(value)
                if name in values and isinstance(value, _STATES):
                    own.add(name)
                elif called is not None and not _is_of_library(called):
                    functions.append(called)
    return list(found.values())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _items(owner: str, container: Any, seen: set[int]) -> Iterator[Held]:
    """The items of a container, and of the containers among them; the state of a generator."""
    if id(container) in seen:
        return
    seen.add(id(container))
    if not isinstance(container, _CONTAINERS):
        yield _generator(owner, *_state_of(container))
        return

    def read() -> Values:
        if isinstance(container, dict):
            return dict(container)
        if isinstance(container, set):
            return {id(item): item for item in container}
        return dict(enumerate(container))

    def write(before: Values) -> None:
        container.clear()
        if isinstance(container, dict):
            container.update(before)
        else:
            add = container.update if isinstance(container, set) else container.extend
            add(before.values())

    held = Held(owner, read, write, read(), True)
    yield held
    for name, item in held.before.items():
        if type(item) in _HOLDERS:
            yield from _items(owner, item, seen)
        elif _is_iterator(item):
            yield _iterator(held, name, item)


def _state_of(generator: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """The functions that give and set the state of a generator of random numbers."""
    if isinstance(generator, random.Random):
        return generator.getstate, generator.setstate
    if isinstance(generator, np.random.RandomState):
        return generator.get_state, generator.set_state
    bits = generator.bit_generator
    return lambda: bits.state, partial(setattr, bits, "state")


def _is_iterator(value: Any) -> bool:
    return isinstance(value, Iterator) and type(value).__module__ in _OF_ITERATORS


def _iterator(held: Held, name: Any, iterator: Iterator[Any]) -> Held:
    """The position of an iterator among some values, if it tells it; a copy of it is given back."""
    copied: Any = iterator
    with contextlib.suppress(Exception):  # a generator has no copy
        copied = _copied(iterator)

    def read() -> Values:
        return {"": _position(iterator)}

    before = read()

    def write(_: Values) -> None:
        if copied is not iterator and read() != before:
            held.write({**held.read(), name: copied})

    owner = held.owner if held.is_whole else f"{held.owner}.{name}".lstrip(".")
    return Held(owner, read, write, before, True)


def _parts(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """A function, its arguments and perhaps a state, which build a copy of an iterator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of Python do not copy those of itertools
        parts: tuple[Any, ...] = iterator.__reduce__()  # type: ignore[assignment]
    return parts


def _copied(value: Any) -> Any:
    """A copy of an iterator, and of those it reads, at the same position; the items are shared."""
    if isinstance(value, Iterator):
        build, args, *state = _parts(value)
        copied = build(*map(_copied, args))
        if state and state[0] is not None:
            copied.__setstate__(_copied_state(state[0]))
        return copied
    return value


def _copied_state(state: Any) -> Any:
    """The state of an iterator: others, numbers, the list that a cycle extends."""
    if type(state) is not tuple:
        return state
    return tuple([*item] if type(item) is list else _copied(item) for item in state)


def _position(value: Any) -> Any:
    """The state of an iterator and of those it reads: another one after each item."""
    if isinstance(value, Iterator):
        inner: Any = ()
        with contextlib.suppress(Exception):
            inner = tuple(_position(part) for part in _parts(value)[1:])
        return length_hint(value, 0), repr(value), inner
    if type(value) is tuple:
        return tuple(map(_position, value))
    return value if isinstance(value, int) else len(value) if type(value) is list else None


def _generator(owner: str, get: Callable[[], Any], put: Callable[[Any], None]) -> Held:
    """The state of a generator of random numbers."""
    state = get()

    def read() -> Values:
        return {"": pickle.dumps(get())}

    def write(_: Values) -> None:
        put(state)

    return Held(owner, read, write, read(), True)
