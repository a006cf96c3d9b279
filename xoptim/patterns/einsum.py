"""Einsum that another operator computes."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.op_traits import is_float_of

from ..api import NewNode, RewriteContext, rewrite
from ..reading.shapes import equal_dims

#: letters of each operand, then of the result
Terms = tuple[tuple[str, ...], str]


def terms_of(equation: str) -> Terms | None:
    """Letters of an equation; the implicit result has those that stand once, in alphabetical order.

    :return: None if there is an ellipsis, or if one operand has a letter twice

    >>> terms_of("ij, jk"), terms_of("ii->i")
    ((('ij', 'jk'), 'ik'), None)
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = tuple(left.split(","))
    every = "".join(operands)
    result = right if arrow else "".join(sorted(c for c in every if every.count(c) == 1))
    written = [*operands, result]
    if "." in equation or any(len(set(term)) != len(term) for term in written):
        return None
    return operands, result


@rewrite("default", root="Einsum", min_opset=12, precision="rounding")
def einsum(g: RewriteContext, node: NodeProto) -> NewNode | str:
    """Einsum(x, z) -> one operator that computes the same.

    1. `ij->ji`: Transpose(x), or x itself;
    2. `bij->bi`: ReduceSum(x), the letters that stay are in the same order;
    3. `ij,j->ij`: Mul(x, z), or Mul(z, x) when the second operand has the letters of the result;
    4. `bij,bjk->bik`: MatMul(x, z), or MatMul(z, x); the letters before the last two are those of
       the result, or the last of them;
    5. `ij,kj->ik`, `ji,jk->ki`...: Gemm with its attributes, for floats.

    A product sums over a dimension that is proven to be the same in both operands: Einsum
    broadcasts a dimension 1, MatMul does not.
    """
    equation = g.known(g.get_attribute_with_default(node, "equation", None), "there is no equation")
    found = g.known(terms_of(equation), "an operand has an ellipsis, or a letter twice")
    operands, result = found
    names = g.inputs(node)
    g.require(len(names) == len(operands), "the operands are not those of the equation")
    if len(names) == 1:
        return _of_one(g, names[0], operands[0], result)
    g.require(len(names) == 2, "there are more than two operands")
    for i, j in ((0, 1), (1, 0)):
        new = _of_two(g, (names[i], operands[i]), (names[j], operands[j]), result)
        if new is not None:
            return new
    g.refuse("no operator computes it alone")


def _of_one(g: RewriteContext, x: str, term: str, result: str) -> NewNode | str:
    if term == result:
        return x
    if sorted(term) == sorted(result):
        return g.op.Transpose(x, perm=[term.index(c) for c in result])
    staying = "".join(c for c in term if c in result)
    g.require(staying == result, "the letters that stay are in another order")
    axes = [i for i, c in enumerate(term) if c not in result]
    return g.op.ReduceSum(x, axes=axes, keepdims=0)


def _of_two(
    g: RewriteContext, left: tuple[str, str], right: tuple[str, str], result: str
) -> NewNode | None:
    """One operator on two operands, in this order."""
    (x, a), (z, b) = left, right
    if a == result and a.endswith(b):
        return g.op.Mul(x, z)
    if len(a) < 2 or len(b) < 2 or len(result) < 2:
        return None
    rows, columns, summed = result[-2], result[-1], a[-1]
    if a[-2:] == rows + summed and b[-2:] == summed + columns and summed not in result:
        leads = sorted((a[:-2], b[:-2]), key=len)
        if leads[1] == result[:-2] and leads[1].endswith(leads[0]):
            _require_same(g, left, right, summed)
            return g.op.MatMul(x, z)
    return _gemm(g, left, right, result)


def _gemm(
    g: RewriteContext, left: tuple[str, str], right: tuple[str, str], result: str
) -> NewNode | None:
    """The product of two matrices, transposed or not."""
    (x, a), (z, b) = left, right
    rows, columns = result[0], result[-1]
    if len(a) != 2 or len(b) != 2 or len(result) != 2 or rows not in a or columns not in b:
        return None
    summed = a.replace(rows, "")
    if summed != b.replace(columns, "") or summed in result:
        return None
    if not is_float_of(g.try_infer_type(x), g.main_opset):
        return None
    _require_same(g, left, right, summed)
    flags = {"transA": int(a[0] == summed) or None, "transB": int(b[1] == summed) or None}
    return g.op.Gemm(x, z, **flags)


def _require_same(
    g: RewriteContext, left: tuple[str, str], right: tuple[str, str], letter: str
) -> None:
    """Refuses unless both operands have the same dimension for a letter."""
    (x, a), (z, b) = left, right
    first, second = g.shape_of(x)[a.index(letter)], g.shape_of(z)[b.index(letter)]
    g.require(equal_dims(g)(first, second), "the dimensions of the sum may differ")
