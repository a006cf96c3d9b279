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
#: tests that are run however many there are
ALWAYS = "test_architecture.py"
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
    """Adds the options of a sample."""
    text = "runs one test in N, the same ones each time"
    parser.addoption("--sample", type=int, default=1, metavar="N", help=text)
    text = "runs N tests at most besides those of the architecture, the same ones each time"
    parser.addoption("--at-most", type=int, default=0, metavar="N", help=text)


@pytest.hookimpl(trylast=True)  # after the option -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the sample, puts the longest files before the others."""
    count, most = config.getoption("sample"), config.getoption("at_most")
    chosen = [item for item in items if _rank(item) % count == 0]
    if most:
        free = sorted((item for item in chosen if item.path.name != ALWAYS), key=_rank)
        left = {id(item) for item in free[most:]}
        chosen = [item for item in chosen if id(item) not in left]
    kept = {id(item) for item in chosen}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = sorted(chosen, key=lambda item: item.path.name not in LONGEST)


def _rank(item: pytest.Item) -> int:
    """A number that only depends on the name of a test."""
    return crc32(item.nodeid.encode())
