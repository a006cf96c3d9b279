"""Gemm on a matrix made of batches: a product of batches instead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from xbuilder.dims import prove_equal, same_shape

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.neighbours import producer, reader
from .cpu_kernels import has_kernel
from .fused_matmul import Matmul, sums_something


@dataclass
class ReshapedGemm:
    """`Gemm(Reshape(x, (-1, k)), b)`.

    :param product: the same product on x
    :param width: last dimension of the result
    :param nodes: the nodes that go away: Gemm, and Reshape if nothing else reads it
    """

    product: Matmul
    width: int | str
    nodes: list[NodeProto]


def read_gemm(g: GraphQueries, gemm: NodeProto) -> ReshapedGemm | str:
    """Recognises a Gemm on rows of batches.

    :param g: the optimizer
    :param gemm: the Gemm
    :return: what it computes, or why it is something else
    """
    if len(gemm.input) > 2 and gemm.input[2]:
        return "there is a bias"
    if g.get_attribute_with_default(gemm, "transA", 0):
        return "the rows are transposed"
    rows = producer(g, gemm.input[0], "Reshape")
    if rows is None:
        return "no Reshape before"
    x = rows.input[0]
    if not has_kernel(g, "com.microsoft::FusedMatMul", x):
        return "onnxruntime has no FusedMatMul for this type"
    shape, flat = g.try_infer_shape(x), g.try_infer_shape(rows.output[0])
    weights = g.try_infer_shape(gemm.input[1])
    if shape is None or flat is None or weights is None or len(shape) < 3 or len(flat) != 2:
        return "x does not have at least three dimensions"
    constraints = g.get_registered_constraints()
    # with the same last dimension, rows are the rows of x in the same order
    if shape[-1] != flat[1] and prove_equal(shape[-1], flat[1], constraints) is not True:
        return "the last dimension changes"
    trans = bool(g.get_attribute_with_default(gemm, "transB", 0))
    if not sums_something(g, x, gemm.input[1], False, trans):
        return "the product may sum over an empty dimension"
    one = Matmul(x, gemm.input[1], False, trans, 1.0, g.get_type(x))
    product = one.scaled(g.get_attribute_with_default(gemm, "alpha", 1.0))
    if product is None:
        return "alpha is null"
    alone = g.is_used_only_by(rows.output[0], gemm)
    return ReshapedGemm(product, weights[0 if trans else 1], [*([rows] if alone else []), gemm])


@register_pattern("onnxruntime", roots=("Gemm",), priority=3, precision="rounding")
class ReshapeGemmReshapePattern(PatternOptimization):
    """Reshape(Gemm(Reshape(x, (-1, k)), b)) -> FusedMatMul(x, b).

    1. the last dimension of x is k, the last Reshape restores the others;
    2. transB and alpha are kept; there is no bias.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = read_gemm(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        last = reader(g, node.output[0], "Reshape")
        if last is None or last.input[0] != node.output[0]:
            return self.none(node, "Reshape is not the only use")
        shape, result = g.get_shape(found.product.a), g.try_infer_shape(last.output[0])
        expected = (*shape[:-1], found.width)
        constraints = g.get_registered_constraints()
        if result is None or same_shape(result, expected, constraints) is not True:
            return self.none(node, "the last Reshape does not restore the first dimensions")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [found.product.node(g, last.output[0])]

        return MatchResult(self, [*found.nodes, last], apply, insert_at=last)


@register_pattern("onnxruntime", roots=("Gemm",), priority=3, precision="rounding")
class ReshapeGemmPattern(PatternOptimization):
    """Gemm(Reshape(x, (-1, k)), b) -> Reshape(FusedMatMul(x, b), (-1, n)).

    1. the last dimension of x is k, the one of b is known;
    2. transB and alpha are kept; there is no bias.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = read_gemm(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        width = found.width
        if not isinstance(width, int) or width == 0:
            return self.none(node, "the last dimension of the result is not a known integer")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            product = found.product.node(g, g.unique_name(f"{node.output[0]}_batch"))
            shape = g.make_initializer("", np.array([-1, width], dtype=np.int64))
            flat = g.make_node("Reshape", [product.output[0], shape], node.output[:])
            return [product, flat]

        return MatchResult(self, found.nodes, apply, insert_at=node)
