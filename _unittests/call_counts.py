"""Cost as a number of calls, which does not depend on the machine nor on its load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def count_calls(function: Callable[..., Any], *args: Any) -> int:
    """Runs a function, returns the number of calls, python's and built-in ones, it leads to."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(previous)
    return count
