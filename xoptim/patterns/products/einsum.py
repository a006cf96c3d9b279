"""Replaces an Einsum that another operator computes: MatMul, Gemm, Mul, ReduceSum, Transpose."""

from __future__ import annotations

from collections.abc import Sequence
from string import digits

from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import is_float_of

from ...analysis.kernels import require_cpu_kernel
from ...analysis.shapes import dims_are_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: letters of each operand, then of the result
Terms = tuple[tuple[str, ...], str]

#: an operand and its letters
Operand = tuple[str, str]

ELLIPSIS = "..."


def terms_of(equation: str, ranks: Sequence[int] = ()) -> Terms | None:
    """Letters of an equation. An implicit result has the letters that appear once, in alphabetical
    order.

    :param equation: the equation
    :param ranks: those of the operands, needed by an ellipsis, whose dimensions become digits
    :return: None if one operand has a letter twice, or if the ellipses do not all stand for
        the same number of dimensions

    >>> terms_of("ij, jk"), terms_of("ii->i"), terms_of("...i,i->...", (2, 1))
    ((('ij', 'jk'), 'ik'), None, (('0i', 'i'), '0'))
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    if not arrow:
        once = sorted(c for c in left if c.isalpha() and left.count(c) == 1)
        result = "".join([ELLIPSIS if ELLIPSIS in left else "", *once])
    written = [*operands, result]
    if "." in equation:
        hidden = {
            rank - len(term) + len(ELLIPSIS)
            for term, rank in zip(operands, ranks, strict=False)
            if ELLIPSIS in term
        }
        if len(ranks) != len(operands) or len(hidden) != 1 or ELLIPSIS not in result:
            return None
        length = hidden.pop()
        if not 0 <= length <= len(digits):
            return None
        written = [term.replace(ELLIPSIS, digits[:length], 1) for term in written]
    if any("." in term or len(set(term)) != len(term) for term in written):
        return None
    return tuple(written[:-1]), written[-1]


@rewrite("default", root="Einsum", min_opset=12, precision="rounding")
def einsum(g: RewriteContext, node: NodeProto) -> NewNode | str:
    """Einsum(x, z) -> MatMul, Gemm, Mul, ReduceSum or Transpose.

    1. `ij->ji`: Transpose(x), or x itself;
    2. `bij->bi`: ReduceSum(x), the remaining letters are in the same order;
    3. `ij,j->ij`: Mul(x, z), or Mul(z, x) when the second operand has the letters of the result;
    4. `bij,bjk->bik`: MatMul(x, z), or MatMul(z, x); the letters before the last two are those of
       the result, or the last of them; `i,ij->j` and `i,i->` as well;
    5. `ij,kj->ik`, `ji,jk->ki`...: Gemm with its attributes, for floats;
    6. `bhid,bhjd->bhij`, `bihd,bjhd->bhij`, `bhij,bjhd->bihd`, `bik,jk->bij`...: MatMul, the
       operands and the result transposed if they must be, for floats;
    7. `bij,bi->bij`, `i,j->ij`: Mul, one operand unsqueezed;
    8. an ellipsis stands for the same number of dimensions everywhere, the ranks are known;
    9. in bfloat16, if runtimes have a kernel on CPU for each operator, or for another processor.

    A product sums over a dimension proven to be the same in both operands, because Einsum
    broadcasts a dimension 1 and MatMul does not. These cases were measured faster, transpositions
    included: 0.2 to 0.9 of the time. `ij,j->i` is kept, onnxruntime multiplies a matrix by a vector
    ten times faster in Einsum than in MatMul, and so are `bhwc,hkc->bhwk`, `bki,kj->bij` and
    `i,bij->bj`: for many small matrices MatMul takes 1.8 to 4.4 times longer.
    """
    new = _written(g, node)
    if isinstance(new, NewNode) and g.type_or_none(node.input[0]) == TensorProto.BFLOAT16:
        _require_kernels(g, new)
    return new


def _require_kernels(g: RewriteContext, new: NewNode) -> None:
    """Refuses operators that runtimes have no kernel for in bfloat16, unlike Einsum."""
    require_cpu_kernel(g, new.op_type, TensorProto.BFLOAT16)
    for operand in new.inputs:
        if isinstance(operand, NewNode):
            _require_kernels(g, operand)


def _written(g: RewriteContext, node: NodeProto) -> NewNode | str:
    """The operators that compute an Einsum."""
    equation = g.known(g.get_attribute_with_default(node, "equation", None), "there is no equation")
    names = g.inputs(node)
    ranks = [g.rank_of(name) for name in names] if ELLIPSIS in equation else ()
    found = g.known(
        terms_of(equation, ranks), "a letter stands twice, or the ellipses are not the same"
    )
    operands, result = found
    g.require(len(names) == len(operands), "the operands are not those of the equation")
    if len(names) == 1:
        return _of_one(g, names[0], operands[0], result)
    g.require(len(names) == 2, "there are more than two operands")
    first, second = zip(names, operands, strict=True)
    for way in (_alone, _unsqueezed):
        for left, right in ((first, second), (second, first)):
            new = way(g, left, right, result)
            if new is not None:
                return new
    return _transposed(g, first, second, result)


def _of_one(g: RewriteContext, x: str, term: str, result: str) -> NewNode | str:
    if sorted(term) == sorted(result):
        return _moved(g, x, term, result)
    staying = "".join(c for c in term if c in result)
    g.require(staying == result, "the letters that stay are in another order")
    axes = [i for i, c in enumerate(term) if c not in result]
    return g.op.ReduceSum(x, axes=axes, keepdims=0)


def _alone(g: RewriteContext, left: Operand, right: Operand, result: str) -> NewNode | None:
    """One operator on the two operands, in this order."""
    (x, a), (z, b) = left, right
    if a == result and a.endswith(b):
        return g.op.Mul(x, z)
    return _matmul(g, left, right, result) or _gemm(g, left, right, result)


def _matmul(g: RewriteContext, left: Operand, right: Operand, result: str) -> NewNode | None:
    """The product of matrices in the last dimensions, or of a vector by a matrix or a vector."""
    (x, a), (z, b) = left, right
    summed = a[-1:]
    leads = sorted((a[:-2], b[:-2]), key=len)
    if b[-2:-1] == summed and (len(a) > 1 or len(b) == 2):
        written = leads[1] + a[-2:-1] + b[-1]
    elif a == b == summed:
        written = ""
    else:
        return None
    if not summed or summed in result or written != result or not leads[1].endswith(leads[0]):
        return None
    _require_same(g, left, right, summed)
    return g.op.MatMul(x, z)


def _gemm(g: RewriteContext, left: Operand, right: Operand, result: str) -> NewNode | None:
    """The product of two matrices, transposed or not."""
    (x, a), (z, b) = left, right
    if len(a) != 2 or len(b) != 2 or len(result) != 2:
        return None
    rows, columns = result[0], result[1]
    if rows not in a or columns not in b:
        return None
    summed = a.replace(rows, "")
    if summed != b.replace(columns, "") or summed in result:
        return None
    if not is_float_of(g.type_or_none(x), g.main_opset):
        return None
    _require_same(g, left, right, summed)
    flags = {"transA": int(a[0] == summed) or None, "transB": int(b[1] == summed) or None}
    return g.op.Gemm(x, z, **flags)


def _unsqueezed(g: RewriteContext, left: Operand, right: Operand, result: str) -> NewNode | None:
    """An elementwise product of the last dimensions by an unsqueezed operand."""
    (x, a), (z, b) = left, right
    ordered = all("".join(c for c in result if c in term) == term for term in (a, b))
    if not b or not ordered or not result.endswith(a) or set(result) != {*a, *b}:
        return None
    rest = result[result.index(b[0]) :]
    axes = [i for i, c in enumerate(rest) if c not in b]
    return g.op.Mul(x, g.op.Unsqueeze(z, axes=axes)) if axes else None


def _transposed(g: RewriteContext, left: Operand, right: Operand, result: str) -> NewNode:
    """The product of matrices whose dimensions are transposed, in the order that moves less."""
    orders = [
        (sum(old != new for old, new in moves), first, second, moves)
        for first, second in ((left, right), (right, left))
        for moves in _moves(first[1], second[1], result)
    ]
    g.require(orders, "neither one operator nor a product of matrices computes it")
    floats = is_float_of(g.type_or_none(left[0]), g.main_opset)
    g.require(floats, "matrices that are not floats would be transposed")
    _, first, second, moves = min(orders, key=lambda order: order[0])
    (a, rows), (b, columns), (product, wanted) = moves
    _require_same(g, first, second, columns[-2])
    new = g.op.MatMul(_moved(g, first[0], a, rows), _moved(g, second[0], b, columns))
    return new if product == wanted else g.op.Transpose(new, perm=_perm(product, wanted))


def _moves(a: str, b: str, result: str) -> list[tuple[tuple[str, str], ...]]:
    """The letters of both operands and of their product, each with its order before and after;
    nothing without a row, a column and a summed letter. Several rows and a matrix make one product
    if only the matrix is transposed, otherwise one for each."""
    batch = "".join(c for c in result if c in a and c in b)
    rows, columns = ("".join(c for c in result if c in t and c not in batch) for t in (a, b))
    summed = "".join(c for c in a if c in b and c not in result)
    if not rows or len(columns) != 1 or len(summed) != 1:
        return []
    if len(rows) > 1 and (a, result) != (rows + summed, rows + columns):
        return []
    if any(len(t) != len(batch + own) + 1 for t, own in ((a, rows), (b, columns))):
        return []
    first, second = (a, batch + rows + summed), (b, batch + summed + columns)
    return [(first, second, (batch + rows + columns, result))]


def _perm(term: str, wanted: str) -> list[int]:
    return [term.index(c) for c in wanted]


def _moved(g: RewriteContext, x: str, term: str, wanted: str) -> str | NewNode:
    """An operand transposed to another order of letters."""
    return x if term == wanted else g.op.Transpose(x, perm=_perm(term, wanted))


def _require_same(g: RewriteContext, left: Operand, right: Operand, letter: str) -> None:
    """Refuses unless both operands have the same dimension for a letter."""
    (x, a), (z, b) = left, right
    first, second = g.shape_of(x)[a.index(letter)], g.shape_of(z)[b.index(letter)]
    g.require(dims_are_equal(g)(first, second), "the dimensions of the sum may differ")
