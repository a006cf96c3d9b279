"""The page for contributors is followed to the letter in a copy of the project: its files are added,
its lines too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("xbuilder", "xoptim", "torch_interpreter")
#: tests of the project every new file has to pass
OTHERS = (
    "_unittests/test_architecture.py",
    "_unittests/ut_xoptim/catalogue/test_phases.py",
    "_unittests/ut_xbuilder/shapes/test_families.py::test_the_table_is_complete",
    "_unittests/ut_xoptim/cli/test_main.py::test_every_subcommand_is_described",
)
FILE = re.compile(r"^( *)\.\. code-block:: (\w+)\n +:caption: (\S+)\n((?:\1 +.*\n|\s*\n)+)", re.M)


def blocks_of_the_page(language: str) -> dict[str, str]:
    """The blocks of a language by the path in their caption."""
    page = (ROOT / "_doc" / "CONTRIBUTING.rst").read_text(encoding="utf-8")
    blocks = (match[1:] for match in FILE.findall(page))
    return {p: textwrap.dedent(t).strip("\n") + "\n" for lang, p, t in blocks if lang == language}


def files_of_the_page() -> dict[str, str]:
    """The new files by their path."""
    return blocks_of_the_page("python")


def with_hunks(text: str, diff: str) -> str:
    """A text with the added lines of hunks, the other lines of which say where."""
    for hunk in diff.split("@@\n")[1:]:
        lines = [(line[0], f"{line[1:]}\n") for line in hunk.splitlines()]
        place = "".join(line for sign, line in lines if sign == " ")
        assert text.count(place) == 1, f"{place!r} is not found once, mend the page"
        text = text.replace(place, "".join(line for _, line in lines))
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the files of the page."""
    folder = tmp_path_factory.mktemp("project")
    hidden = shutil.ignore_patterns("__pycache__")
    for name in (*PACKAGES, "_unittests"):
        shutil.copytree(ROOT / name, folder / name, ignore=hidden)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, diff in blocks_of_the_page("diff").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        text = with_hunks((ROOT / path).read_text(encoding="utf-8"), diff)
        (folder / path).write_text(text, encoding="utf-8")
    for path, text in files_of_the_page().items():
        file = folder / path
        assert not file.exists(), f"{path} is there already, the page needs another example"
        file.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_a_test_for_each_file():
    files = files_of_the_page()
    tests = {Path(path).stem for path in files if Path(path).stem.startswith("test_")}
    others = {f"test_{Path(path).stem}" for path in files} - {f"test_{name}" for name in tests}
    assert tests == others and len(tests) == 5


def test_tests_of_the_page_pass(copy):
    tests = [path for path in files_of_the_page() if Path(path).stem.startswith("test_")]
    if find_spec("torch") is None:
        tests = [path for path in tests if "ut_torch_interpreter" not in path]
    run(copy, "pytest", "-q", "-p", "no:cacheprovider", *tests, *OTHERS)


def test_style_of_the_page(copy):
    files = [*files_of_the_page(), *(p for p in blocks_of_the_page("diff") if p.endswith(".py"))]
    run(copy, "ruff", "check", "--no-cache", *files)
    run(copy, "ruff", "format", "--no-cache", "--check", *files)
