"""MatMul between Reshape nodes, MatMul that is an elementwise product."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from xbuilder.dims import Shape

from ...analysis.permutations import perm_of
from ...analysis.shapes import proven_equal
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

_NOT_STATIC = "the shape of the new Reshape is not static"


def lone_reshapes(g: RewriteContext, node: NodeProto, *others: str) -> list[NodeProto | None]:
    """The Reshape producing each operand of a product, then the one reading its result; None if
    there is none or if the result has another use.

    :param node: the product
    :param others: operators that may produce an operand too
    """
    before = [
        None if r is None or g.is_used_more_than_once(r.output[0]) else r
        for r in g.before_each(node, "Reshape", *others)
    ]
    after = g.after_or_none(node, "Reshape")
    moved = after is not None and after.input[0] == node.output[0]
    return [*before, after if moved else None]


def require_same_batches(
    g: RewriteContext, node: NodeProto, reshapes: Sequence[NodeProto | None]
) -> int | None:
    """Refuses unless the Reshape around a product only change the dimensions before the last two.

    Every dimension but the last two is a batch dimension. Inside, the batch dimensions of the two
    operands are equal: nothing is broadcast; or one operand is one matrix, its batch dimensions are
    1. Outside, those of the others are all equal, and that matrix has no more dimensions than them.

    :param node: the product
    :param reshapes: see :func:`lone_reshapes`
    :return: the position of the operand that is one matrix, None if nothing is broadcast
    """
    moved = any(g.get_attribute_with_default(node, f"transBatch{i}", 0) for i in "AB")
    g.require(not moved, "the batch dimensions are transposed")
    inside = [_matrices(g, name) for name in (*node.input, node.output[0])]
    batches = [shape[:-2] for shape in inside]
    lone = None
    if not proven_equal(g, *batches[:2]):
        lone = next((i for i in (0, 1) if set(batches[i]) <= {1}), None)
        g.require(lone is not None, "the batch dimensions are broadcast")
    matrix: Shape = () if lone is None else batches[lone]
    outside: list[Shape] = []
    for i, reshape in enumerate(reshapes):
        if reshape is not None:
            shape = _matrices(g, reshape.output[0] if i == 2 else reshape.input[0])
            same = proven_equal(g, shape[-2:], inside[i][-2:])
            g.require(same, "a Reshape changes the last two dimensions")
            if i == lone:
                matrix = shape[:-2]
            else:
                outside.append(shape[:-2])
    g.require(bool(outside), "the other operand is not reshaped")
    broader = set(matrix) <= {1} and len(matrix) <= len(outside[0])
    g.require(broader, "the matrix has more batch dimensions than the other operand")
    same = all(proven_equal(g, outside[0], batch) for batch in outside[1:])
    g.require(same, "the batch dimensions outside are not proven equal")
    return lone


def _matrices(g: RewriteContext, name: str) -> Shape:
    """Shape of a result; refuses unless it has at least two dimensions."""
    shape = g.shape_of(name, "a shape is not known")
    g.require(len(shape) >= 2, "a shape is not known")
    return shape


@rewrite(
    "default",
    root=("MatMul", "com.microsoft::FusedMatMul"),
    reads=("Reshape", "Squeeze"),
    aliases="ReshapeMatMulReshape",
)
def mat_mul_reshape_2_of_3(g: RewriteContext, node: NodeProto) -> NewNode | dict[str, NewNode]:
    """Two or three Reshape around a MatMul -> at most one.

    1. Reshape(MatMul(Reshape(A), Reshape(B))) -> MatMul(A, B).
    2. MatMul(Reshape(A), Reshape(B)) -> Reshape(MatMul(A, B)).
    3. Reshape(MatMul(Reshape(A), B)) -> MatMul(A, Reshape(B)).
    4. Reshape(MatMul(A, Reshape(B))) -> MatMul(Reshape(A), B).
    5. A may be one matrix: Reshape(MatMul(A, Reshape(B))) -> MatMul(A, B), and so may B.

    A Squeeze of an operand is a Reshape. The Reshape keep the last two dimensions, the batch
    dimensions outside are equal, those inside as well: nothing else is broadcast. The shape of the
    new Reshape is static. Nothing else reads the inner results.
    """
    reshapes = lone_reshapes(g, node, "Squeeze")
    missing = [i for i, reshape in enumerate(reshapes) if reshape is None]
    g.require(len(missing) <= 1, "there are not two Reshape for this node only")
    lone = require_same_batches(g, node, reshapes)
    sources: dict[str, Operand] = {r.output[0]: r.input[0] for r in reshapes[:2] if r is not None}
    after = reshapes[2]
    for i in missing:
        if i == lone:
            continue
        shape = _new_shape(g, node, after, i)
        if after is None:
            return g.op.Reshape(g.rewired(node, sources), shape)
        sources[node.input[i]] = g.op.Reshape(node.input[i], shape)
    return {(after or node).output[0]: g.rewired(node, sources)}


def _new_shape(
    g: RewriteContext, node: NodeProto, after: NodeProto | None, position: int
) -> list[int]:
    """Target of the Reshape of the result (position 2), or of the operand that has none yet."""
    inside = [g.static_shape(name, _NOT_STATIC) for name in (*node.input, node.output[0])]
    # without elements, the shapes before and after a Reshape are unrelated
    g.require(g.main_opset >= 5 and all(map(all, inside)), _NOT_STATIC)
    batch = inside[2][:-2] if after is None else g.shape_of(after.output[0])[:-2]
    shape = [d for d in (*batch, *inside[position][-2:]) if isinstance(d, int)]
    g.require(len(shape) == len(batch) + 2, _NOT_STATIC)
    return shape


@rewrite("default", root="MatMul", after="Reshape", read_by="Reshape")
def rows_mat_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Reshape(MatMul(Reshape(A), B)) -> MatMul(A, B), where B is one matrix.

    1. The first Reshape turns the rows of A into a matrix, whose last dimension is proven to stay;
       it is kept if something else reads it.
    2. The last one restores the other dimensions of A. Shapes may be symbolic.
    """
    rows, last = g.before(node, "Reshape"), g.after(node, "Reshape")
    source, (flat, weight) = rows.input[0], g.inputs(node)
    names = (source, flat, weight, last.output[0])
    before, inside, matrix, after = (g.shape_of(n, "a shape is not known") for n in names)
    g.require(len(inside) == len(matrix) == 2 <= len(before), "it is not a product of two matrices")
    kept = proven_equal(g, before[-1:], inside[1:])
    g.require(kept, "the last dimension may change")
    restored = proven_equal(g, after, (*before[:-1], matrix[1]))
    g.require(restored, "the last Reshape may not restore the first dimensions")
    return {last.output[0]: g.like(node, source, weight)}


