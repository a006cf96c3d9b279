"""Dropout between a bias and a residual addition, as BiasDropout, for CUDA."""

from __future__ import annotations

from onnx import AttributeProto

from xbuilder.operators.domains import MICROSOFT

from ...authoring import NewNode, NewResult, RewriteContext
from ...declarative import rule
from ..kernels import require_kernel

_DROPPED = "y = Dropout(x + b, [ratio], [training], **options)"


@rule(
    "onnxruntime",
    f"{_DROPPED}; z = y + residual; z",
    f"{_DROPPED}; y",
    root="y",
    min_opset=12,
    precision="rounding",
)
def bias_dropout(
    g: RewriteContext,
    x: str,
    b: str,
    ratio: str,
    training: str,
    options: dict[str, AttributeProto],
    y: str,
    residual: str | None,
    z: str | None,
) -> dict[str, NewResult]:
    """Dropout(x + b) + r -> com.microsoft.BiasDropout(x, b, r), on CUDA.

    1. x has the shape of the result; b has the same, or it is a vector along the last dimension;
    2. r has the same shape and nothing else reads the result of Dropout; otherwise r is missing;
    3. no seed is given, because the numbers drawn with it may differ.

    In training, the dropped elements are another draw of the same distribution.
    """
    g.require("seed" not in options, "the numbers drawn with this seed may change")
    shape = g.shape_of(y)
    vector = g.shape_or_none(b) == shape[-1:] and isinstance(shape[-1], int)
    biased = g.same_shape(x, y) and (vector or g.same_shape(x, b))
    g.require(shape and biased, "no operand is a bias")
    alike = residual is None or g.same_shape(x, residual)
    g.require(alike, "what is added does not have the shape of the result")
    require_kernel(g, "BiasDropout", x)
    inputs = [x, b, residual, ratio, training]
    while not inputs[-1]:
        inputs.pop()
    results = [z or y, *g.before(y).output[1:]]
    new = NewNode("BiasDropout", inputs, {}, MICROSOFT, outputs=len(results))
    return dict(zip(results, new, strict=True))
