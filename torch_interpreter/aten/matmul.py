"""Products of matrices."""

from __future__ import annotations

from typing import Any

from ..registry import aten
from ..symbols import int_vector
from .operands import Operand, Outputs, cast, common_type, scalar_like
from .reduce import vector_norm


@aten("aten.linear.default")
def linear(g: Any, sts: Any, outputs: Outputs, x: str, weight: str, bias: str | None = None) -> str:
    """x @ weight.T + bias."""
    columns = weight
    if g.get_rank(weight) > 1:
        columns = g.op.Transpose(weight, perm=[1, 0])
    product = g.op.MatMul(x, columns, outputs=outputs if bias is None else None)
    return product if bias is None else g.op.Add(product, bias, outputs=outputs)


@aten(
    "aten.matmul.default",
    "aten.mm.default",
    "aten.bmm.default",
    "aten.mv.default",
    "aten.dot.default",
)
def matmul(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
    """MatMul, which has numpy's rules as torch's matmul."""
    itype = common_type(g, x, y)
    return g.op.MatMul(cast(g, x, itype), cast(g, y, itype), outputs=outputs)


def _scaled(g: Any, x: str, factor: Operand) -> str:
    if not isinstance(factor, str) and factor == 1:
        return x
    return g.op.Mul(x, scalar_like(g, factor, g.get_type(x), g.get_rank(x)))


@aten(
    "aten.addmm.default",
    "aten.baddbmm.default",
    "aten.addmv.default",
)
def addmm(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    a: str,
    b: str,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> str:
    """beta * x + alpha * a @ b; a null beta ignores x, even its nan."""
    product = _scaled(g, g.op.MatMul(a, b), alpha)
    if not isinstance(beta, str) and beta == 0:
        return product
    return g.op.Add(product, _scaled(g, x, beta), outputs=outputs)


@aten("aten.outer.default", "aten.ger.default")
def outer(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
    """A column times a row."""
    itype = common_type(g, x, y)
    column = g.op.UnsqueezeAnyOpset(cast(g, x, itype), int_vector([1]))
    return g.op.Mul(column, cast(g, y, itype), outputs=outputs)


@aten("aten.addr.default")
def addr(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    a: str,
    b: str,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> str:
    """beta * x + alpha * outer(a, b)."""
    product = _scaled(g, outer(g, None, None, a, b), alpha)
    return g.op.Add(product, _scaled(g, x, beta), outputs=outputs)


@aten("aten.einsum.default")
def einsum(g: Any, sts: Any, outputs: Outputs, equation: str, operands: list[str], **_: Any) -> str:
    """Einsum."""
    return g.op.Einsum(*operands, equation=equation.replace(" ", ""), outputs=outputs)


@aten("aten.linalg_vecdot.default")
def vecdot(g: Any, sts: Any, outputs: Outputs, x: str, y: str, *, dim: int = -1) -> str:
    """The sum of products along one dimension."""
    product = g.op.Mul(x, y)
    return g.op.ReduceSumAnyOpset(product, int_vector([dim]), keepdims=0, outputs=outputs)


@aten("aten.linalg_det.default")
def det(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Det."""
    return g.op.Det(x, outputs=outputs)


@aten("aten.bilinear.default")
def bilinear(
    g: Any, sts: Any, outputs: Outputs, x: str, y: str, weight: str, bias: str | None = None
) -> str:
    """x @ weight[k] @ y for every k."""
    left = g.op.Einsum(x, weight, y, equation="...i,kij,...j->...k")
    return left if bias is None else g.op.Add(left, bias, outputs=outputs)


@aten("aten._linalg_slogdet.default")
def slogdet(g: Any, sts: Any, outputs: Outputs, x: str) -> list[Any]:
    """The sign and the logarithm of the determinant; the factorization is not computed."""
    determinant = g.op.Det(x)
    return [g.op.Sign(determinant), g.op.Log(g.op.Abs(determinant)), None, None]


@aten("aten._cdist_forward.default")
def cdist(
    g: Any, sts: Any, outputs: Outputs, x: str, y: str, p: float, compute_mode: int | None
) -> str:
    """The norm of the difference between every pair of rows."""
    rows = g.op.UnsqueezeAnyOpset(x, int_vector([g.get_rank(x) - 1]))
    columns = g.op.UnsqueezeAnyOpset(y, int_vector([g.get_rank(y) - 2]))
    gap = g.op.Sub(rows, columns)
    return vector_norm(g, None, outputs, gap, p, [-1])
