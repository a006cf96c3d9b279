"""The garbage collector sleeps while a function runs."""

from __future__ import annotations

import gc

import pytest

from xbuilder.support.gc_pause import without_gc


@without_gc
def _seen(error: Exception | None = None) -> bool:
    if error is not None:
        raise error
    return gc.isenabled()


def test_it_sleeps_then_wakes_up() -> None:
    assert gc.isenabled()
    assert _seen() is False and gc.isenabled()


def test_it_wakes_up_after_an_error() -> None:
    with pytest.raises(ValueError, match="wrong"):
        _seen(ValueError("wrong"))
    assert gc.isenabled()


def test_it_goes_on_sleeping_if_it_was() -> None:
    gc.disable()
    try:
        assert _seen() is False and not gc.isenabled()
    finally:
        gc.enable()
