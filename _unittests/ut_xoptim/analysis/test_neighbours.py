"""Producers and readers of a result."""

from __future__ import annotations

from ut_xoptim.analysis.small_graph import optimizer

from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.arguments import other_input
from xoptim.analysis.neighbours import producer, reader
from xoptim.testing import optimizer_of


def _optimizer(text: str, opset: int = 18) -> GraphBuilderPatternOptimization:
    return optimizer_of(text, ["Reshape"], opset)


def test_neighbours() -> None:
    g = optimizer("n = Neg(X) m = Mul(n, Z) k = com.microsoft.Gelu(m) Y = Add(k, Z)")
    assert producer(g, "n", "Neg").output[0] == "n" and producer(g, "n", "Abs") is None
    assert producer(g, "X", "Neg") is None and producer(g, "k", "Gelu") is None
    assert reader(g, "n", "Mul").output[0] == "m" and reader(g, "n", "Add") is None
    assert reader(g, "Z", "Mul") is None and reader(g, "Y", "Mul") is None
    assert reader(g, "m", "Gelu") is None, "another domain"
    mul = g.node_before("m")
    assert other_input(mul, "n") == "Z" and other_input(mul, "Z") == "n"
    assert other_input(mul, "X") is None


def test_producer_looks_at_the_domain() -> None:
    g = _optimizer(
        """agraph (float[a] x) => (float[a] y, float[] z) {
            y = Neg(x)
            z = com.microsoft.Neg(y)
        }"""
    )
    assert producer(g, "y", "Abs", "Neg").op_type == "Neg"
    assert producer(g, "y", "Abs") is None
    assert producer(g, "z", "Neg") is None
    assert producer(g, "x", "Neg") is None
