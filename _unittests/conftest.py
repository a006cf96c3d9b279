"""The order of the tests."""

from __future__ import annotations

import pytest

#: files one process runs for minutes: they start first, the other processes run the rest meanwhile
LONGEST = ("test_mutants.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files before the others."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
