"""Producers and readers of a result."""

from __future__ import annotations

from ut_xoptim.analysis.small_graph import optimizer

from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.arguments import other_input
from xoptim.testing import optimizer_of


def _optimizer(text: str, opset: int = 18) -> GraphBuilderPatternOptimization:
    return optimizer_of(text, ["Reshape"], opset)


def test_neighbours() -> None:
    g = optimizer("n = Neg(X) m = Mul(n, Z) k = com.microsoft.Gelu(m) Y = Add(k, Z)")
    assert (
        g.producer_or_none("n", "Neg").output[0] == "n" and g.producer_or_none("n", "Abs") is None
    )
    assert g.producer_or_none("X", "Neg") is None and g.producer_or_none("k", "Gelu") is None
    assert g.reader_or_none("n", "Mul").output[0] == "m" and g.reader_or_none("n", "Add") is None
    assert g.reader_or_none("Z", "Mul") is None and g.reader_or_none("Y", "Mul") is None
    assert g.reader_or_none("m", "Gelu") is None, "another domain"
    mul = g.node_before("m")
    assert other_input(mul, "n") == "Z" and other_input(mul, "Z") == "n"
    assert other_input(mul, "X") == ""


def test_producer_looks_at_the_domain() -> None:
    g = _optimizer(
        """agraph (float[a] x) => (float[a] y, float[] z) {
            y = Neg(x)
            z = com.microsoft.Neg(y)
        }"""
    )
    assert g.producer_or_none("y", "Abs", "Neg").op_type == "Neg"
    assert g.producer_or_none("y", "Abs") is None
    assert g.producer_or_none("z", "Neg") is None
    assert g.producer_or_none("x", "Neg") is None
