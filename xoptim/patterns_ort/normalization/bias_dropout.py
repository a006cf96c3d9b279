"""Dropout between a bias and a residual addition, as BiasDropout, for CUDA."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import optional_input, other_input
from ...authoring import NewNode, NewResult, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel


@rewrite(
    "onnxruntime",
    root="Dropout",
    after="Add",
    min_opset=12,
    precision="rounding",
    sole_use=True,
)
def bias_dropout(g: RewriteContext, dropout: NodeProto) -> dict[str, NewResult]:
    """Dropout(x + b) + r -> com.microsoft.BiasDropout(x, b, r), on CUDA.

    1. x has the shape of the result; b has the same, or it is a vector along the last dimension;
    2. r has the same shape and nothing else reads the result of Dropout; otherwise r is missing;
    3. no seed is given, because the numbers drawn with it may differ.

    In training, the dropped elements are another draw of the same distribution.
    """
    seed = g.get_attribute_with_default(dropout, "seed", None)
    g.require(seed is None, "the numbers drawn with this seed may change")
    add = g.before(dropout, "Add")
    x, bias = _operands(g, add)
    require_kernel(g, "BiasDropout", x)
    residual, result = _residual(g, dropout, x)
    ratio, training = (optional_input(dropout, i) or None for i in (1, 2))
    inputs = [x, bias, residual, ratio, training]
    while inputs[-1] is None:
        inputs.pop()
    results = [result, *dropout.output[1:]]
    new = NewNode("BiasDropout", inputs, {}, MICROSOFT, outputs=len(results))
    return dict(zip(results, new, strict=True))


def _operands(g: RewriteContext, add: NodeProto) -> tuple[str, str]:
    """The operand with the shape of the sum, and the bias."""
    shape = g.shape_of(add.output[0])
    for x, bias in g.either_order(add):
        vector = g.shape_or_none(bias) == shape[-1:] and isinstance(shape[-1], int)
        if shape and g.same_shape(x, add.output[0]) and (vector or g.same_shape(x, bias)):
            return x, bias
    return g.refuse("no operand is a bias")


def _residual(g: RewriteContext, dropout: NodeProto, x: str) -> tuple[str | None, str]:
    """The term added to the result, None if there is none, and the last result."""
    dropped: str = dropout.output[0]
    after = g.reader_or_none(dropped, "Add")
    residual = "" if after is None else other_input(after, dropped)
    if after is None or not g.same_shape(x, residual):
        return None, dropped
    g.look_at(after)
    return residual, after.output[0]
