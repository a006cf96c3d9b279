"""Half of a sum multiplied by the Gelu of the other half, for CUDA: BiasSplitGelu."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import other_input
from ...analysis.axes import axis_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

#: lengths of the last axis the kernel is written for
LENGTHS = (2560, 5120, 10240)


@rewrite(
    "onnxruntime",
    root=("Gelu", f"{MICROSOFT}::Gelu"),
    after="Split",
    read_by="Mul",
    precision="rounding",
    sole_use=True,
)
def bias_split_gelu(g: RewriteContext, gelu: NodeProto) -> dict[str, NewNode]:
    """l, r = Split(x + b); l * Gelu(r) -> com.microsoft.BiasSplitGelu(x, b), on CUDA.

    1. x has three dimensions, the last one is 2560, 5120 or 10240, as is the one of b;
    2. Gelu is the formula with Erf.
    """
    exact = g.get_attribute_with_default(gelu, "approximate", "none") == "none"
    g.require(exact, "Gelu is the formula with Tanh")
    split = g.before(gelu, "Split")
    product = g.after(gelu, "Mul")
    halves = list(split.output)
    known = len(halves) == 2 and gelu.input[0] == halves[1]
    g.require(known, "Gelu does not read the second half")
    left = other_input(product, gelu.output[0])
    g.require(left == halves[0], "the first half is not multiplied")
    add = g.before(split, "Add")
    shape = g.shape_of(add.output[0])
    g.require(len(shape) == 3 and axis_of(g, split, 3) == 2, "the last of three axes is not split")
    g.require(shape[2] in LENGTHS, f"the last dimension is not one of {LENGTHS}")
    equal = g.shape_of(halves[0])[2] == g.shape_of(halves[1])[2]
    g.require(equal, "the halves do not have the same length")
    for x, b in g.either_order(add):
        if g.shape_or_none(b) == (shape[2],) and g.same_shape(x, add.output[0]):
            require_kernel(g, "BiasSplitGelu", x)
            return {product.output[0]: NewNode("BiasSplitGelu", [x, b], {}, MICROSOFT)}
    return g.refuse("no operand is a bias on the last dimension")
