"""Softmax of a sum, BiasSoftmax, for CUDA; gradient of Softmax, SoftmaxGrad_13."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import FLOATS

from ...analysis.arguments import other_input
from ...analysis.axes import axes_of, axis_of
from ...analysis.shapes import dims_are_equal
from ...authoring import NewNode, Rewrite, RewriteContext
from ...catalogue import register_pattern
from ...declarative import rule
from ..kernels import require_kernel


@rule(
    "onnxruntime",
    """y = Softmax(x + b, **_)
    y -> com.microsoft.BiasSoftmax(x, b, axis=axis, is_inner_broadcast=is_inner_broadcast)""",
    priority="last",
    precision="rounding",
)
def bias_softmax(g: RewriteContext, x: str, b: str, y: str) -> dict[str, int]:
    """Softmax(x + b, axis=-1) -> com.microsoft.BiasSoftmax(x, b), where it has a kernel: CUDA.

    1. b has the shape of x but for consecutive dimensions 1: the first ones, or those before the
       last one, which are broadcast. Either operand of the addition may be b.
    """
    is_inner = g.known(_broadcast(g, x, b), "no operand is broadcast as the kernel does")
    require_kernel(g, "BiasSoftmax", x)
    last = len(g.shape_of(x)) - 1
    axis = axis_of(g, g.before(y), last + 1, -1 if g.main_opset >= 13 else 1)
    g.require(axis == last, "the axis is not the last one")
    return {"axis": -1, "is_inner_broadcast": int(is_inner)}


def _broadcast(g: RewriteContext, x: str, b: str) -> bool | None:
    """True if the dimensions 1 of the bias are those before the last one, False if they are the
    first ones or there is none, None in any other case."""
    shape, other = g.shape_or_none(x), g.shape_or_none(b)
    if shape is None or other is None or len(shape) != len(other):
        return None
    dims = list(zip(shape, other, strict=True))
    same = dims_are_equal(g)
    if len(dims) < 2 or not same(*dims[-1]):
        return None
    equal = [same(d, e) for d, e in dims[:-1]]
    if not all(k or e == 1 for k, (_, e) in zip(equal, dims[:-1], strict=True)):
        return None
    ones = [i for i, k in enumerate(equal) if not k]
    if not ones or all(e == 1 for _, e in dims[: ones[-1] + 1]):
        return False
    return True if all(e == 1 for _, e in dims[ones[0] : -1]) else None


@register_pattern(roots=("ReduceSum",), after=("Mul",), min_opset=13, precision="rounding")
class SoftmaxGradPattern(Rewrite):
    """dY * Y - Y * ReduceSum(dY * Y) -> com.microsoft.SoftmaxGrad_13(dY, Y).

    1. Y is the factor of both products, it has the shape of dY, the sum is along one axis.

    The operator only exists in the builds of onnxruntime for training: the pattern is in no set.
    """

    for_training_build = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
        """Recognizes the gradient of Softmax around a sum."""
        axes = axes_of(g, node) or ()
        keeps_axis = g.get_attribute_with_default(node, "keepdims", 1) == 1
        g.require(len(axes) == 1 and keeps_axis, "the sum is not along one axis, which is kept")
        first, second = g.before(node, "Mul"), g.after(node, "Mul")
        y = other_input(second, node.output[0])
        other = "the sum is not multiplied by a factor of the product"
        dy = other_input(first, y) or g.refuse(other)
        sub = g.after(second, "Sub")
        ordered = list(sub.input) == [first.output[0], second.output[0]]
        g.require(ordered, "the difference is another one")
        g.require(g.type_of(y) in FLOATS, "the type is not a float type")
        g.require(g.same_shape(dy, y), "the factors may have different shapes")
        new = NewNode("SoftmaxGrad_13", [dy, y], {"axis": axes[0]}, MICROSOFT)
        return {sub.output[0]: new}
