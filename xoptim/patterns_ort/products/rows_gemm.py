"""MatMul with a bias becomes a Gemm on the rows of a sequence, which adds the bias in one pass."""

from __future__ import annotations

import math

from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import optional_input, other_input
from ...analysis.gemm import is_plain, product_and_bias
from ...analysis.kernels import require_fast
from ...analysis.neighbours import consumers_of
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

#: elementwise operators between two products
_ACTIVATIONS = (
    *(f"{MICROSOFT}::{name}" for name in ("BiasGelu", "FastGelu", "Gelu", "QuickGelu")),
    "Gelu",
    "Relu",
)
_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization")
#: least number of known rows: with fewer, two Reshape take longer than an addition
_ROWS = 16
#: most elements in a row and in a row of the result: the product of longer ones takes so long that
#: the addition does not count, and Gemm writes the bias in longer results before it multiplies
_NARROW = 256


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=_ACTIVATIONS,
    reads=("Add", "MatMul"),
    read_by="MatMul",
    min_opset=14,
    priority="last",
    precision="rounding",
    sole_use=True,
)
def feed_forward_gemm(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """f(x @ w + b) @ v + c -> Reshape(Gemm(f(Gemm(Reshape(x, (-1, k)), w, b)), v, c), shape).

    1. w and v are constants of two dimensions, b and c have one, the last one of the products;
       c may be missing: the last product is then a MatMul;
    2. f is Relu, Gelu, FastGelu, QuickGelu, or BiasGelu, which adds b; x has three dimensions or
       more and is in float, the processor is CPU.

    From 4 to 500 rows of 64 to 768 elements, it takes 0.93 to 0.99 of the time.
    """
    fused = node.op_type == "BiasGelu"
    g.require(sum(map(bool, node.input)) == 1 + fused, "the activation adds another bias")
    if fused:
        product, bias = g.before(node, "MatMul"), node.input[1]
    else:
        product, bias = product_and_bias(g, g.before(node, "Add"))
    hidden = _gemm(g, product, bias)
    f = g.op.Gelu(hidden, domain=MICROSOFT) if fused else g.like(node, hidden)
    last = g.after(node, "MatMul")
    g.require(last.input[0] == node.output[0], "the second product does not read rows")
    weight, result = last.input[1], last.output[0]
    width = _columns(g, weight)
    add = g.reader_or_none(result, "Add")
    vector = "" if add is None else other_input(add, result)
    if add is None or g.shape_or_none(vector) != (width,):
        return {result: _restored(g, product.input[0], g.op.MatMul(f, weight), width)}
    g.look_at(add)
    new = g.op.Gemm(f, weight, vector)
    return {add.output[0]: _restored(g, product.input[0], new, width)}


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root="Add",
    reads="MatMul",
    behind="FeedForwardGemm",
    min_opset=14,
    priority="last",
    precision="rounding",
    sole_use=True,
)
def rows_gemm(g: RewriteContext, node: NodeProto) -> NewNode:
    """x @ w + b -> Reshape(Gemm(Reshape(x, (-1, k)), w, b), shape).

    1. w is a constant of two dimensions, b has one, the last one of the product;
    2. x has three dimensions or more and is in float, the processor is CPU;
    3. all the dimensions of x but one are known, they make 16 rows at least, of 256 elements at
       most, as w has columns; or the residual sum of the result is normalized, then reshaped to
       rows: the Reshapes meet, see ``FlatRows``.

    From 16 to 512 rows of 64 to 256 elements, it takes 0.94 to 0.99 of the time with 64 columns, up
    to 1.00 with 256. From 512 columns on, it would take 1.00 to 1.03.
    """
    product, bias = product_and_bias(g, node)
    new, columns = _gemm(g, product, bias), _columns(g, product.input[1])
    if not _meets_rows(g, node):
        *dims, length = g.shape_of(product.input[0])
        known = [d for d in dims if isinstance(d, int)]
        many = len(known) >= len(dims) - 1 and math.prod(known) >= _ROWS
        require_fast(g, many, "there may be few rows")
        require_fast(g, isinstance(length, int) and length <= _NARROW, "the rows are long")
        require_fast(g, columns <= _NARROW, "the rows of the result are long")
    return _restored(g, product.input[0], new, columns)


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("Add", "Sum"),
    reads="Gemm",
    behind=("FeedForwardGemm", "FlatRows"),
    min_opset=13,
    priority="last",
    precision="rounding",
)
def gemm_residual(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gemm(x, w, b) + r -> Gemm(x, w, r) + b.

    1. b is a vector along the last axis, r has the shape of the product; beta is 1;
    2. nothing else reads the product, it is in float, the processor is CPU.

    onnxruntime repeats b for every row before it multiplies, and copies r at once. With 128 rows,
    GPT2 takes 0.99 of the time.
    """
    names = g.inputs(node)
    g.require(len(names) == 2 and names[0] != names[1], "there are not two terms")
    products = [p for p in g.before_each(node, "Gemm") if p is not None]
    products = [p for p in products if g.is_used_only_by(p.output[0], node)]
    g.require(products, "a product is used elsewhere")
    biased = (p for p in products if optional_input(p, 2) and is_plain(g, p, "beta"))
    gemm = g.known(next(biased, None), "no bias is added once")
    result, bias = gemm.output[0], gemm.input[2]
    residual = other_input(node, result)
    dims = g.shape_of(result)
    g.require(g.shape_or_none(bias) == dims[1:] and isinstance(dims[1], int), "b is not a vector")
    g.require(g.same_shape(residual, result), "what is added has another shape")
    g.require(g.type_of(result) == TensorProto.FLOAT, "the type is not float")
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    return g.op.Add(g.like(gemm, *gemm.input[:2], residual), bias)


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=[f"{MICROSOFT}::{name}" for name in ("FastGelu", "Gelu", "QuickGelu")],
    after="Reshape",
    sole_use=True,
)
def switch_reshape_gelu(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gelu(Reshape(Gemm(A, B))) -> Reshape(Gelu(Gemm(A, B))), the same with FastGelu, QuickGelu.

    The Reshape meets the one of the next product (GPT2). No bias is added, because it would be
    along the last axis. Nothing else reads the inner results.
    """
    g.require(sum(map(bool, node.input)) == 1, "the activation adds a bias")
    move = g.before(node, "Reshape")
    product, *target = g.inputs(move)
    before = g.producer_or_none(product, "MatMul", "Gemm")
    g.require(before is not None, "what is moved is not a MatMul nor a Gemm")
    g.require_sole_use("an inner result is used elsewhere", product)
    return g.like(move, g.like(node, product), *target)


def _meets_rows(g: RewriteContext, node: NodeProto) -> bool:
    """Whether the residual sum of a result is normalized, then reshaped to rows."""
    total = g.reader_or_none(node.output[0], "Add", "Sum")
    if total is None:
        return False
    norms = [n for op in _NORMS for n in consumers_of(g, total.output[0], op)]
    rows = [r for n in norms for r in consumers_of(g, n.output[0], "Reshape")]
    return any(g.rank_or_none(r.output[0]) == 2 for r in rows)


def _columns(g: RewriteContext, weight: str) -> int:
    """Number of columns of a constant matrix."""
    shape = g.known(g.get_constant_shape(weight), "the weight is not a constant")
    g.require(len(shape) == 2 and all(shape), "the weight is not a matrix, or it is empty")
    return shape[1]


def _gemm(g: RewriteContext, product: NodeProto, bias: str) -> NewNode:
    """The product of the rows with its bias."""
    x, weight = g.inputs(product)
    columns = _columns(g, weight)
    g.require(g.shape_or_none(bias) == (columns,), "the bias is not a vector")
    g.require(g.type_of(x) == TensorProto.FLOAT, "the type is not float")
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    g.require(len(g.shape_of(x)) >= 3, "it is a product of matrices")
    length = (g.get_constant_shape(weight) or ())[0]
    return g.op.Gemm(g.op.Reshape(x, [-1, length]), weight, bias)


def _restored(g: RewriteContext, x: str, rows: NewNode, width: int) -> NewNode:
    """Rows reshaped to the dimensions of *x* except the last one, which is *width*."""
    dims = g.shape_of(x)
    known = [d for d in dims[:-1] if isinstance(d, int)]
    if len(known) >= len(dims) - 2 and all(known):
        return g.op.Reshape(rows, [d if isinstance(d, int) else -1 for d in (*dims[:-1], width)])
    shape: Operand = g.op.Shape(x)
    if dims[-1] != width:
        g.require(g.main_opset >= 15, "Shape gives every dimension before opset 15")
        shape = g.op.Concat(g.op.Shape(x, start=0, end=-1), [width], axis=0)
    return g.op.Reshape(rows, shape, allowzero=1)
