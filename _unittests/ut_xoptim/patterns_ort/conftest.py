"""Fixtures shared by the tests of this folder."""

from __future__ import annotations

import pytest

from xoptim.catalogue import speed_gated as gated


@pytest.fixture
def open_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets all measures: the gates do not depend on the processor of the tests."""
    monkeypatch.setattr(gated, "find_speed_gate", lambda pattern, processor, target: None)
