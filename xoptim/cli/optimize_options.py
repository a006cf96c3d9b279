"""The options of the commands that optimize models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def trust_shapes_option(command: Command) -> Command:
    """Adds ``--trust-shapes`` to a command, as `trust_shapes`."""
    return click.option(
        "--trust-shapes",
        is_flag=True,
        help="The shapes MODEL declares for computed results are right: rewrites may rely on them.",
    )(command)


def keep_functions_option(command: Command) -> Command:
    """Adds ``--keep-functions`` to a command, as `keep_functions`."""
    return click.option(
        "--keep-functions",
        is_flag=True,
        help="Local functions are optimized where they are, their calls are not inlined.",
    )(command)
