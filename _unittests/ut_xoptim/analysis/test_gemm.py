"""Products by a matrix: attributes of Gemm, biases."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import toy_optimizer

from xoptim.analysis.gemm import is_plain, product_and_bias
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.authoring.deduction import Refusal
from xoptim.testing import optimizer_of


@pytest.mark.parametrize(
    ("op_type", "attributes", "names", "expected"),
    [
        ("MatMul", {}, (), True),
        ("Gemm", {}, (), True),
        ("Gemm", {"alpha": 1.0, "transB": 0}, (), True),
        ("Gemm", {"transB": 1}, (), False),
        ("Gemm", {"transB": 1}, ("alpha", "beta"), True),
        ("Gemm", {"beta": 0.5}, ("alpha", "beta"), False),
    ],
)
def test_is_plain(
    op_type: str, attributes: dict[str, float], names: tuple[str, ...], expected: bool
) -> None:
    node = oh.make_node(op_type, ["a", "b"], ["c"], **attributes)
    assert is_plain(toy_optimizer(), node, *names) == expected


NODES = {
    "m = MatMul(X, W) y = Add(m, b)": ("m", "b"),
    "m = MatMul(X, W) y = Add(b, m)": ("m", "b"),
    "m = Neg(X) y = MatMul(m, W)": ("y", ""),
    "y = Gemm(X, W)": ("y", ""),
    "y = Gemm(X, W, b)": ("y", "b"),
}


def _context(body: str) -> RewriteContext:
    return context_of(
        optimizer_of(
            f"g (float[a, 4] X, float[4, 4] W, float[4] b) => (float[a, 4] y) {{ {body} }}"
        )
    )


@pytest.mark.parametrize("body", NODES)
def test_product_and_bias(body: str) -> None:
    g = _context(body)
    product, bias = product_and_bias(g, g.before("y"))
    assert (product.output[0], bias) == NODES[body]


@pytest.mark.parametrize("body", ["y = Add(X, b)", "m = MatMul(X, W) y = Add(m, m)"])
def test_sums_that_are_not_the_one_of_a_product(body: str) -> None:
    g = _context(body)
    with pytest.raises(Refusal, match="no product is added to a bias"):
        product_and_bias(g, g.before("y"))
