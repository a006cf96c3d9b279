"""MatMul between Reshape nodes, MatMul that is a product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.nodes.protos import copy_with_edges, has_reference

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer
from ..reading.permutations import perm_of
from ..reading.shapes import equal_dims, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def same_dims(g: GraphBuilderPatternOptimization, *shapes: Shape) -> bool:
    """Tells if shapes are proven equal."""
    same = equal_dims(g)
    first, *others = shapes
    return all(
        len(first) == len(s) and all(same(a, b) for a, b in zip(first, s, strict=True))
        for s in others
    )


def lone_reshape_before(g: GraphBuilderPatternOptimization, name: str) -> NodeProto | None:
    """The Reshape giving a result nothing else reads."""
    node = producer(g, name, "Reshape")
    return None if node is None or g.is_used_more_than_once(name) else node


def lone_reshape_after(g: GraphBuilderPatternOptimization, name: str) -> NodeProto | None:
    """The Reshape that is the only one to read a result."""
    node = g.next_node(name)
    if node is None or node.op_type != "Reshape" or node.domain or node.input[0] != name:
        return None
    return None if g.is_used_more_than_once(name) else node


class BatchedMatMul:
    """A MatMul and the Reshape around it that only touch the dimensions before the last two.

    :param g: the optimizer
    :param node: a MatMul or a FusedMatMul

    `left`, `right` and `after` are None when there is no Reshape, or one that does more.
    """

    def __init__(self, g: GraphBuilderPatternOptimization, node: NodeProto):
        self.g = g
        self.node = node
        record = g.record(node)
        self.left = lone_reshape_before(g, record.inputs[0])
        self.right = lone_reshape_before(g, record.inputs[1])
        self.after = lone_reshape_after(g, record.outputs[0])

    def reshapes(self) -> list[NodeProto | None]:
        """The three Reshape."""
        return [self.left, self.right, self.after]

    def refused(self) -> str:
        """Says why the Reshape cannot be removed, an empty string if they can.

        Every dimension but the last two is a batch dimension. Inside, the batch dimensions of the
        two operands are equal: nothing is broadcast. Outside, those of what is not reshaped count
        as well: they all are equal.
        """
        g, node = self.g, self.node
        if has_reference(node):
            return "an attribute belongs to the function"
        if any(g.get_attribute_with_default(node, f"transBatch{i}", 0) for i in "AB"):
            return "the batch dimensions are transposed"
        inside = [shape_of(g, n) for n in (*node.input[:2], node.output[0])]
        if any(s is None or len(s) < 2 for s in inside):
            return "a shape is not known"
        if not same_dims(g, inside[0][:-2], inside[1][:-2]):
            return "the batch dimensions are broadcast"
        batches: list[Shape] = []
        for i, reshape in enumerate(self.reshapes()):
            if reshape is None:
                continue
            shape = shape_of(g, reshape.output[0] if i == 2 else reshape.input[0])
            if shape is None or len(shape) < 2:
                return "a shape is not known"
            if not same_dims(g, shape[-2:], inside[i][-2:]):
                return "a Reshape changes the last two dimensions"
            batches.append(shape[:-2])
        if not same_dims(g, *batches):
            return "the batch dimensions outside are not proven equal"
        return ""


@register_pattern("default", roots=("MatMul",), precision="exact", after=("Reshape",))
class ReshapeMatMulReshapePattern(PatternOptimization):
    """Reshape(MatMul(Reshape(A), Reshape(B))) -> MatMul(A, B).

    The three Reshape keep the last two dimensions, the batch dimensions of A, B and of the result
    are proven equal, those inside as well: nothing is broadcast. Shapes may be symbolic. Nothing
    else reads the inner results.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        found = BatchedMatMul(g, node)
        if any(r is None for r in found.reshapes()):
            return self.none(node, "there are not three Reshape for this node only")
        reason = found.refused()
        if reason:
            return self.none(node, reason)
        return MatchResult(self, [found.left, found.right, node, found.after], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
        after: NodeProto,
    ) -> list[NodeProto]:
        inputs = (left.input[0], right.input[0])
        return [copy_with_edges(node, inputs, tuple(after.output))]


