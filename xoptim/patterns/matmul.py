"""MatMul and Gemm with what is next to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.protos import has_reference
from xbuilder.op_traits import is_float_of

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer
from ..reading.permutations import perm_of
from ..reading.shapes import keeps_shape

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def has_gemm_type(g: GraphBuilderPatternOptimization, name: str) -> bool:
    """Tells if Gemm may replace a MatMul of this operand: a float type, known by the opset."""
    return is_float_of(g.try_infer_type(name), g.main_opset)


def is_matrix(g: GraphBuilderPatternOptimization, name: str) -> bool:
    """Tells if a result has two dimensions."""
    return g.has_rank(name) and g.get_rank(name) == 2


def gemm_attributes(
    g: GraphBuilderPatternOptimization, node: NodeProto
) -> dict[str, int | float] | None:
    """Attributes of a Gemm, its defaults for a MatMul, None if one belongs to a function."""
    defaults = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    if node.op_type != "Gemm":
        return defaults
    return None if has_reference(node) else g.get_attributes_with_default(node, **defaults)


def without_defaults(attributes: dict[str, int | float]) -> dict[str, int | float]:
    """Attributes to write: those that are not the default value."""
    return {k: v for k, v in attributes.items() if v != (1 if k in ("alpha", "beta") else 0)}


@register_pattern(
    "default", roots=("MatMul", "Gemm"), priority=1, min_opset=7, precision="rounding"
)
class TransposeMatMulPattern(PatternOptimization):
    """MatMul(Transpose(A), B) -> Gemm(A, B, transA=1), and the same for B.

    1. One operand, or both, is a transposed matrix: rank 2, permutation (1, 0) or missing.
    2. The node is a Gemm: transA, transB are flipped, alpha, beta and the bias stay.
    3. A Transpose something else reads stays for the others.

    Float types only. A MatMul needs opset 11, where the bias of Gemm became optional. A constant
    weight is not transposed back when transB is already 1: GemmTranspose does the opposite.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        names = g.record(node).inputs[:2]
        left, right = (producer(g, name, "Transpose") for name in names)
        if left is None and right is None:
            return self.none(node, "no operand is transposed")
        if node.op_type == "MatMul" and g.main_opset < 11:
            return self.none(node, "Gemm needs a bias before opset 11")
        if not has_gemm_type(g, names[0]):
            return self.none(node, "the type is not a known float type")
        if not (is_matrix(g, names[0]) and is_matrix(g, names[1])):
            return self.none(node, "an operand is not known to be a matrix")
        attributes = gemm_attributes(g, node)
        if attributes is None:
            return self.none(node, "an attribute belongs to the function")
        left = self._usable(g, left)
        right = self._usable(g, right)
        if right is not None and attributes["transB"] and g.is_constant(right.input[0]):
            right = None
        if left is None and right is None:
            return self.none(node, "no operand is a matrix to transpose")
        if left is right:
            return MatchResult(self, [left, None, node], self.apply)
        return MatchResult(self, [left, right, node], self.apply)

    @staticmethod
    def _usable(g: GraphBuilderPatternOptimization, node: NodeProto | None) -> NodeProto | None:
        return node if node is not None and perm_of(g, node) == (1, 0) else None

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto | None,
        right: NodeProto | None,
        node: NodeProto,
    ) -> list[NodeProto]:
        attributes = gemm_attributes(g, node)
        inputs = list(node.input)
        removed = [t for t in (left, right) if t is not None]
        sources = {t.output[0]: t.input[0] for t in removed}
        for position, key in enumerate(("transA", "transB")):
            if inputs[position] in sources:
                inputs[position] = sources[inputs[position]]
                attributes[key] = 1 - attributes[key]
        gemm = g.make_node(
            "Gemm", inputs, node.output[:], name=node.name, **without_defaults(attributes)
        )
        # a Transpose is still needed when it has another reader, or when the bias is its result
        needed = [n for t in removed for n in self._needed(g, t, node)]
        return [*needed, gemm]

    @staticmethod
    def _needed(
        g: GraphBuilderPatternOptimization, transpose: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        result = transpose.output[0]
        alone = g.is_used_only_by(result, node) and result not in node.input[2:]
        return [] if alone else [transpose]


@register_pattern(
    "default", roots=("MatMul", "Gemm"), priority=3, min_opset=7, precision="rounding"
)
class MatMulAddPattern(PatternOptimization):
    """Add(MatMul(A, B), C) -> Gemm(A, B, C).

    1. A and B are matrices (rank 2) of a float type.
    2. The node is a Gemm without bias: alpha, transA, transB stay, beta is 1.
    3. C does not change the shape (M, N) of the product: its rank is at most 2, each of its
       dimensions is 1 or the one of the product. It may be the first operand of the Add.

    4. With `allow_reshape`, A may have more dimensions, B being a matrix, C a vector or a scalar:
       Reshape(Gemm(Reshape(A, (-1, K)), B, C), (..., N)); one dimension of A may be dynamic.

    Refused when the product is an output or is used elsewhere.

    :param allow_reshape: case 4
    """

    def __init__(
        self,
        verbose: int = 0,
        priority: int | None = None,
        min_opset: int | None = None,
        allow_reshape: bool = False,
    ):
        super().__init__(verbose, priority, min_opset)
        self.allow_reshape = allow_reshape

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        record = g.record(node)
        result = record.outputs[0]
        add = g.next_node(result)
        if add is None or add.op_type != "Add" or add.domain:
            return self.none(node, "the product does not go to one Add only")
        if g.is_used_more_than_once(result):
            return self.none(node, "the product is used elsewhere")
        if any(record.inputs[2:]):
            return self.none(node, "Gemm already has a bias")
        if not has_gemm_type(g, record.inputs[0]):
            return self.none(node, "the type is not a known float type")
        matrices = all(is_matrix(g, i) for i in record.inputs[:2])
        if not matrices and self._reshaped(g, record.inputs[0], record.inputs[1]) is None:
            return self.none(node, "an operand is not known to be a matrix")
        if gemm_attributes(g, node) is None:
            return self.none(node, "an attribute belongs to the function")
        terms = g.record(add).inputs
        if not self._is_bias(g, result, terms[terms[0] == result], 2 if matrices else 1):
            return self.none(node, "the bias is not proven to keep the shape of the product")
        return MatchResult(self, [node, add], self.apply)

    def _reshaped(
        self, g: GraphBuilderPatternOptimization, left: str, right: str
    ) -> tuple[list[int], list[int]] | None:
        """Shapes given to A and to the result in case 4, None if it does not apply."""
        a, b = g.try_infer_shape(left), g.try_infer_shape(right)
        if not self.allow_reshape or a is None or b is None or len(a) < 3 or len(b) != 2:
            return None
        if any(not isinstance(d, int) for d in (a[-1], *b)) or 0 in (*a, *b):
            return None
        batch = [d if isinstance(d, int) else -1 for d in a[:-1]]
        return None if batch.count(-1) > 1 else ([-1, a[-1]], [*batch, b[1]])

    @staticmethod
    def _is_bias(
        g: GraphBuilderPatternOptimization, product: str, bias: str, max_rank: int
    ) -> bool:
        shape = g.try_infer_shape(bias)
        return shape is not None and len(shape) <= max_rank and keeps_shape(g, product, shape)

    def apply(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, add: NodeProto
    ) -> list[NodeProto]:
        attributes = gemm_attributes(g, node)
        attributes["beta"] = 1.0
        inputs = [*node.input[:2], add.input[add.input[0] == node.output[0]]]
        attributes = without_defaults(attributes)
        if is_matrix(g, inputs[0]):
            return [g.make_node("Gemm", inputs, add.output[:], name=node.name, **attributes)]
        before, after = (
            g.make_initializer("", np.array(shape, dtype=np.int64))
            for shape in self._reshaped(g, inputs[0], inputs[1])
        )
        reshape = g.make_node("Reshape", [inputs[0], before], 1)
        inputs[0] = reshape.output[0]
        gemm = g.make_node("Gemm", inputs, 1, name=node.name, **attributes)
        return [reshape, gemm, g.make_node("Reshape", [gemm.output[0], after], add.output[:])]


@register_pattern("default", roots=("Gemm",), min_opset=7, precision="rounding")
class GemmTransposePattern(PatternOptimization):
    """Gemm(X, W, B) -> Gemm(X, Transpose(W), B, transB=1) when W is constant.

    1. transA = transB = 0 and beta = 1; alpha and the bias stay.
    2. Nothing else reads W, otherwise it would be stored twice.

    The transposed weight is a constant: folding computes it.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        weight = node.input[1]
        if not g.is_constant(weight):
            return self.none(node, "the weight is not constant")
        attributes = gemm_attributes(g, node)
        if attributes is None:
            return self.none(node, "an attribute belongs to the function")
        if attributes["transA"] or attributes["transB"] or attributes["beta"] != 1:
            return self.none(node, "an operand is transposed or the bias is scaled")
        if g.is_used_more_than_once(weight):
            return self.none(node, "the weight is used elsewhere")
        if not is_matrix(g, weight):
            return self.none(node, "the weight is not a matrix")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        transpose = g.make_node("Transpose", [node.input[1]], 1, perm=[1, 0])
        attributes = gemm_attributes(g, node)
        attributes["transB"] = 1
        inputs = [node.input[0], transpose.output[0], *node.input[2:]]
        return [
            transpose,
            g.make_node(
                "Gemm", inputs, node.output[:], name=node.name, **without_defaults(attributes)
            ),
        ]
