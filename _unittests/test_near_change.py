"""The tests near a change, in a small checkout, then in this one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from near_change import ROOT, SHORT, TABLES, NearTests, changed_files, is_test

FILES = {
    "core/notes.txt": "",
    "_doc/design.rst": "",
    "_doc/one.csv": "",
    "xbuilder/__init__.py": "",
    "xbuilder/errors.py": "",
    "xbuilder/dims/__init__.py": "from .dim import Dim",
    "xbuilder/dims/dim.py": "from ..errors import Error",
    "xbuilder/dims/parser.py": "from .grammar import Grammar\nfrom ..errors import Error",
    "xbuilder/dims/grammar.py": "from . import tokens",
    "xbuilder/dims/tokens.py": "",
    "xoptim/clip.py": "from xbuilder.dims.dim import Dim\nfrom xbuilder import alone",
    "xbuilder/alone.py": "",
    "xoptim/registered.py": "",
    "_unittests/architecture.py": "",
    "_unittests/test_architecture.py": "",
    "_unittests/ut_doc/test_documentation.py": "",
    "_unittests/ut_doc/test_tables.py": "'one.csv'",
    "_unittests/ut_xbuilder/checks.py": "",
    "_unittests/ut_xbuilder/dims/conftest.py": "",
    "_unittests/ut_xbuilder/dims/test_dim.py": "",
    "_unittests/ut_xbuilder/dims/test_dim_text.py": "",
    "_unittests/ut_xbuilder/dims/test_dimension.py": "",
    "_unittests/ut_xbuilder/dims/test_parser.py": "from ut_xbuilder.checks import same",
    "_unittests/ut_xoptim/test_clip.py": "",
}
DIM = {"test_dim.py", "test_dim_text.py"}
FOLDER = {*DIM, "test_dimension.py", "test_parser.py"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project of a few files."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("_unittests/ut_xoptim/test_clip.py", {"test_clip.py"}),
        ("_unittests/ut_xoptim/test_removed.py", set()),
        ("xbuilder/dims/dim.py", DIM),
        ("xbuilder/dims/__init__.py", FOLDER),
        ("_unittests/ut_xbuilder/dims/conftest.py", FOLDER),
        ("xbuilder/dims/grammar.py", {"test_parser.py"}),
        ("xbuilder/dims/tokens.py", {"test_parser.py"}),
        ("xbuilder/errors.py", {*DIM, "test_parser.py"}),
        ("xbuilder/alone.py", {"test_clip.py"}),
        ("xoptim/registered.py", {"test_clip.py"}),
        ("_unittests/ut_xbuilder/checks.py", {"test_parser.py"}),
        ("_unittests/architecture.py", {"test_architecture.py"}),
        ("_doc/one.csv", {"test_tables.py"}),
        ("_doc/design.rst", {"test_documentation.py"}),
        ("core/notes.txt", set()),
    ],
)
def test_tests_of_a_file(checkout: Path, path: str, expected: set[str]) -> None:
    assert {Path(test).name for test in NearTests(checkout).of(path)} == expected


def test_the_architecture_is_always_tested(checkout: Path) -> None:
    near = NearTests(checkout).near(["xoptim/clip.py", "core/notes.txt"])
    assert near == ["_unittests/test_architecture.py", "_unittests/ut_xoptim/test_clip.py"]


def test_the_table_of_a_folder_is_tested(checkout: Path) -> None:
    table = checkout / "_unittests/ut_xoptim/cli/test_main.py"
    table.parent.mkdir()
    table.touch()
    near = NearTests(checkout).near(["xoptim/cli/new.py"])
    assert "_unittests/ut_xoptim/cli/test_main.py" in near
    assert set(TABLES.values()) <= set(NearTests().tests)


def test_short_list(checkout: Path) -> None:
    tests = NearTests(checkout)
    assert tests.near(["core/notes.txt"]) == tests.near([]) == tests.short()
    here = {Path(test).stem for test in NearTests().short()}
    assert here == {"test_architecture", *SHORT}


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.com"]
    command = ["git", "-C", str(folder), *who, *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_changed_files(checkout: Path) -> None:
    assert changed_files(checkout) == [], "it is no repository"
    git(checkout, "init", "-q", "-b", "main")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "first")
    assert changed_files(checkout) == []
    (checkout / "new.py").touch()
    assert changed_files(checkout) == ["new.py"]
    git(checkout, "checkout", "-q", "-b", "topic")
    git(checkout, "mv", "xoptim/clip.py", "xoptim/clamp.py")
    git(checkout, "commit", "-q", "-m", "second")
    (checkout / "xbuilder/errors.py").write_text("x = 1", encoding="utf-8")
    moved = ["xoptim/clamp.py", "xoptim/clip.py"]
    assert changed_files(checkout) == ["new.py", "xbuilder/errors.py", *moved]
    assert changed_files(checkout, "HEAD") == ["new.py", "xbuilder/errors.py"]


def test_paths_are_printed() -> None:
    script = ROOT / "_unittests" / "near_change.py"
    command = [sys.executable, str(script), "--base", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = done.stdout.split()
    assert "_unittests/test_architecture.py" in paths
    assert all(is_test(path) and (ROOT / path).exists() for path in paths)
