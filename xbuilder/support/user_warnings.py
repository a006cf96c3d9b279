"""Warnings that point at the code of the user."""

from __future__ import annotations

import sys
import warnings

#: packages of the project, and modules whose decorators it uses: their lines say nothing to a user
_PACKAGES = frozenset({"xbuilder", "xoptim", "torch_interpreter", "contextlib", "functools"})


def warn_user(message: str) -> None:
    """Warns with the line of the user's code that called the project.

    :param message: the warning

    ::

        warn_user("No fixed point after 3 iterations.")
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_skipped(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _is_skipped(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES
