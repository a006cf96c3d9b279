"""The cards of patterns: what is known of them before their modules are imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xoptim import PatternOptimization
from xoptim.catalogue import cards, registry
from xoptim.catalogue.cards import PatternCard, current_stamp, read_cards, write_cards
from xoptim.catalogue.registry import all_patterns, is_shipped

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = [cls for cls in all_patterns().values() if is_shipped(cls)]
STAMP = ("1.0", ("module.py", 1, 2))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run without compiled files."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.mark.usefixtures("written")
def test_a_card_declares_what_its_class_does(tmp_path: Path) -> None:
    """Written and read, in the order of the patterns."""
    write_cards(tmp_path / "a" / "file", STAMP, SHIPPED)
    found = read_cards(tmp_path / "a" / "file", STAMP)
    assert found is not None and len(found) == len(SHIPPED)
    for card, cls in zip(found, SHIPPED, strict=True):
        for name in cards._REPEATED:
            assert getattr(card, name) == getattr(cls, name), (cls, name)
        assert not card.asks and card.cls is None and cls.__name__ in repr(card)
    assert os.listdir(tmp_path / "a") == ["file"]


@pytest.mark.usefixtures("written")
def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another stamp, a damaged file, a folder nobody can write, and Python that keeps nothing."""
    path = tmp_path / "file"
    write_cards(path, STAMP, SHIPPED[:2])
    assert read_cards(path, ("2.0", *STAMP[1:])) is None
    assert read_cards(path, None) is None and read_cards(None, STAMP) is None
    path.write_bytes(path.read_bytes()[:100])
    assert read_cards(path, STAMP) is None and read_cards(tmp_path / "missing", STAMP) is None
    write_cards(path / "below", STAMP, SHIPPED[:2])
    write_cards(tmp_path / "other", None, SHIPPED[:2])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_cards(tmp_path / "other", STAMP, SHIPPED[:2])
    assert os.listdir(tmp_path) == ["file"]
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    assert cards.card_file() is None


def test_every_change_of_a_module_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    module = tmp_path / "inner" / "one.py"
    module.write_text("a = 1")
    monkeypatch.setattr(cards, "FOLDERS", (tmp_path,))
    stamps = [current_stamp()]
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert current_stamp() == stamps[0]
    module.write_text("a = 12")
    stamps.append(current_stamp())
    os.utime(module, ns=(1, 1))
    stamps.append(current_stamp())
    (tmp_path / "two.py").write_text("")
    stamps.append(current_stamp())
    module.unlink()
    stamps.append(current_stamp())
    monkeypatch.setattr("onnx.__version__", "0")
    stamps.append(current_stamp())
    assert len(set(stamps)) == len(stamps)
    monkeypatch.setattr(cards, "FOLDERS", (tmp_path / "archive.zip",))
    assert current_stamp() is None


def test_a_class_that_registers_takes_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if its entry was removed, which it stays."""

    class WaitedPattern(PatternOptimization):
        """Nothing."""

    card = PatternCard.of(WaitedPattern)
    monkeypatch.setattr(registry, "PATTERNS", registry.empty_database())
    monkeypatch.setattr(registry, "_CARDS", {card.name: card})
    registry.register_pattern("default")(WaitedPattern)
    assert card.cls is WaitedPattern and card.load() is WaitedPattern
    assert len(registry.PATTERNS) == 0
    registry.register_pattern("default")(WaitedPattern)
    assert registry.PATTERNS["Waited"] is WaitedPattern, "nothing waits for it any more"


LOADED = "sorted(m for m in sys.modules if m.startswith('xoptim.patterns') and m.count('.') > 2)"
OPTIMIZED = f"""
import sys
from xoptim import get_pattern_list, optimize
from xoptim.testing.models import model_from_text

print([type(p).__name__ for p in get_pattern_list('CastCast')], {LOADED})
model = model_from_text("g (float[a,b] x) => (float[a,b] y) {{ t = Transpose(x) y = Transpose(t) }}")
done = optimize(model)
print([n.op_type for n in done.model.graph.node], {LOADED})
"""


def run(code: str, folder: Path, *options: str, root: Path = ROOT) -> str:
    """The output of Python, with its compiled files in a folder."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    variables |= {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONPATH": str(root)}
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_process_imports_what_the_model_needs(tmp_path: Path) -> None:
    """The first one writes the cards; with -B, nothing is written."""
    first = run(OPTIMIZED, tmp_path, "-B")
    assert not list(tmp_path.rglob("*.cards")) and first.count("xoptim.patterns") > 200
    assert run(OPTIMIZED, tmp_path) == first
    assert len(list(tmp_path.rglob("*.cards"))) == 1
    by_name, optimized = run(OPTIMIZED, tmp_path).splitlines()
    assert by_name == "['CastCastPattern'] ['xoptim.patterns.elementwise.cast']"
    assert optimized.startswith("['Identity']") and 1 < optimized.count("xoptim.patterns") < 12


NEW = '''
"""A new module."""
from ...catalogue import rewrite

@rewrite("default", root="Neg", after="Abs")
def neg_abs_new(g, node):
    """{0}."""
    return g.no("never")
'''
NAMES = """
from xoptim.cli.patterns import describe_patterns

found = [row["summary"] for row in describe_patterns() if row["name"] == "NegAbsNew"]
print(len(describe_patterns()), found)
"""


@pytest.mark.slow
def test_a_module_is_added_changed_and_removed(tmp_path: Path) -> None:
    root, compiled = tmp_path / "root", tmp_path / "compiled"
    compiled.mkdir()
    for package in ("xbuilder", "xoptim"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, root / package, ignore=ignored)
    count = len(SHIPPED)
    assert run(NAMES, compiled, root=root) == run(NAMES, compiled, root=root) == f"{count} []\n"
    module = root / "xoptim" / "patterns" / "elementwise" / "neg_abs_new.py"
    module.write_text(NEW.format("One"))
    expected = f"{count + 1} ['One.']\n"
    assert run(NAMES, compiled, root=root) == run(NAMES, compiled, root=root) == expected
    # Python compiles a file again when its size or the second of its time changes
    module.write_text(NEW.format("Another"))
    assert run(NAMES, compiled, root=root) == f"{count + 1} ['Another.']\n"
    module.unlink()
    assert run(NAMES, compiled, root=root) == f"{count} []\n"
