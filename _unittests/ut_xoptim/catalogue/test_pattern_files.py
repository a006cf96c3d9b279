"""Patterns of a file of the user."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from xbuilder.errors import OptionError
from xoptim import get_pattern, get_pattern_list
from xoptim.catalogue import registry
from xoptim.catalogue.pattern_files import load_pattern_file
from xoptim.catalogue.registry import pattern_database
from xoptim.testing import check_pattern

CODE = '''
from xoptim import EasyPatternOptimization, PatternOptimization, register_pattern, rewrite

class _Base(PatternOptimization):
    """Not for a selection."""

@register_pattern("theirs", roots=("Neg",))
class InASetPattern(_Base):
    """In a set."""

@rewrite(root="Neg", after="Neg", priority=2, precision="rounding")
def loaded_neg_neg(g, node):
    """Neg(Neg(x)) -> x."""
    return g.before(node, "Neg").input[0]

class LoadedAbsPattern(EasyPatternOptimization):
    """Abs(Abs(x)) -> Abs(x)."""

    def match_pattern(self, g, x):
        return g.op.Abs(g.op.Abs(x))

    def apply_pattern(self, g, x):
        return g.op.Abs(x)
'''


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(registry, "PATTERNS", pattern_database().copy())
    before = set(sys.modules)
    yield tmp_path / "theirs.py"
    for module in set(sys.modules) - before:
        if module.startswith("patterns of "):
            del sys.modules[module]


def test_registered_or_not(path: Path) -> None:
    path.write_text(CODE, encoding="utf-8")
    assert load_pattern_file(path) == ["InASet", "LoadedNegNeg", "LoadedAbs"]
    assert [p.name for p in get_pattern_list("theirs")] == ["InASet"]
    found = get_pattern("LoadedNegNeg")
    assert (found.priority, found.precision) == (2, "rounding")
    assert pickle.loads(pickle.dumps(found)) == found
    header = "g (float[a] x) => (float[a] y) "
    check_pattern(
        header + "{ n = Neg(x) m = Neg(n) u = Abs(m) y = Abs(u) }",
        header + "{ y = Abs(x) }",
        "LoadedNegNeg,LoadedAbs",
    )


def test_loaded_again(path: Path) -> None:
    path.write_text(CODE, encoding="utf-8")
    load_pattern_file(path)
    path.write_text(CODE.replace("LoadedAbs", "Other"), encoding="utf-8")
    assert load_pattern_file(path) == ["InASet", "LoadedNegNeg", "Other"]
    assert registry.PATTERNS.find("LoadedAbs") is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("\n1 / 0\n", "fail, line 2: ZeroDivisionError"),
        ("x =", "fail: SyntaxError"),
        ("x = 1", "defines no pattern"),
        (CODE.replace("InASet", "CastCast"), "fail, line [0-9]+: OptionError: .*CastCast"),
        (CODE + "\nraise ValueError('late')", "late"),
    ],
)
def test_nothing_stays_of_a_file_that_fails(path: Path, code: str, message: str) -> None:
    known = list(registry.PATTERNS)
    path.write_text(code, encoding="utf-8")
    with pytest.raises(OptionError, match=message):
        load_pattern_file(path)
    assert list(registry.PATTERNS) == known
