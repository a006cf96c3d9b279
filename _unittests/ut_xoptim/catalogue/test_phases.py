"""The phase of a pattern."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim.catalogue.phases import PHASES, phase_of
from xoptim.catalogue.registry import all_patterns


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("SameChildren", "merge"),
        ("CastCast", "canonicalize"),
        ("WhereAdd", "stabilize"),
        ("Gelu", "specialize"),
        ("FusedConv", "specialize"),
        ("MissingType", "uncanonicalize"),
        ("AddMul", "specialize"),
    ],
)
def test_phase_of_a_pattern(name: str, phase: str) -> None:
    assert all_patterns()[name].phase == phase


@pytest.mark.parametrize(
    ("module", "phase"),
    [
        ("xoptim.patterns.elementwise.unknown", "canonicalize"),
        ("xoptim.patterns.unknown", "specialize"),
        ("nowhere", "specialize"),
        ("__main__", "specialize"),
    ],
)
def test_phase_of_a_folder(module: str, phase: str) -> None:
    assert all_patterns(), "packages are loaded"
    assert phase_of("Mine", module, ["default"]) == phase


def test_tags_come_first() -> None:
    assert phase_of("CastCast", "xoptim.patterns.elementwise.cast", ["default", "merge"]) == "merge"
    with pytest.raises(OptionError, match="'X' has one phase, not"):
        phase_of("X", "nowhere", ["merge", "stabilize"])


def test_package_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = types.ModuleType("theirs")
    folder: Any = types.ModuleType("theirs.folder")
    monkeypatch.setitem(sys.modules, "theirs", package)
    monkeypatch.setitem(sys.modules, "theirs.folder", folder)
    assert phase_of("X", "theirs.folder.family", []) == "specialize"
    package.PHASE = "stabilize"
    assert phase_of("X", "theirs.folder.family", []) == "stabilize"
    folder.PHASE = "merge"
    assert phase_of("X", "theirs.folder.family", []) == "merge", "the closest package"
    assert phase_of("X", "theirs.family", []) == "stabilize"
    assert phase_of("X", "theirs.folder.family", ["canonicalize"]) == "canonicalize"
    folder.PHASE = "something else"
    with pytest.raises(OptionError, match="PHASE of 'theirs.folder' is one of"):
        phase_of("X", "theirs.folder.family", [])


@pytest.mark.parametrize("package", ["patterns", "patterns_ort", "patterns_ml", "patterns_cuda"])
def test_every_folder_says_its_phase(package: str) -> None:
    """None is of the phase of the others because nobody thought of it."""
    modules = {c.__module__ for c in all_patterns().values()}
    folders = {m.rpartition(".")[0] for m in modules if m.startswith(f"xoptim.{package}.")}
    assert folders
    silent = [f for f in folders if not _says_a_phase(f)]
    assert silent == []


def _says_a_phase(package: str) -> bool:
    names = [package, package.rpartition(".")[0]]
    return any(getattr(sys.modules[n], "PHASE", None) in PHASES for n in names)
