"""The phase of a pattern."""

from __future__ import annotations

import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim.api.phases import PHASES, phase_of
from xoptim.api.registry import all_patterns


@pytest.mark.parametrize(
    ("name", "module", "phase"),
    [
        ("SameChildren", "xoptim.patterns.children", "merge"),
        ("CastCast", "xoptim.patterns.cast", "canonicalize"),
        ("WhereAdd", "xoptim.patterns.masks", "stabilize"),
        ("Gelu", "xoptim.patterns.gelu", "specialize"),
        ("FusedConv", "xoptim.patterns_ort.fused_conv", "specialize"),
        ("MissingTopK", "xoptim.patterns_ort.missing_kernels", "uncanonicalize"),
        ("AddMul", "xoptim.patterns_cuda.arithmetic", "specialize"),
        ("Mine", "xoptim.patterns.unknown", "specialize"),
        ("Mine", "nowhere", "specialize"),
        ("Mine", "__main__", "specialize"),
    ],
)
def test_tables(name: str, module: str, phase: str) -> None:
    assert all_patterns(), "packages are loaded"
    assert phase_of(name, module, ["default"]) == phase


def test_tags_come_first() -> None:
    assert phase_of("CastCast", "xoptim.patterns.cast", ["default", "merge"]) == "merge"
    with pytest.raises(OptionError, match="'X' has one phase, not"):
        phase_of("X", "nowhere", ["merge", "stabilize"])


def test_package_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = types.ModuleType("theirs")
    monkeypatch.setitem(sys.modules, "theirs", package)
    assert phase_of("X", "theirs.family", []) == "specialize"
    package.PATTERN_PHASES = {"X": "merge", "family": "stabilize"}
    assert phase_of("X", "theirs.family", []) == "merge", "the pattern before its family"
    assert phase_of("Y", "theirs.family", []) == "stabilize"
    package.PATTERN_PHASES = "something else"
    assert phase_of("X", "theirs.family", []) == "specialize"


PACKAGES = ["patterns", "patterns_ort", "patterns_ml", "patterns_cuda"]


@pytest.mark.parametrize("package", PACKAGES)
def test_tables_name_what_exists(package: str) -> None:
    module = import_module(f"xoptim.{package}")
    families = {p.stem for p in Path(module.__path__[0]).glob("*.py")}
    for phase, words in module.BY_PHASE.items():
        assert phase in PHASES
        assert set(words) <= families | set(all_patterns()), phase
    words = [w for row in module.BY_PHASE.values() for w in row]
    assert len(words) == len(module.PATTERN_PHASES), "one phase each"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_family_has_a_phase(package: str) -> None:
    """None is of the phase of the others because nobody thought of it."""
    modules = {n: c.__module__.rpartition(".") for n, c in all_patterns().items()}
    told = import_module(f"xoptim.{package}").PATTERN_PHASES
    here = [(n, m[2]) for n, m in modules.items() if m[0] == f"xoptim.{package}"]
    assert here and not [(n, m) for n, m in here if n not in told and m not in told]
