"""Digests of files and options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xoptim.surgery.signature import SignatureChanges
from xoptim.tasks.many.digests import digest_of_files, digest_of_values


def test_files(tmp_path):
    """The content counts, not where one file ends and the next one begins."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"ab")
    second.write_bytes(b"c")
    before = digest_of_files([first, second])
    assert before == digest_of_files([first, second]) != digest_of_files([second, first])
    first.write_bytes(b"a")
    second.write_bytes(b"bc")
    assert digest_of_files([first, second]) != before


@pytest.mark.parametrize(
    "value,other",
    [
        ({"patterns": "default"}, {"patterns": "none"}),
        ({"rtol": 1e-4}, {"rtol": 1e-3}),
        ([1, 2], [12]),
        (1, True),
        ("1", 1),
        (Path("a"), "a"),
        (np.float32([1, 2]), np.float32([1, 3])),
        (np.float32([1, 2]), np.float32([[1, 2]])),
        (SignatureChanges({"batch": 1}), SignatureChanges({"batch": 2})),
    ],
)
def test_values(value, other):
    assert digest_of_values(value) and digest_of_values(value) != digest_of_values(other)


def test_other_objects_have_none():
    """A digest that cannot be compared is never up to date."""
    assert digest_of_values({"patterns": [object()]}) == ""
    assert digest_of_values(np.array([object()])) == ""