@rewrite("default", root="MatMul", reads="Reshape")
def transpose_reshape_mat_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """MatMul(Reshape(Transpose(A)), B) -> MatMul(Transpose(Reshape(A)), B), the same for B.

    1. The Transpose swaps the last two dimensions, the Reshape keeps them: it may go first.
    2. At most one dimension of the new shape is dynamic, none of the others is null.
    3. Nothing else reads the inner results.

    The Transpose next to the MatMul may then be merged with it.
    """
    reason = "no Reshape for this node only"
    for reshape in g.before_each(node, "Reshape"):
        if reshape is None or g.is_used_more_than_once(reshape.output[0]):
            continue
        transpose = g.before_or_none(reshape, "Transpose")
        if transpose is None or g.is_used_more_than_once(reshape.input[0]):
            reason = "no Transpose before for this Reshape only"
            continue
        shape = _shape_before(g, transpose, reshape)
        if shape is not None:
            first = g.op.Reshape(transpose.input[0], shape)
            return {reshape.output[0]: g.op.Transpose(first, perm=swap_last_two(len(shape)))}
        reason = "the Reshape may not go first or its shape is not known"
    g.refuse(reason)


def swap_last_two(rank: int) -> tuple[int, ...]:
    """Permutation swapping the last two axes."""
    return (*range(rank - 2), rank - 1, rank - 2)


def _shape_before(g: RewriteContext, transpose: NodeProto, reshape: NodeProto) -> list[int] | None:
    """Target of the Reshape once it goes first, None if it cannot."""
    perm = perm_of(g, transpose)
    if perm is None or len(perm) < 2 or perm != swap_last_two(len(perm)):
        return None
    moved, final = g.shape_or_none(reshape.input[0]), g.shape_or_none(reshape.output[0])
    if moved is None or final is None or len(final) < 2:
        return None
    if not proven_equal(g, moved[-2:], final[-2:]):
        return None
    shape = [d if isinstance(d, int) else -1 for d in (*final[:-2], final[-1], final[-2])]
    return None if shape.count(-1) > 1 or 0 in shape or g.main_opset < 5 else shape


@rewrite("default", root="MatMul", behind="ScaledScores", min_opset=7, precision="rounding")
def shape_based_mat_mul_to_mul(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """MatMul(A, B) -> Mul(A, B) when the inner dimension is 1.

    A is (..., m, 1), B is (..., 1, n): each element of the result is one product. The sum of one
    product and zero turns -0.0 into 0.0: nothing after may tell one from the other. Mul broadcasts
    since opset 7.
    """
    a, b = g.inputs(node)
    left, right = g.facts[a].shape, g.facts[b].shape
    if left is None or right is None:
        return g.no("a shape is not known")
    if len(left) < 2 or len(right) < 2:
        return g.no("an operand is a vector")
    if not left[-1] == 1 == right[-2]:
        return g.no("the inner dimension is not 1")
    g.require(not sees_sign_of_zero(g, node.output[0]), SEEN)
    return g.op.Mul(a, b)
