"""Sets attributes of a class or a module for the time of a context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

_MISSING = object()


@contextlib.contextmanager
def patched(owner: Any, changes: Mapping[str, Any]) -> Iterator[None]:
    """Sets attributes in this context; those it inherits are inherited again afterwards.

    :param owner: a class or a module
    :param changes: attribute -> value

    >>> import math
    >>> with patched(math, {"pi": 3}):
    ...     print(math.pi)
    3
    >>> round(math.pi, 2)
    3.14
    """
    before = {name: vars(owner).get(name, _MISSING) for name in changes}
    for name, value in changes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
