"""Softmax of a sum, for CUDA."""

from __future__ import annotations

from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from ..reading.shapes import equal_dims, known_rank
from .cpu_kernels import MICROSOFT, require_kernel


@rewrite(
    "onnxruntime", root="Softmax", after="Add", priority=4, precision="rounding", sole_use=True
)
def bias_softmax(g: RewriteContext, softmax: NodeProto) -> NewNode:
    """Softmax(x + b, axis=-1) -> com.microsoft.BiasSoftmax(x, b), where it has a kernel: CUDA.

    1. b has the shape of x but for consecutive dimensions 1: the first ones, or those before the
       last one, which are broadcast. Either operand of the addition may be b.
    """
    add = g.before(softmax, "Add")
    for x, b in (tuple(add.input), tuple(add.input)[::-1]):
        is_inner = _broadcast(g, x, b)
        if is_inner is None:
            continue
        require_kernel(g, "BiasSoftmax", x)
        last = len(g.shape_of(x)) - 1
        axis = g.get_axis(softmax, -1 if g.main_opset >= 13 else 1)
        g.require(axis in (-1, last), "the axis is not the last one")
        options = {"axis": -1, "is_inner_broadcast": int(is_inner)}
        return NewNode("BiasSoftmax", [x, b], options, MICROSOFT)
    return g.refuse("no operand is broadcast as the kernel does")


def _broadcast(g: RewriteContext, x: str, b: str) -> bool | None:
    """True if the dimensions of the bias that are 1 are those before the last one, False if they
    are the first ones or if there is none, None if it is something else."""
    if known_rank(g, x) != known_rank(g, b) or not g.has_shape(x) or not g.has_shape(b):
        return None
    rows = list(zip(g.get_shape(x), g.get_shape(b), strict=True))
    same = equal_dims(g)
    if len(rows) < 2 or not same(*rows[-1]):
        return None
    kept = [same(d, e) for d, e in rows[:-1]]
    if not all(k or e == 1 for k, (_, e) in zip(kept, rows[:-1], strict=True)):
        return None
    ones = [i for i, k in enumerate(kept) if not k]
    if not ones or all(e == 1 for _, e in rows[: ones[-1] + 1]):
        return False
    return True if all(e == 1 for _, e in rows[ones[0] : -1]) else None
