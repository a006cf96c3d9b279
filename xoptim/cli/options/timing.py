"""The options of the commands that measure time or need to know what runs a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from xbuilder.runtimes.processors import PROVIDERS

#: adds ``--threads``
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of threads of onnxruntime.",
)
#: adds ``--blocks``
blocks_option = click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=9,
    show_default=True,
    help="Number of comparisons, the median of their ratios is kept.",
)


def processor_option(text: str) -> Callable[[Any], Any]:
    """Adds ``--processor`` to a command.

    :param text: the help
    """
    return click.option(
        "--processor",
        type=click.Choice(sorted(PROVIDERS)),
        default="CPU",
        show_default=True,
        help=text,
    )