@register_pattern("default", roots=("MatMul", "com.microsoft::FusedMatMul"), precision="exact")
class MatMulReshape2Of3Pattern(PatternOptimization):
    """Two or three Reshape around a MatMul -> at most one.

    1. Reshape(MatMul(Reshape(A), Reshape(B))) -> MatMul(A, B).
    2. MatMul(Reshape(A), Reshape(B)) -> Reshape(MatMul(A, B)).
    3. Reshape(MatMul(Reshape(A), B)) -> MatMul(A, Reshape(B)).
    4. Reshape(MatMul(A, Reshape(B))) -> MatMul(Reshape(A), B).

    The Reshape keep the last two dimensions, the batch dimensions outside are equal, those inside
    as well: nothing is broadcast. The shape of the new Reshape is static. Nothing else reads the
    inner results.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        found = BatchedMatMul(g, node)
        left, right, after = found.reshapes()
        missing = [r is None for r in (left, right, after)]
        if sum(missing) > 1:
            return self.none(node, "there are not two Reshape for this node only")
        reason = found.refused()
        if reason:
            return self.none(node, reason)
        if any(missing) and self._new_shape(g, left, right, node, after) is None:
            return self.none(node, "the shape of the new Reshape is not static")
        return MatchResult(self, [left, right, node, after], self.apply)

    @staticmethod
    def _new_shape(
        g: GraphBuilderPatternOptimization,
        left: NodeProto | None,
        right: NodeProto | None,
        node: NodeProto,
        after: NodeProto | None,
    ) -> list[int] | None:
        """Shape the result, or the operand that has no Reshape yet, is given; None if unknown."""
        inside = [shape_of(g, n) for n in (*node.input, node.output[0])]
        # without any element, the shapes before and after a Reshape say nothing of each other
        if g.main_opset < 5 or any(not isinstance(d, int) or d == 0 for s in inside for d in s):
            return None
        if after is None:
            shape = inside[2]
        else:
            batch = shape_of(g, after.output[0])[:-2]
            shape = (*batch, *inside[1 if right is None else 0][-2:])
        return list(shape) if all(isinstance(d, int) for d in shape) else None

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto | None,
        right: NodeProto | None,
        node: NodeProto,
        after: NodeProto | None,
    ) -> list[NodeProto]:
        inputs = [
            name if reshape is None else reshape.input[0]
            for name, reshape in zip(node.input, (left, right), strict=True)
        ]
        outputs = tuple((after or node).output)
        if left is not None and right is not None and after is not None:
            return [copy_with_edges(node, tuple(inputs), outputs)]
        shape = np.array(self._new_shape(g, left, right, node, after), dtype=np.int64)
        name = g.make_initializer("", shape)
        if after is None:
            product = g.unique_name(node.output[0])
            matmul = copy_with_edges(node, tuple(inputs), (product,))
            return [matmul, g.make_node("Reshape", [product, name], list(outputs))]
        position = 1 if right is None else 0
        reshape = g.make_node("Reshape", [inputs[position], name], 1)
        inputs[position] = reshape.output[0]
        return [reshape, copy_with_edges(node, tuple(inputs), outputs)]


@register_pattern("default", roots=("MatMul",), precision="exact")
class TransposeReshapeMatMulPattern(PatternOptimization):
    """MatMul(Reshape(Transpose(A)), B) -> MatMul(Transpose(Reshape(A)), B), the same for B.

    1. The Transpose swaps the last two dimensions, the Reshape keeps them: it may go first.
    2. At most one dimension of the new shape is dynamic, none of the others is null.
    3. Nothing else reads the inner results.

    The Transpose next to the MatMul may then be merged with it.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        reason = "no Reshape for this node only"
        for name in g.record(node).inputs:
            reshape = lone_reshape_before(g, name)
            if reshape is None:
                continue
            transpose = producer(g, reshape.input[0], "Transpose")
            if transpose is None or g.is_used_more_than_once(reshape.input[0]):
                reason = "no Transpose before for this Reshape only"
            elif self._new_shape(g, transpose, reshape) is None:
                reason = "the Reshape may not go first or its shape is not known"
            else:
                return MatchResult(self, [transpose, reshape, node], self.apply)
        return self.none(node, reason)

    @staticmethod
    def _new_shape(
        g: GraphBuilderPatternOptimization, transpose: NodeProto, reshape: NodeProto
    ) -> list[int] | None:
        """Shape the Reshape gives once it goes first, None if it cannot."""
        perm = perm_of(g, transpose)
        moved, final = shape_of(g, reshape.input[0]), shape_of(g, reshape.output[0])
        if perm is None or moved is None or final is None or len(perm) < 2 or len(final) < 2:
            return None
        n = len(perm)
        if perm != (*range(n - 2), n - 1, n - 2) or not same_dims(g, moved[-2:], final[-2:]):
            return None
        shape = [d if isinstance(d, int) else -1 for d in (*final[:-2], final[-1], final[-2])]
        return None if shape.count(-1) > 1 or 0 in shape or g.main_opset < 5 else shape

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        transpose: NodeProto,
        reshape: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        shape = self._new_shape(g, transpose, reshape)
        name = g.make_initializer("", np.array(shape, dtype=np.int64))
        first = g.make_node("Reshape", [transpose.input[0], name], 1, name=reshape.name)
        n = len(shape)
        perm = [*range(n - 2), n - 1, n - 2]
        second = g.make_node("Transpose", first.output[:], reshape.output[:], perm=perm)
        return [first, second, node]


@register_pattern("default", roots=("MatMul",), precision="rounding")
class ShapeBasedMatMulToMulPattern(PatternOptimization):
    """MatMul(A, B) -> Mul(A, B) when the inner dimension is 1.

    A is (..., m, 1), B is (..., 1, n): each element of the result is one product. The sum of one
    product and zero turns -0.0 into 0.0. Mul broadcasts since opset 7.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.main_opset < 7:
            return self.none(node, "broadcasting follows the rules of opset 6")
        left, right = (shape_of(g, name) for name in g.record(node).inputs)
        if left is None or right is None:
            return self.none(node, "a shape is not known")
        if len(left) < 2 or len(right) < 2:
            return self.none(node, "an operand is a vector")
        if left[-1] != 1 or right[-2] != 1:
            return self.none(node, "the inner dimension is not 1")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Mul", node.input[:], node.output[:], name=node.name)]
