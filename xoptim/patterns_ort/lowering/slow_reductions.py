"""Writes reductions and Softmax with faster ones, where the kernel of onnxruntime is slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from ...analysis.axes import axis_of, reduced_axes
from ...analysis.kernels import require_fast, require_float_on_cpu, require_many
from ...analysis.shapes import positive
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: fewest elements, if all of them are known, or if a dimension is not
_KNOWN, _OTHERWISE = 1 << 11, 1 << 8
#: most elements along the axis of a Softmax, and fewest after each
_AXIS, _AFTER = 64, 1 << 8
_LARGEST = float(np.finfo(np.float32).max)


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"),
    min_opset=11,
    priority="later",
    precision="rounding",
)
def slow_reduction(g: RewriteContext, node: NodeProto) -> NewNode:
    """ReduceL2(x) -> Sqrt(ReduceSum(x * x)), the same for ReduceSumSquare, ReduceL1 and
    ReduceLogSumExp. On CPU, in float.

    1. Some dimensions are kept: the kernel is fast when it reduces everything.
    2. x has 2,048 elements at least, or 256 times an unknown number.
    3. ReduceLogSumExp(x) -> m + Log(ReduceSum(Exp(x - m))), m is the largest element, or the
       nearest number if it is infinite; no dimension is null.

    The kernels of onnxruntime take one element at a time: ReduceSum takes 0.12 to 0.9 of the time
    with the product, 0.05 to 0.5 for ReduceLogSumExp; up to 1.1 for one short row. Embeddings,
    retrieval, and losses normalize so.
    """
    x, op_type = node.input[0], node.op_type
    require_float_on_cpu(g, x)
    shape = g.shape_of(x)
    axes = g.known(reduced_axes(g, node, len(shape)) or None, "the axes are not known")
    _require_elements(g, shape, axes)
    keep = g.get_attribute_with_default(node, "keepdims", 1)
    options = {"axes": list(axes), "keepdims": keep}
    if op_type == "ReduceLogSumExp":
        return _log_sum_exp(g, x, shape, options)
    if op_type == "ReduceL1":
        return g.op.ReduceSum(g.op.Abs(x), **options)
    total = g.op.ReduceSum(g.op.Mul(x, x), **options)
    return g.op.Sqrt(total) if op_type == "ReduceL2" else total


def _require_elements(g: RewriteContext, shape: Sequence[Any], axes: Sequence[int]) -> None:
    kept = [d for i, d in enumerate(shape) if i not in axes and d != 1]
    g.require(kept, "every dimension is reduced")
    require_many(g, tuple(shape), _KNOWN, _OTHERWISE)


def _log_sum_exp(
    g: RewriteContext, x: str, shape: Sequence[Any], options: dict[str, Any]
) -> NewNode:
    axes = options["axes"]
    filled = all(positive(g, shape[axis]) for axis in axes)
    g.require(filled, "there may be nothing to add")
    limits = (np.array(v, dtype=np.float32) for v in (-_LARGEST, _LARGEST))
    largest = g.op.Clip(g.op.ReduceMax(x, axes=axes, keepdims=1), *limits)
    total = g.op.ReduceSum(g.op.Exp(g.op.Sub(x, largest)), **options)
    if not options["keepdims"]:
        largest = g.op.Squeeze(largest, axes=axes)
    return g.op.Add(g.op.Log(total), largest)


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("LogSoftmax", "Softmax"),
    min_opset=13,
    priority="later",
    precision="rounding",
)
def slow_softmax(g: RewriteContext, node: NodeProto) -> NewNode:
    """Softmax(x, axis=1) -> e / ReduceSum(e), e = Exp(x - m), m = Max(ReduceMax(x), -3.4e38). On
    CPU, in float.

    1. The axis has 1 to 64 elements, 256 at least come after each of them, or an unknown number
       along two dimensions.
    2. LogSoftmax(x, axis=1) -> d - Log(ReduceSum(Exp(d))), d = x - m.

    onnxruntime moves the axis to the end, computes short rows, and moves them back: the operators
    take 0.1 to 0.5 of the time. YOLOv8 and its successors have it for the distances to the sides of
    a box, networks of segmentation for the classes of a pixel. The maximum is bounded so that
    SoftmaxDefinition, which would write Softmax again, does not see it; no result depends on it.
    """
    x = node.input[0]
    require_float_on_cpu(g, x)
    shape = g.shape_of(x)
    axis = g.known(axis_of(g, node, len(shape), -1), "the axis is not known")
    length, after = shape[axis], shape[axis + 1 :]
    count = length if isinstance(length, int) and length > 0 else None
    count = g.known(count, "the number of elements is not known")
    require_fast(g, count <= _AXIS, f"the axis has more than {_AXIS} elements")
    known = [d for d in after if isinstance(d, int)]
    many = math.prod(known) >= _AFTER if len(known) == len(after) else len(after) > 1
    require_fast(g, many, "few elements come after each of the axis")
    options = {"axes": [axis], "keepdims": 1}
    least = np.array(-_LARGEST, dtype=np.float32)
    less = g.op.Sub(x, g.op.Max(g.op.ReduceMax(x, **options), least))
    e = g.op.Exp(less)
    total = g.op.ReduceSum(e, **options)
    if node.op_type == "LogSoftmax":
        return g.op.Sub(less, g.op.Log(total))
    return g.op.Div(e, total)
