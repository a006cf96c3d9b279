"""Dynamically quantized products, as onnxruntime quantizes a model: DynamicQuantizeMatMul."""

from __future__ import annotations

from xbuilder.operators.domains import MICROSOFT

from ...authoring import NewNode, RewriteContext
from ...declarative import rule
from ..kernels import runtime_has_kernel

_PRODUCT = """q, s, z = DynamicQuantizeLinear(x); p = MatMulInteger(q, w, z, [v])
    c = Cast(p, to=1); scales = s * t; y = c * scales"""


@rule(
    "onnxruntime",
    f"{_PRODUCT}; r = y + b; r",
    f"{_PRODUCT}; y",
    root="p",
    min_opset=11,
    priority="later",
    precision="rounding",
    sole_use=False,
)
def dynamic_quantize_matmul(
    g: RewriteContext,
    x: str,
    q: str,
    s: str,
    z: str,
    w: str,
    v: str,
    p: str,
    c: str,
    t: str,
    scales: str,
    y: str,
    b: str | None,
    r: str | None,
) -> dict[str, NewNode]:
    """Cast(MatMulInteger(q, w, z, v)) * (s * t) + b -> com.microsoft.DynamicQuantizeMatMul.

    It reads x, w, t, v, b, where q, s, z = DynamicQuantizeLinear(x).

    1. w is a constant matrix, t and v, the scale and the zero point, have one element or one for
       each column; v and b may be missing, b has one element for each column.
    2. Other nodes read q, s or z: com.microsoft.MatMulIntegerToFloat(q, w, s, t, z, v, b).

    onnxruntime does the same when it loads the model: nodes are saved, not time.
    """
    g.require_sole_use("an inner result is used elsewhere", p, c, scales, *([y] if r else []))
    shape = g.known(g.get_constant_shape(w), "the weight is not a constant")
    g.require(len(shape) == 2, "the weight is not a matrix")
    g.require(g.rank_of(x) > 1, "what is quantized is a vector")
    for name in (t, v) if v else (t,):
        one = g.get_constant_shape(name) in ((), (1,), shape[1:])
        g.require(one, "the scale or the zero point of the weight is not constant")
    vector = b is None or g.shape_or_none(b) == shape[1:]
    g.require(vector, "the bias does not have one element for each column")
    readers = g.before(p), g.before(scales)
    inputs: list[str | None]
    if all(g.is_used_only_by(name, *readers) for name in (q, s, z)):
        op_type, inputs = "DynamicQuantizeMatMul", [x, w, t, v, b]
    else:
        op_type, inputs = "MatMulIntegerToFloat", [q, w, s, t, z, v, b]
    while not inputs[-1]:
        inputs.pop()
    kernel = f"{MICROSOFT}::{op_type}"
    known = runtime_has_kernel(g, kernel, inputs[0] or "") and runtime_has_kernel(g, kernel, w, 1)
    g.require(known, f"onnxruntime has no {op_type} for these types")
    return {r or y: getattr(g.op, op_type)(*inputs, domain=MICROSOFT)}
