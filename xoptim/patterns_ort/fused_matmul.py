"""Transpositions and scalar factors around a matrix product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.constants import scalar_constant
from ..reading.neighbours import producer, reader
from ..reading.shapes import known_rank, positive
from .cpu_kernels import has_kernel

MICROSOFT = "com.microsoft"
_ROOTS = ("MatMul", "com.microsoft::FusedMatMul")


@dataclass(frozen=True)
class Matmul:
    """`alpha * op(a) @ op(b)`, op transposes the last two dimensions or does nothing.

    :param a: left operand
    :param b: right operand
    :param trans_a: the left operand is transposed
    :param trans_b: the right operand is transposed
    :param alpha: factor
    :param elem_type: type of the operands
    """

    a: str
    b: str
    trans_a: bool
    trans_b: bool
    alpha: float
    elem_type: int

    def node(self, g: GraphQueries, output: str) -> NodeProto:
        """The node; an attribute is written when it differs from its default value."""
        attributes: dict[str, Any] = {}
        if self.trans_a:
            attributes["transA"] = 1
        if self.trans_b:
            attributes["transB"] = 1
        if self.alpha != 1:
            attributes["alpha"] = self.alpha
        return g.make_node("FusedMatMul", [self.a, self.b], [output], MICROSOFT, **attributes)

    def scaled(self, factor: float) -> Matmul | None:
        """Multiplies alpha, which is a float: None if it cannot hold the product as the type does.

        A null alpha is refused: the kernel does not compute what it multiplies, NaN would be lost.
        """
        alpha = self.alpha * factor
        with np.errstate(over="ignore"):
            rounded = float(np.float32(alpha))
        if not np.isfinite(rounded) or rounded == 0:
            return None
        if self.elem_type == TensorProto.DOUBLE and rounded != alpha:
            return None
        return replace(self, alpha=alpha)


def read_matmul(g: GraphQueries, node: NodeProto) -> Matmul | str:
    """Reads a MatMul or a FusedMatMul.

    :param g: the optimizer
    :param node: the node
    :return: what it computes, or why no rewrite applies to it
    """
    a, b = node.input
    if not has_kernel(g, f"{MICROSOFT}::FusedMatMul", a):
        return "onnxruntime has no FusedMatMul for this type"
    if any(g.get_attribute_with_default(node, f"transBatch{s}", 0) for s in "AB"):
        return "a batch dimension is transposed"
    ranks = known_rank(g, a), known_rank(g, b)
    if None in ranks or min(ranks) < 2:  # type: ignore[type-var]
        return "the operands do not have at least two dimensions"
    trans = [bool(g.get_attribute_with_default(node, f"trans{s}", 0)) for s in "AB"]
    if not sums_something(g, a, b, *trans):
        return "the product may sum over an empty dimension"
    alpha = g.get_attribute_with_default(node, "alpha", 1.0)
    return Matmul(a, b, *trans, alpha, g.get_type(a))


def sums_something(g: GraphQueries, a: str, b: str, trans_a: bool, trans_b: bool) -> bool:
    """Tells if the dimension a product sums over is proven to be at least 1.

    Otherwise MatMul and Gemm give zeros but FusedMatMul leaves its result uninitialised.
    """
    left, right = g.try_infer_shape(a), g.try_infer_shape(b)
    found = [s[-2 if t else -1] for s, t in ((left, trans_a), (right, not trans_b)) if s]
    return any(positive(g, d) for d in found)


def swaps_last_two(g: GraphQueries, node: NodeProto) -> bool:
    """Tells if a Transpose exchanges the last two dimensions and leaves the others."""
    perm = g.get_attribute_with_default(node, "perm", None)
    if perm is None:  # all dimensions are reversed
        return known_rank(g, node.input[0]) == 2
    n = len(perm)
    return n >= 2 and list(perm) == [*range(n - 2), n - 1, n - 2]


def scalar_after(g: GraphQueries, name: str) -> tuple[NodeProto, float] | None:
    """The only use of a result if it multiplies or divides by a scalar, and the factor."""
    node = reader(g, name, "Mul", "Div")
    return None if node is None or name not in node.input else _factor(g, node, name)


def _factor(g: GraphQueries, node: NodeProto, name: str) -> tuple[NodeProto, float] | None:
    other = node.input[1] if node.input[0] == name else node.input[0]
    value = None if other == name else scalar_constant(g, other, known_rank(g, name))
    if value is None or (node.op_type == "Div" and node.input[0] != name):
        return None
    number = float(value.item())
    if node.op_type == "Mul":
        return node, number
    return None if number == 0 else (node, 1 / number)


def scaled_operand(g: GraphQueries, name: str) -> tuple[NodeProto, str, float] | None:
    """What a scalar constant multiplies or divides: the node, the operand, the factor."""
    node = producer(g, name, "Mul", "Div")
    for x in () if node is None else node.input:
        if not g.is_constant(x):
            found = _factor(g, node, x)
            return None if found is None else (node, x, found[1])
    return None


def is_sole_use(g: GraphQueries, name: str, node: NodeProto) -> bool:
    """Tells if a node is the only one to read a result: what gives it may go with the node."""
    return g.is_used_only_by(name, node)


@register_pattern("onnxruntime", roots=_ROOTS, priority=2, precision="rounding")
class FusedMatMulPattern(PatternOptimization):
    """MatMul(Transpose(a), b) -> FusedMatMul(a, b, transA=1).

    1. either operand or both; Transpose exchanges the last two dimensions;
    2. one operand has more than two dimensions, Gemm does the others;
    3. a product or a division by a scalar constant after becomes alpha;
    4. a Transpose used elsewhere stays until its last use is rewritten.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        swaps = [producer(g, name, "Transpose") for name in node.input]
        swaps = [t if t is not None and swaps_last_two(g, t) else None for t in swaps]
        if swaps == [None, None]:
            return self.none(node, "no operand has its last two dimensions transposed")
        found = read_matmul(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        if max(g.get_rank(name) for name in node.input) <= 2:
            return self.none(node, "the operands have two dimensions")
        left, right = swaps
        if left is not None:
            found = replace(found, a=left.input[0], trans_a=not found.trans_a)
        if right is not None:
            found = replace(found, b=right.input[0], trans_b=not found.trans_b)
        gone = {t.output[0]: t for t in swaps if t is not None}
        nodes = [t for name, t in gone.items() if is_sole_use(g, name, node)]
        return _with_scalar(self, g, found, [*nodes, node])


def _with_scalar(
    pattern: PatternOptimization, g: GraphQueries, found: Matmul, nodes: list[NodeProto]
) -> MatchResult:
    """A match whose last node is a product, the scalar after it goes in alpha if it can."""
    after = scalar_after(g, nodes[-1].output[0])
    scaled = None if after is None else found.scaled(after[1])
    if after is not None and scaled is not None:
        found, nodes = scaled, [*nodes, after[0]]
    output = nodes[-1].output[0]

    def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
        return [found.node(g, output)]

    return MatchResult(pattern, nodes, apply, insert_at=nodes[-1])


@register_pattern("onnxruntime", roots=_ROOTS, priority=2, precision="rounding")
class FusedMatMulDivPattern(PatternOptimization):
    """MatMul(a, b) * c -> FusedMatMul(a, b, alpha=c), / c gives alpha=1/c, c scalar constant."""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        after = scalar_after(g, node.output[0])
        if after is None:
            return self.none(node, "no product by a scalar constant is the only use")
        found = read_matmul(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        if found.scaled(after[1]) is None:
            return self.none(node, "alpha is a float and cannot hold the factor")
        return _with_scalar(self, g, found, [node])


@register_pattern("onnxruntime", roots=_ROOTS, priority=3, precision="rounding")
class FusedMatMulx2Pattern(PatternOptimization):
    """MatMul(a * c, b) -> FusedMatMul(a, b, alpha=c).

    1. either operand or both; a division by c gives alpha=1/c; c is a scalar constant;
    2. MatMul(a * c, a * c) gives alpha=c*c;
    3. the scaled result is read by products of matrices only: all are rewritten.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        operands = [scaled_operand(g, name) for name in node.input]
        if operands == [None, None]:
            return self.none(node, "no operand is scaled by a constant")
        found: Any = read_matmul(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        nodes: dict[str, NodeProto] = {}
        names = [found.a, found.b]
        for i, operand in enumerate(operands):
            if operand is None or not self._only_products(g, names[i]):
                continue
            scaled = found.scaled(operand[2])
            if scaled is None:
                return self.none(node, "alpha is a float and cannot hold the factor")
            nodes[names[i]] = operand[0]
            found = replace(scaled, **{"ab"[i]: operand[1]})
        if not nodes:
            return self.none(node, "a scaled operand is used elsewhere")
        gone = [n for name, n in nodes.items() if is_sole_use(g, name, node)]

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [found.node(g, node.output[0])]

        return MatchResult(self, [*gone, node], apply, insert_at=node)

    def _only_products(self, g: GraphQueries, name: str) -> bool:
        readers = g.next_nodes(name)
        keys = {f"{n.domain}::{n.op_type}".lstrip(":") for n in readers}
        return keys <= set(_ROOTS) and g.is_used_only_by(name, *readers)


@register_pattern("onnxruntime", roots=_ROOTS, priority=3, precision="rounding")
class FusedMatMulTransposePattern(PatternOptimization):
    """Transpose(MatMul(a, b)) -> FusedMatMul(b, a, transA=1, transB=1), last two dimensions."""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        swap = reader(g, node.output[0], "Transpose")
        if swap is None or not swaps_last_two(g, swap):
            return self.none(node, "the only use does not transpose the last two dimensions")
        found = read_matmul(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        turned = replace(
            found, a=found.b, b=found.a, trans_a=not found.trans_b, trans_b=not found.trans_a
        )

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [turned.node(g, swap.output[0])]

        return MatchResult(self, [node, swap], apply, insert_at=swap)


@register_pattern("onnxruntime", roots=_ROOTS, priority=3)
class TransposeFusedMatMulBPattern(PatternOptimization):
    """MatMul(a, Transpose(b, (0, 2, 3, 1))): transB=1, the permutation becomes (0, 2, 1, 3)."""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        move = producer(g, node.input[1], "Transpose")
        perm = None if move is None else g.get_attribute_with_default(move, "perm", None)
        if move is None or perm != [0, 2, 3, 1]:
            return self.none(node, "the right operand is not transposed by (0, 2, 3, 1)")
        found = read_matmul(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        if found.trans_b:
            return self.none(node, "the right operand is transposed twice")
        if not is_sole_use(g, move.output[0], node):
            return self.none(node, "the transposed operand is used elsewhere")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            moved = g.make_node("Transpose", [move.input[0]], perm=[0, 2, 1, 3])
            product = replace(found, b=moved.output[0], trans_b=True)
            return [moved, product.node(g, node.output[0])]

        return MatchResult(self, [move, node], apply, insert_at=node)
