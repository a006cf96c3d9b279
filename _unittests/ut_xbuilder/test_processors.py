"""The processors a model may be meant for."""

from __future__ import annotations

import pytest

from xbuilder.processors import processors_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [("CPU", ("CPU",)), ("CPU, CUDA", ("CPU", "CUDA")), ("CPU,", ("CPU", "")), ("", ("",))],
)
def test_processors(text, expected):
    """An empty name is no processor: options refuse it."""
    assert processors_of(text) == expected
