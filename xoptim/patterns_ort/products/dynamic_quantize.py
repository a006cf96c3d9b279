"""Dynamically quantized products, as onnxruntime quantizes a model: DynamicQuantizeMatMul."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import optional_input, other_input
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import runtime_has_kernel


@rewrite(
    "onnxruntime",
    root="MatMulInteger",
    after="DynamicQuantizeLinear",
    reads="Cast",
    min_opset=11,
    priority="later",
    precision="rounding",
    sole_use=True,
)
def dynamic_quantize_matmul(g: RewriteContext, product: NodeProto) -> dict[str, NewNode]:
    """Cast(MatMulInteger(q, w, z, v)) * (s * t) + b -> com.microsoft.DynamicQuantizeMatMul.

    It reads x, w, t, v, b, where q, s, z = DynamicQuantizeLinear(x).

    1. w is a constant matrix, t and v, the scale and the zero point, have one element or one for
       each column; v and b may be missing, b has one element for each column.
    2. Other nodes read q, s or z: com.microsoft.MatMulIntegerToFloat(q, w, s, t, z, v, b).

    onnxruntime does the same when it loads the model: nodes are saved, not time.
    """
    quantize = g.before(product, "DynamicQuantizeLinear")
    x, (rows, scale, zero) = quantize.input[0], quantize.output
    weight, points = product.input[1], optional_input(product, 3)
    shape = g.known(g.get_constant_shape(weight), "the weight is not a constant")
    g.require(len(shape) == 2, "the weight is not a matrix")
    g.require(g.rank_of(x) > 1, "what is quantized is a vector")
    g.require(optional_input(product, 2) == zero, "the zero point is not the one of the rows")
    g.require(not points or _is_parameter(g, points, shape), "a zero point is not constant")
    scaled, scales = _scaled(g, g.after(product, "Cast"))
    factor = other_input(scales, scale) or g.refuse("the scale of the rows is not a factor")
    g.require(_is_parameter(g, factor, shape), "the scale of the weight is not constant")
    result, bias = _biased(g, scaled, shape[1])
    alone = all(g.is_used_only_by(name, product, scales) for name in quantize.output)
    inputs: tuple[str, ...]
    if alone:
        op_type, inputs = "DynamicQuantizeMatMul", (x, weight, factor, points, bias)
    else:
        op_type, inputs = "MatMulIntegerToFloat", (rows, weight, scale, factor, zero, points, bias)
    kernel = f"{MICROSOFT}::{op_type}"
    known = runtime_has_kernel(g, kernel, inputs[0]) and runtime_has_kernel(g, kernel, weight, 1)
    g.require(known, f"onnxruntime has no {op_type} for these types")
    given = inputs if bias else inputs[: -1 if points else -2]
    return {result: getattr(g.op, op_type)(*given, domain=MICROSOFT)}


def _scaled(g: RewriteContext, cast: NodeProto) -> tuple[NodeProto, NodeProto]:
    """The product of an integer result, cast to float, by its scales; the product of the scales."""
    g.require(g.type_of(cast.output[0]) == TensorProto.FLOAT, "the result is not a float")
    scaled = g.after(cast, "Mul")
    scales = other_input(scaled, cast.output[0])
    return scaled, g.before(scales, "Mul")


def _biased(g: RewriteContext, scaled: NodeProto, columns: int) -> tuple[str, str]:
    """The result with its bias, and the bias, empty if none is added."""
    name = scaled.output[0]
    add = g.reader_or_none(name, "Add")
    bias = "" if add is None else other_input(add, name)
    if add is None or not bias or g.shape_or_none(bias) != (columns,):
        return name, ""
    g.look_at(add)
    return add.output[0], bias


def _is_parameter(g: RewriteContext, name: str, shape: tuple[int, ...]) -> bool:
    """Whether a constant has one element, or one for each column."""
    return g.get_constant_shape(name) in ((), (1,), shape[1:])
