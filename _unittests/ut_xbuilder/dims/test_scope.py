"""The meaning of the names of dimensions in each graph."""

from __future__ import annotations

from xbuilder.dims import Constraints, add, prove_equal, symbols
from xbuilder.dims.scope import DimensionNames, DimensionScope, as_written, opaque


def test_generated_dimensions() -> None:
    scope = DimensionScope(DimensionNames(), Constraints())
    first, second = scope.new("unk"), scope.new("unk")
    assert first != second and scope.is_generated(first) and scope.is_generated(f"{second}+n")
    assert not scope.is_generated("n") and not scope.is_generated(3)
    assert not scope.is_written(first) and scope.is_written("n")


def test_shapes_are_cleaned() -> None:
    scope = DimensionScope(DimensionNames(), Constraints())
    shape = scope.clean_shape([2, "b+a", None])
    assert shape[:2] == (2, "a+b") and scope.is_generated(shape[2])
    assert scope.unique("a") == "a1", "the names of the user are taken"


def test_bodies_have_their_own_names() -> None:
    names = DimensionNames()
    outer = DimensionScope(names, Constraints())
    body = DimensionScope(names, Constraints(), {"a": "n"})
    assert outer.declared("b") == "b"
    assert body.declared("a*2", is_formula=True) == "2*n"
    assert body.declared("b") == "b1" and body.meanings == {"a": "n", "b": "b1"}
    assert body.is_written("n") and not body.is_written("b1") and not body.is_written("a")


def test_a_name_is_no_formula() -> None:
    """Nor a number; two names that are not the same text are not the same dimension."""
    scope = DimensionScope(DimensionNames(), Constraints())
    assert scope.declared("n + 1") == "`n + 1`" and scope.declared("n+1") == "`n+1`"
    assert scope.declared("7") == "`7`" and scope.declared("batch size") == "batch size"
    assert prove_equal(scope.declared("n + 1"), add("n", 1)) is None
    assert prove_equal(scope.declared("n + 1"), scope.declared("n + 1"))
    assert scope.declared("n + 1", is_formula=True) == "n+1"
    assert add(scope.declared("n + 1"), 1) == "`n + 1`+1" or symbols(
        add(scope.declared("n + 1"), 1)
    ) == {"`n + 1`"}


def test_a_name_is_written_as_it_was() -> None:
    for text in ("n", "n + 1", "7", "batch size", "a`b", "`x`"):
        assert as_written(opaque(text)) == text
