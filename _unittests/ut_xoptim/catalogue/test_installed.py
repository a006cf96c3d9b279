"""Patterns of other distributions, installed for the time of a test."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from xoptim import get_pattern_list
from xoptim.catalogue import registry
from xoptim.catalogue.installed import _is_group_named, load_installed
from xoptim.catalogue.registry import pattern_database

ROOT = Path(__file__).resolve().parents[3]
PATTERN = '''
from xoptim import rewrite

@rewrite("default", "theirs", "canonicalize", root="Neg", after="Neg")
def their_neg_neg(g, node):
    """Neg(Neg(x)) -> x."""
    return g.before(node, "Neg").input[0]
'''
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs distributions in a folder; the patterns they register are forgotten."""
    monkeypatch.setattr(registry, "PATTERNS", pattern_database().copy())
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def make(name: str, points: dict[str, str], **modules: str) -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        text = "\n".join(["[other.group]", "a = b:c", "[xoptim.patterns]", *lines, ""])
        (info / "entry_points.txt").write_text(text)
        for module, code in modules.items():
            (tmp_path / f"{module}.py").write_text(code)

    yield make
    for module in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[module], "__file__", "")):
            del sys.modules[module]


def names(selection: str) -> list[str]:
    return [p.name for p in get_pattern_list(selection)]


def load() -> None:
    load_installed(registry.PATTERNS)


def test_a_module(install: Install) -> None:
    before = names("default")
    install("their-patterns", {"all": "their_patterns"}, their_patterns=PATTERN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load()
    found = names("default")
    assert [n for n in found if n != "TheirNegNeg"] == before, "the others keep their order"
    assert found.count("TheirNegNeg") == 1
    assert names("theirs") == names("default&theirs") == ["TheirNegNeg"]
    assert registry.PATTERNS["TheirNegNeg"].phase == "canonicalize"


def test_a_function(install: Install) -> None:
    code = "def add():\n" + textwrap.indent(PATTERN, "    ")
    install("functions", {"all": "their_function:add"}, their_function=code)
    load()
    assert names("theirs") == ["TheirNegNeg"]


@pytest.mark.parametrize(
    ("value", "code", "reason"),
    [
        ("missing_module", "", "ModuleNotFoundError"),
        ("broken:nothing", PATTERN, "AttributeError"),
        ("broken", PATTERN + "1 / 0\n", "ZeroDivisionError"),
        ("broken:x", "x = 3", "must be a module, or a function without argument"),
        ("broken:X", "class X: pass", "must be a module, or a function without argument"),
        ("broken", PATTERN.replace("their_neg_neg", "cast_cast"), "'CastCast' is already regist"),
    ],
)
def test_a_broken_one_is_named(install: Install, value: str, code: str, reason: str) -> None:
    """Nothing of it stays, the others are loaded."""
    install("broken-patterns", {"bad": value}, broken=code)
    good = PATTERN.replace("their_neg_neg", "good_neg_neg").replace("theirs", "good")
    install("good-patterns", {"all": "good_patterns"}, good_patterns=good)
    with pytest.warns(UserWarning, match=f"distribution 'broken-patterns' are ignored.*{reason}"):
        load()
    assert names("good") == ["GoodNegNeg"]
    assert "TheirNegNeg" not in registry.PATTERNS and "theirs" not in registry.PATTERNS


def test_order(install: Install) -> None:
    """By distribution, then by name of entry point, wherever they are."""
    one, two, three = (PATTERN.replace("their_neg_neg", f"their_{n}") for n in ("a", "b", "c"))
    install("z-last", {"a": "their_three"}, their_three=three)
    install("a-first", {"z": "their_two", "b": "their_one"}, their_one=one, their_two=two)
    load()
    assert names("theirs") == ["TheirA", "TheirB", "TheirC"]


def test_only_those_with_the_group(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution found twice is loaded once; others, and folders that are none, are ignored."""
    install("their-patterns", {"all": "their_patterns"}, their_patterns=PATTERN)
    for name, text in {"a": "[console_scripts]\na = b:c\n", "c": ""}.items():
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\n")
        if text:
            (info / "entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nothing"), str(tmp_path), str(tmp_path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load()
    assert names("theirs") == ["TheirNegNeg"]


PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "their-patterns"
version = "1.0"
[project.entry-points."xoptim.patterns"]
all = "their_patterns"
[tool.setuptools]
py-modules = ["their_patterns"]
"""


@pytest.mark.slow
def test_installed_with_pip(tmp_path: Path) -> None:
    """As a user does: the command and a selection know the pattern."""
    project, target = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "their_patterns.py").write_text(PATTERN)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    done = subprocess.run([*pip, *options, str(project)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(target)])}
    command = [sys.executable, "-m", "xoptim", "patterns", "default&theirs"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "1 pattern" in done.stdout and "TheirNegNeg" in done.stdout


BEHIND = """
from xoptim.declarative import equation

equation("TheirNegNeg", "theirs", "Neg(Neg(x)) -> x", behind=[{names}])
equation("TheirAbsNeg", "theirs", "Abs(Neg(x)) -> Abs(x)", behind=["TheirNegNeg"])
"""


@pytest.mark.parametrize(
    ("behind", "reason"),
    [("'NoPattern'", "Unknown pattern 'NoPattern'"), ("'TheirAbsNeg'", "make a circle")],
)
def test_an_order_that_cannot_be(install: Install, behind: str, reason: str) -> None:
    """It is named in a warning, nothing of it stays."""
    install("their-patterns", {"all": "their_patterns"}, their_patterns=BEHIND.format(names=behind))
    with pytest.warns(UserWarning, match=reason):
        load()
    assert "TheirNegNeg" not in registry.PATTERNS and names("default")


def test_the_name_of_the_group_is_looked_for(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata that are not in a folder may hold it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nothing")])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    assert not _is_group_named()
    install("theirs", {"all": "theirs"})
    assert _is_group_named()
    for place in ("a.egg", "archive.zip"):
        (tmp_path / "archive.zip").write_text("")
        monkeypatch.setattr(sys, "path", [str(tmp_path / place)])
        assert _is_group_named()
    monkeypatch.setattr(sys, "path", [])
    assert not _is_group_named()
    finder = type("Finder", (), {"find_distributions": lambda *_: ()})
    monkeypatch.setattr(sys, "meta_path", [finder()])
    assert _is_group_named()
