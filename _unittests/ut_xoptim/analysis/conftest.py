"""Fixtures shared by the tests of this folder."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    """Answers questions about a graph with some constants."""
    text = """agraph (float[2] X) => (float[2] Y) <
        float[2] one = {1, 1}, float[2] a = {2, 3}, float[2] b = {5, 7}, float[2] big = {3e38, 1}> {
        Y = Neg(X) }"""
    return GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
