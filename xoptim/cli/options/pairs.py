"""Options that are given several times, each with a name and its value: ``batch=1``, ``x:1,3``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

Value = TypeVar("Value")


def pairs(
    read: Callable[[str], Value | None], form: str, noun: str, sign: str = "="
) -> Callable[[click.Context, click.Parameter, Sequence[str]], dict[str, Value]]:
    """A callback of click that reads an option into a dictionary.

    :param read: reads the text of a value, None if it is not one
    :param form: what the user should write
    :param noun: the values, for a name that has two of them
    :param sign: between a name and its value
    :return: the callback, which refuses another form, or two values for a name
    """

    def callback(
        ctx: click.Context, param: click.Parameter, values: Sequence[str]
    ) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for text in values:
            name, _, rest = text.rpartition(sign)
            value = read(rest) if name else None
            if value is None:
                raise click.BadParameter(f"{text!r} is not {form}", ctx, param)
            if found.setdefault(name, value) != value:
                raise click.BadParameter(f"{name!r} has two {noun}", ctx, param)
        return found

    return callback


def _read_size(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


#: the callback of ``--dim batch=4``
parse_sizes = pairs(_read_size, "name=size, such as batch=4", "sizes")
