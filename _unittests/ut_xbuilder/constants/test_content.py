"""Facts read from the content of a constant."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder.constants.content import known_content, tensor_facts, tracked_value, uniform_item
from xbuilder.facts.facts import ResultFacts


def test_tracked_value():
    assert tracked_value(np.array([[1]])) is None and tracked_value(np.array(5)) == 5
    assert tracked_value(np.array([1.5])) is None
    assert tracked_value(np.array([1, 2])) == (1, 2)
    assert tracked_value(np.arange(100)) is None


def test_known_content():
    assert known_content(ResultFacts(7, (2,), None, ("batch", 3))) is None
    assert known_content(ResultFacts(1, (2,), None, (4, 3))) is None
    assert known_content(ResultFacts(7, (), None, "batch")) is None
    assert known_content(ResultFacts(7, (2,))) is None
    assert known_content(ResultFacts(7, (2,), None, (4, 3))).tolist() == [4, 3]
    assert known_content(ResultFacts(6, (), None, 4)).dtype == np.int32


@pytest.mark.parametrize(
    "array,value,read",
    [
        (np.array([2, 3], dtype=np.int64), (2, 3), True),
        (np.array(True), 1, True),
        (np.array([2.5], dtype=np.float32), None, False),
        (np.zeros((2, 2), dtype=np.int64), None, False),
        (np.zeros(100, dtype=np.int64), None, False),
    ],
)
def test_the_content_is_read_if_it_is_tracked(array, value, read):
    reads = []

    def content():
        reads.append(1)
        return array

    facts = tensor_facts(array, content)
    assert facts.shape == array.shape and facts.value == value and bool(reads) is read
    if read:
        assert tensor_facts(array, lambda: None).value is None


@pytest.mark.parametrize(
    "array,item",
    [
        (np.full((2, 3), 1.5), 1.5),
        (np.array(7), 7),
        (np.array([1.0, 1.0, 2.0, 1.0]), None),
        (np.array([1.0, 2.0]), None),
        (np.array([np.nan, np.nan]), None),
        (np.zeros((0, 3)), None),
        (np.array(["a", "a"]), None),
        (np.array(["a", "a"], dtype=object), None),
    ],
)
def test_uniform_item(array, item):
    assert uniform_item(array) == item
