"""The line of a model that changes something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..patches.assumed_sizes import is_of_user, location


def changing_line(call: Callable[[], Any], is_changed: Callable[[], bool]) -> str:
    """The first line, out of the libraries, after which something is changed; empty if there is
    none.

    :param call: what is called
    :param is_changed: whether something is changed
    """
    found = list[str]()
    lines = dict[FrameType, int]()

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if found or module in sys.stdlib_module_names or not is_of_user(frame):
            return None
        if event != "call" and is_changed():
            found.append(location(frame, lines.get(frame, frame.f_lineno)))
        lines[frame] = frame.f_lineno
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        call()
    finally:
        sys.settrace(before)
    return found[0] if found else ""
