"""Checks the types of the arguments users give, and refuses a wrong one at once."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Collection
from typing import Any

from onnx import TensorProto

from ..errors import OptionError

#: accepted types of a path
PATH = (str, os.PathLike)

_ELEM_TYPES = frozenset(TensorProto.DataType.values())

_short = reprlib.Repr()
_short.maxother = _short.maxstring = 80


def shown(value: object) -> str:
    """A value as an error shows it: on one line, not longer than a line.

    >>> shown("default"), shown([1, 2]), len(shown("a" * 1000))
    ("'default'", '[1, 2]', 80)
    """
    return " ".join(_short.repr(value).split())


def check_type(
    name: str,
    value: object,
    expected: type[Any] | tuple[type[Any], ...],
    what: str = "",
    optional: bool = False,
) -> None:
    """Refuses a value that does not have the expected type.

    :param name: the argument
    :param value: its value
    :param expected: its type, or several
    :param what: description of what is expected, the types by default
    :param optional: None is accepted
    :raises OptionError: it has another type

    ::

        check_type("filename", filename, PATH, "a path", optional=True)
    """
    types = expected if isinstance(expected, tuple) else (expected,)
    if isinstance(value, types) or (optional and value is None):
        return
    names = [t.__name__ for t in types if t is not type(None)]
    names += ["None"] if optional or type(None) in types else []
    raise OptionError(f"{name} expects {what or ' or '.join(names)}, not {shown(value)}.")


def check_names(name: str, value: object, optional: bool = False) -> None:
    """Refuses a value that is not a collection of names. A string is one name.

    :param name: the argument
    :param value: its value
    :param optional: None is accepted
    :raises OptionError: it is one name, or something else
    """
    if optional and value is None:
        return
    if isinstance(value, str):
        raise OptionError(f"{name} expects several names, [{value!r}] for one, not {value!r}.")
    if not isinstance(value, Collection) or not all(isinstance(v, str) for v in value):
        raise OptionError(f"{name} expects several names, not {shown(value)}.")


def check_elem_type(value: object) -> int:
    """The element type of a tensor, 0 if it is not known.

    :param value: the argument *elem_type* of a method
    :raises OptionError: onnx has no such type
    """
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__") or value not in _ELEM_TYPES:
        raise OptionError(
            f"elem_type expects an element type such as TensorProto.FLOAT, not {shown(value)}."
        )
    return int(value.__index__())
