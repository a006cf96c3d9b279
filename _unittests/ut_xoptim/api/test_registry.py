"""The database of patterns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization, register_pattern
from xoptim.api import registry
from xoptim.api.registry import all_patterns, query, tags

PRECISIONS = {"exact", "rounding", "approximate"}


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_PATTERNS", {})
    monkeypatch.setattr(registry, "load_patterns", lambda: None)
    yield


def make(name: str) -> type[PatternOptimization]:
    return type(name, (PatternOptimization,), {})


@pytest.mark.usefixtures("empty")
def test_register() -> None:
    cls = register_pattern(
        "default", "toy", roots=("Add", "Mul"), priority=3, min_opset=13, precision="rounding"
    )(make("OnePattern"))
    assert cls.tags == ("default", "toy", "rounding") and cls.precision == "rounding"
    assert cls.roots == ("Add", "Mul") and cls.priority == 3 and cls.min_opset == 13
    pattern = cls()
    assert (pattern.name, pattern.priority, pattern.min_opset) == ("One", 3, 13)
    assert all_patterns() == {"One": cls}


@pytest.mark.usefixtures("empty")
def test_roots_of_the_class_are_kept() -> None:
    cls = make("TwoPattern")
    cls.roots = ("Neg",)
    assert register_pattern("toy")(cls).roots == ("Neg",)


@pytest.mark.usefixtures("empty")
def test_refusals() -> None:
    register_pattern("toy")(make("OnePattern"))
    with pytest.raises(OptionError, match="'One' is already registered"):
        register_pattern("toy")(make("OnePattern"))
    with pytest.raises(OptionError, match="Precision of 'Two'"):
        register_pattern("toy", precision="wild")(make("TwoPattern"))
    for tag in ("default", "onnxruntime"):
        with pytest.raises(OptionError, match="approximate, it cannot be in a default set"):
            register_pattern(tag, precision="approximate")(make("TwoPattern"))
    assert list(all_patterns()) == ["One"]


@pytest.mark.usefixtures("empty")
def test_query_and_tags() -> None:
    a = register_pattern("default")(make("APattern"))
    b = register_pattern("default", "toy", precision="rounding")(make("BPattern"))
    c = register_pattern("approximate", precision="approximate")(make("CPattern"))
    assert query([]) == [a, b, c] and query(["default"]) == [a, b]
    assert query(["default", "exact"]) == [a] and query(["default"], ["toy"]) == [a]
    found = tags()
    assert found.pop("ml") == [], "known sets are listed even when they are empty"
    assert {k: v for k, v in found.items() if v} == {
        "default": ["A", "B"],
        "exact": ["A"],
        "toy": ["B"],
        "rounding": ["B"],
        "approximate": ["C"],
    }


def test_every_family_is_loaded() -> None:
    found = all_patterns()
    for name in ("Gelu", "LayerNormalization", "FusedMatMul", "SkipLayerNormalization"):
        assert name in found, name
    assert list(all_patterns()) == list(found), "a fixed order"


def test_every_pattern_is_well_formed() -> None:
    for name, cls in all_patterns().items():
        assert cls.__name__ == f"{name}Pattern"
        assert cls.precision in PRECISIONS and cls.precision in cls.tags
        assert cls.__doc__ and cls.__doc__.strip(), name
        pattern = cls()
        assert pattern == cls() and hash(pattern) == hash(cls())
        assert pattern.roots and all(isinstance(r, str) for r in pattern.roots)
        assert 0 <= pattern.priority <= 10 and pattern.min_opset >= 1
