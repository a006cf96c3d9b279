"""The order of the tests, a sample of them, and those left out without torch."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest

# a failing assert of a module that tests share shows the values it compares
pytest.register_assert_rewrite("ut_torch_interpreter", "ut_xbuilder", "ut_xoptim")

#: files one process runs for minutes: they start first, the other processes run the rest meanwhile
LONGEST = ("test_mutants.py",)
#: the tests of the package that imports torch
TORCH = Path(__file__).parent / "ut_torch_interpreter"


class LeftOut(pytest.Module):
    """A file whose tests are skipped."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Gives no test, and the reason."""
        pytest.skip("torch is not installed")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> LeftOut | None:
    """Leaves the tests of ``torch_interpreter`` out if torch is not installed."""
    if TORCH in module_path.parents and find_spec("torch") is None:
        return LeftOut.from_parent(parent, path=module_path)
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of a sample."""
    text = "runs one test in N, the same ones each time"
    parser.addoption("--sample", type=int, default=1, metavar="N", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the sample, puts the longest files before the others."""
    count = config.getoption("sample")
    others = [item for item in items if crc32(item.nodeid.encode()) % count]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if crc32(item.nodeid.encode()) % count == 0]
    items.sort(key=lambda item: item.path.name not in LONGEST)
