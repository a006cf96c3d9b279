"""Products of complex numbers whose last axis holds both parts, as ComplexMul, for CUDA."""

from __future__ import annotations

from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import scalar_index
from ...analysis.shapes import proven_equal
from ...authoring import RewriteContext
from ...declarative import rule
from ..kernels import require_kernel

#: both parts of the result, which may be unsqueezed first
_JOINED = "Concat({0} | Unsqueeze({0}, *_, **_), {1} | Unsqueeze({1}, *_, **_), axis=axis)"
_PRODUCT = f"re = a0 * b0 - a1 * b1; im = a0 * b1 + a1 * b0; y = {_JOINED.format('re', 'im')}; y"
_CONJUGATE = f"cr = a0 * b0 + a1 * b1; im = a1 * b0 - a0 * b1; y = {_JOINED.format('cr', 'im')}; y"


@rule(
    "onnxruntime",
    f"{_PRODUCT} -> com.microsoft.ComplexMul(a, b)",
    f"{_CONJUGATE} -> com.microsoft.ComplexMulConj(a, b)",
    precision="rounding",
    aliases="ComplexMulConj",
)
def complex_mul(
    g: RewriteContext, a0: str, a1: str, b0: str, b1: str, y: str, cr: str | None, axis: int
) -> dict[str, str]:
    """Concat(a0 * b0 - a1 * b1, a0 * b1 + a1 * b0) -> com.microsoft.ComplexMul(a, b) on CUDA.

    1. the parts come from Split or Gather on the last axis, whose length is 2; a and b have the
       same shape, the one of the result;
    2. factors and terms come in any order but those of a difference;
    3. Concat(a0 * b0 + a1 * b1, a1 * b0 - a0 * b1) -> com.microsoft.ComplexMulConj(a, b), where a
       is multiplied by the conjugate of b;
    4. there is one complex number: the kernel multiplies every number of a by the first one of b
       (onnxruntime 1.31.1 on a GPU H100; newer kernels were not tried).
    """
    shape = g.shape_of(y)
    g.require(axis in (-1, len(shape) - 1), "two parts are not joined on the last axis")
    for name in g.inputs(g.before(y)):
        added = g.producer_or_none(name, "Unsqueeze")
        last = added is None or axes_of(g, added) in ((-1,), (len(shape) - 1,))
        g.require(last, "two parts are not joined on the last axis")
    (a, *left), (b, *right) = ([_part(g, n) for n in names] for names in ((a0, a1), (b0, b1)))
    same = a[1] == b[1] == 0 and left == [(a[0], 1)] and right == [(b[0], 1)]
    g.require(same, "the factors are not those of a complex product")
    equal = all(proven_equal(g, g.shape_of(name), shape) for name in (a[0], b[0]))
    g.require(equal, "the shapes are not the same")
    alone = all(size == 1 for size in shape[:-1])
    g.require(alone, "the kernel is wrong for several numbers")
    require_kernel(g, "ComplexMulConj" if cr else "ComplexMul", a[0])
    return {"a": a[0], "b": b[0]}


def _part(g: RewriteContext, name: str) -> tuple[str, int]:
    """The complex number of which a result is a part, and 0 for its real part."""
    node = g.before(name, "Split", "Gather")
    source = str(node.input[0])
    shape = g.shape_of(source)
    g.require(bool(shape) and shape[-1] == 2, "the last dimension is not 2")
    on_last = axis_of(g, node, len(shape)) == len(shape) - 1
    g.require(on_last, "the parts are not on the last axis")
    if node.op_type == "Split":
        halves = len(node.output) == 2 and all(g.shape_of(n)[-1] == 1 for n in node.output)
        g.require(halves, "the parts are not those of complex numbers")
        return source, list(node.output).index(name)
    index = scalar_index(g, node.input[1])
    if index not in (-2, -1, 0, 1) or g.rank_or_none(node.input[1]) != 0:
        g.refuse("the part is not known")
    return source, index % 2
