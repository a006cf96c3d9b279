"""The line of a model that changes something."""

from __future__ import annotations

import sys

import pytest

from torch_interpreter.checking.changing_lines import changing_line

NUMBERS: list[int] = []


def _append() -> None:
    NUMBERS.append(1)


def _outer() -> None:
    sorted([3, 2])
    _append()
    NUMBERS.clear()


def test_the_line_of_a_change() -> None:
    before = sys.gettrace()
    place = changing_line(_outer, lambda: bool(NUMBERS))
    assert place.endswith(", in _append: NUMBERS.append(1)")
    assert not NUMBERS and sys.gettrace() is before


def test_no_line() -> None:
    assert changing_line(_outer, lambda: False) == ""


def test_the_trace_ends_with_an_error() -> None:
    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        changing_line(lambda: 1 // len(NUMBERS), lambda: False)
    assert sys.gettrace() is before
