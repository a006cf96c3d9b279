"""The dimensions of a Reshape when sizes become symbols."""

from __future__ import annotations

import re

import pytest

from xoptim.surgery.reshape_dims import reshaped_dims


@pytest.mark.parametrize(
    ("source", "before", "after", "found"),
    [
        (["b", 4, 6], [1, 4, 6], [1, 24], ["b", 24]),
        (["b", "s", 768], [1, 128, 768], [1, 128, 12, 64], ["b", "s", 12, 64]),
        (["b", 12, "s", 64], [1, 12, 128, 64], [12, 128, 64], ["12*b", "s", 64]),
        (["12*b", "s", 64], [12, 128, 64], [1, 12, 128, 64], ["b", 12, "s", 64]),
        (["b", "s", 768], [1, 128, 768], [128, 768], ["b*s", 768]),
        (["b*s", 768], [128, 768], [1, 128, 768], ["b", "s", 768]),
        (["b", 64, "h//8", "w//8"], [1, 64, 80, 80], [1, 64, 6400], ["b", 64, "(h//8)*(w//8)"]),
        ([1, "s", 64], [1, 64, 64], [1, 64, 8, 8], [1, "s", 8, 8]),
        (["b", 4, 1], [1, 4, 1], [4], ["4*b"]),
        (["b", "n", 4], [1, "n", 4], [1, "n", 2, 2], ["b", "n", 2, 2]),
    ],
)
def test_places(source, before, after, found):
    known = {1: ["b"], 128: ["s", "b*s"]}
    assert reshaped_dims(source, before, after, known, {"b"}) == found


@pytest.mark.parametrize(
    ("source", "before", "after", "reason"),
    [
        ([4, "b", 6], [4, 1, 6], [24], "moves b inside"),
        (["h*w"], [64], [8, 8], "which may be"),
        (["h+1"], [65], [5, 13], "makes .5, 13. of .'h.1'."),
    ],
)
def test_refusals(source, before, after, reason):
    found = reshaped_dims(source, before, after, {8: ["h", "w"]}, {"b"})
    assert isinstance(found, str) and re.search(reason, found)
