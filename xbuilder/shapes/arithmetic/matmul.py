"""Products of matrices: MatMul, Gemm, Einsum, Det and quantized products."""

from __future__ import annotations

from ...dims import Dim, DimensionError, Shape, broadcast_dim, prove_ge
from ...facts.facts import ResultFacts
from ..common import INT32, broadcast_shape, first_type, merge_dim
from ..context import ShapeContext
from ..shipped import shipped_function


def matmul_shape(ctx: ShapeContext, a: Shape, b: Shape) -> Shape | None:
    """Shape of numpy's matmul, None if it is invalid.

    :param ctx: context, receives the constraint on the inner dimension
    :param a: shape of the left side
    :param b: shape of the right side
    """
    if not a or not b:
        return None
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner and merge_dim(ctx, a[-1], inner) is None:
        return None
    batch_a, batch_b = a[:-2], b[:-2]
    if batch_a == batch_b or not batch_b:
        batch: Shape | None = batch_a
    else:
        batch = broadcast_shape(ctx, batch_a, batch_b) if batch_a else batch_b
    if batch is None:
        return None
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return (*batch, *rows, *columns)


def matmul_rank(ra: int | None, rb: int | None) -> int | None:
    """Rank of numpy's matmul."""
    if ra is None or rb is None:
        return None
    if ra == 1 or rb == 1:
        return max(ra + rb - 2, 0)
    return max(ra, rb)


def matmul_facts(ctx: ShapeContext, elem_type: int, j: int) -> ResultFacts | None:
    """Facts of the product of the first input and of input *j*."""
    a, b = ctx.facts(0), ctx.facts(j)
    if a.shape is None or b.shape is None:
        return ResultFacts(elem_type, None, matmul_rank(a.known_rank(), b.known_rank()))
    shape = matmul_shape(ctx, a.shape, b.shape)
    return None if shape is None else ResultFacts(elem_type, shape)


@shipped_function("MatMul")
def matmul(ctx: ShapeContext) -> ResultFacts | None:
    """MatMul."""
    return matmul_facts(ctx, ctx.type(0) or ctx.type(1), 1)


@shipped_function("MatMulInteger")
def matmul_integer(ctx: ShapeContext) -> ResultFacts | None:
    """MatMulInteger accumulates in int32."""
    return matmul_facts(ctx, INT32, 1)


@shipped_function("QLinearMatMul")
def qlinear_matmul(ctx: ShapeContext) -> ResultFacts | None:
    """QLinearMatMul: the type is the one of the output's zero point."""
    return matmul_facts(ctx, ctx.type(7), 3)


def gemm_facts(ctx: ShapeContext, elem_type: int, j: int = 1) -> ResultFacts | None:
    """Facts of Gemm applied on the first input and on input *j*."""
    a, b = ctx.shape(0), ctx.shape(j)
    if any(shape is not None and len(shape) != 2 for shape in (a, b)):
        return None
    if a is None or b is None:
        return ResultFacts(elem_type, None, 2)
    rows, inner = a[::-1] if ctx.attr("transA", 0) else a
    other, columns = b[::-1] if ctx.attr("transB", 0) else b
    if merge_dim(ctx, inner, other) is None:
        return None
    return ResultFacts(elem_type, (rows, columns))


@shipped_function("Gemm")
def gemm(ctx: ShapeContext) -> ResultFacts | None:
    """Gemm: the third input is broadcast to the product, which has its length on an axis where it
    has two elements or more."""
    facts, bias = gemm_facts(ctx, first_type(ctx)), ctx.shape(2)
    # onnxruntime reads the shape of a bias it multiplies by 0, the reference does not
    if facts is None or facts.shape is None or bias is None or ctx.attr("beta", 1.0) == 0:
        return facts
    shape = list(facts.shape)
    for axis in range(-min(len(bias), 2), 0):
        if prove_ge(bias[axis], 2, ctx.constraints):
            shape[axis] = merge_dim(ctx, shape[axis], bias[axis]) or shape[axis]
    return ResultFacts(facts.type, tuple(shape))


def _split_equation(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]] | None:
    """Labels of each operand and of the result; an ellipsis becomes labels `.0`, `.1`, ...

    The labels of an ellipsis are counted from the right so that they are broadcast.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        return None
    operands, most = [], 0
    for term, rank in zip(terms, ranks, strict=True):
        head, dots, tail = term.partition("...")
        missing = rank - len(head) - len(tail)
        if missing < 0 or (missing and not dots):
            return None
        most = max(most, missing)
        operands.append([*head, *(f".{i}" for i in reversed(range(missing))), *tail])
    ellipsis = [f".{i}" for i in reversed(range(most))]
    if arrow:
        head, dots, tail = right.partition("...")
        return operands, [*head, *(ellipsis if dots else []), *tail]
    letters = [label for labels in operands for label in labels if label[0] != "."]
    once = sorted(label for label in set(letters) if letters.count(label) == 1)
    return operands, [*ellipsis, *once]


@shipped_function("Einsum")
def einsum(ctx: ShapeContext) -> ResultFacts | None:
    """Einsum: every label has one dimension."""
    elem_type = first_type(ctx)
    equation = ctx.attr("equation", "")
    inputs = [ctx.shape(i) for i in range(ctx.n_inputs)]
    shapes = [shape for shape in inputs if shape is not None]
    if len(shapes) < len(inputs):
        _, arrow, right = equation.replace(" ", "").partition("->")
        known = len(right) if arrow and "..." not in right else None
        return ResultFacts(elem_type, None, known)
    parsed = _split_equation(equation, [len(shape) for shape in shapes])
    if parsed is None:
        return None
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(parsed[0], shapes, strict=True):
        for label, dim in zip(labels, shape, strict=True):
            try:
                sizes[label] = broadcast_dim(sizes.get(label, 1), dim, ctx.constraints)
            except DimensionError:
                return None
    if any(label not in sizes for label in parsed[1]):
        return None
    return ResultFacts(elem_type, tuple(sizes[label] for label in parsed[1]))


@shipped_function("Det")
def det(ctx: ShapeContext) -> ResultFacts | None:
    """Det: the two last axes are reduced."""
    facts = ctx.facts(0)
    if facts.shape is None:
        return ResultFacts(facts.type, None, None if facts.rank is None else facts.rank - 2)
    if len(facts.shape) < 2 or merge_dim(ctx, *facts.shape[-2:]) is None:
        return None
    return ResultFacts(facts.type, facts.shape[:-2])
