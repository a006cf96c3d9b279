"""Suggestions for misspelled names."""

from __future__ import annotations

import pytest

from xbuilder.support.close_names import closest_names, edit_distance

KNOWN = ["Cast", "CastCast", "TransposeTranspose", "TransposeMatMul", "Reshape", "onnxruntime"]


@pytest.mark.parametrize(
    "a,b,distance",
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "", 3),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2),
        ("TransposTranspose", "TransposeTranspose", 1),
    ],
)
def test_edit_distance(a, b, distance):
    assert edit_distance(a, b) == edit_distance(b, a) == distance


@pytest.mark.parametrize(
    "name,first",
    [
        ("TransposTranspose", "TransposeTranspose"),
        ("castcast", "CastCast"),
        ("CastCat", "CastCast"),
        ("onnxruntme", "onnxruntime"),
        ("Reshap", "Reshape"),
        ("TransposeMat", "TransposeMatMul"),
    ],
)
def test_the_closest_comes_first(name, first):
    assert closest_names(name, KNOWN)[0] == first


def test_nothing_is_close():
    assert closest_names("Winograd", KNOWN) == []


def test_at_most_n():
    assert len(closest_names("CastCas", [f"CastCas{i}" for i in range(9)], n=2)) == 2
