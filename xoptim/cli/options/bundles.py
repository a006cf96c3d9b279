"""Several options that a command receives as one object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..terminal.output import several_options


def bundled(
    kind: type[Any], name: str, *options: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds options to a command, which receives one object.

    :param kind: a named tuple; its fields have the names of the options
    :param name: the argument of the command
    :param options: options of click, in the order of the help
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_bundle(*args: Any, **kwargs: Any) -> Any:
            kwargs[name] = kind(**{field: kwargs.pop(field) for field in kind._fields})
            return command(*args, **kwargs)

        return several_options(*options)(with_bundle)

    return decorate
