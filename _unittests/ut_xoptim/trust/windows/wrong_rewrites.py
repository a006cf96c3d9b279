"""Deliberately wrong rewrites, each with a small model it applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from xoptim import PatternOptimization, rewrite
from xoptim.authoring import RewriteContext


@dataclass(frozen=True)
class Wrong:
    """A wrong rewrite.

    :param name: its name
    :param kind: the mistake
    :param pattern: the rewrite
    :param graph: a graph it applies to, as text
    :param shows: the difference shows when the whole model runs on drawn inputs; swapped operands
        are swapped again, and the optimization stops with the operands of the model
    """

    name: str
    kind: str
    pattern: PatternOptimization
    graph: str
    shows: bool = True


WRONG: list[Wrong] = []


def wrong(
    kind: str,
    root: str,
    graph: str,
    precision: str = "exact",
    shows: bool = True,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that adds a wrong rewrite to the table."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = "".join(p.title() for p in function.__name__.split("_"))
        cls = rewrite(root=root, precision=precision, name=name, **options)(function)
        WRONG.append(Wrong(name, kind, cls(), graph, shows and kind != "operands"))
        return function

    return decorate


def attributes(node: NodeProto, **changes: Any) -> dict[str, Any]:
    """The attributes of a node, some of them changed."""
    return {a.name: a for a in node.attribute if a.name not in changes} | changes


def binary(op_type: str, types: str = "float", result: str = "") -> str:
    return f"""g ({types}[n, 4] x, {types}[n, 4] y) => ({result or types}[n, 4] z)
    {{ z = {op_type}(x, y) }}"""


def unary(text: str, types: str = "float") -> str:
    return f"g ({types}[n, 4] x) => ({types}[n, 4] z) {{ {text} }}"


# -- operands


@wrong("operands", "Sub", binary("Sub"))
def swapped_sub(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Sub(*reversed(node.input))


@wrong("operands", "Div", binary("Div"))
def swapped_div(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Div(*reversed(node.input))


@wrong("operands", "Pow", binary("Pow"))
def swapped_pow(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Pow(*reversed(node.input))


@wrong("operands", "Less", binary("Less", result="bool"))
def swapped_less(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Less(*reversed(node.input))


@wrong(
    "operands",
    "MatMul",
    "g (float[n, n] x, float[n, n] y) => (float[n, n] z) { z = MatMul(x, y) }",
    precision="rounding",
)
def swapped_matmul(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.MatMul(*reversed(node.input))


@wrong(
    "operands",
    "Concat",
    "g (float[n, 4] x, float[n, 4] y) => (float[m, 4] z) { z = Concat<axis = 0>(x, y) }",
)
def swapped_concat(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Concat(*reversed(node.input), axis=0)


@wrong(
    "operands",
    "Where",
    "g (bool[n, 4] c, float[n, 4] x, float[n, 4] y) => (float[n, 4] z) { z = Where(c, x, y) }",
)
def swapped_where(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Where(node.input[0], node.input[2], node.input[1])


@wrong(
    "operands",
    "Split",
    """g (float[n, 4] x) => (float[n, 2] y, float[n, 2] z) {
    a, b = Split<axis = 1, num_outputs = 2>(x) y = Neg(a) z = Exp(b) }""",
)
def swapped_split(g: RewriteContext, node: NodeProto) -> Any:
    new = g.op.Split(node.input[0], axis=1, num_outputs=2, outputs=2)
    return {node.output[0]: new[1], node.output[1]: new[0]}


# -- axes


@wrong("axis", "Softmax", unary("z = Softmax<axis = 1>(x)"), precision="rounding")
def softmax_over_rows(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Softmax(node.input[0], axis=0)


@wrong(
    "axis",
    "ReduceSum",
    "g (float[n, n] x) => (float[n] z) <int64[1] axes = {0}> "
    "{ z = ReduceSum<keepdims = 0>(x, axes) }",
    precision="rounding",
)
def sum_of_columns(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.ReduceSum(node.input[0], axes=[1], keepdims=0)


@wrong(
    "axis",
    "Gather",
    "g (float[n, n] x) => (float[n] z) <int64 i = {0}> { z = Gather<axis = 0>(x, i) }",
)
def gather_columns(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Gather(*node.input, axis=1)


@wrong(
    "axis",
    "Gather",
    """g (float[n, m] x) => (int64 z) <int64 i = {0}> {
    s = Shape(x) z = Gather<axis = 0>(s, i) }""",
    shows=False,
)
def gather_of_no_axis(g: RewriteContext, node: NodeProto) -> Any:
    """The axis does not exist."""
    return g.op.Gather(*node.input, axis=1)


@wrong(
    "axis",
    "Transpose",
    "g (float[n, n, n] x) => (float[n, n, n] z) { z = Transpose<perm = [2, 0, 1]>(x) }",
)
def inverse_transpose(g: RewriteContext, node: NodeProto) -> Any:
    perm = g.get_attribute_with_default(node, "perm", ())
    g.require(tuple(perm) != (1, 2, 0), "it is the same node")
    return g.op.Transpose(node.input[0], perm=[1, 2, 0])


@wrong(
    "axis",
    "CumSum",
    "g (float[n, 4] x) => (float[n, 4] z) <int64 axis = {1}> { z = CumSum(x, axis) }",
    precision="rounding",
)
def cumulated_rows(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.CumSum(node.input[0], np.array(0, dtype=np.int64))


@wrong(
    "axis",
    "ArgMax",
    "g (float[n, n] x) => (int64[n] z) { z = ArgMax<axis = 0, keepdims = 0>(x) }",
)
def argmax_of_columns(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.ArgMax(node.input[0], axis=1, keepdims=0)


# -- conditions that were dropped


@wrong("condition", "Mul", unary("c = Constant<value_float = 1.5>() z = Mul(x, c)"))
def mul_by_one(g: RewriteContext, node: NodeProto) -> Any:
    return node.input[0]


@wrong("condition", "Add", unary("c = Constant<value_float = 1e-3>() z = Add(x, c)"))
def add_zero(g: RewriteContext, node: NodeProto) -> Any:
    return node.input[0]


@wrong(
    "condition",
    "Transpose",
    """g (float[n, n, n] x) => (float[n, n, n] z) {
    y = Transpose<perm = [2, 0, 1]>(x) z = Transpose<perm = [2, 0, 1]>(y) }""",
    after="Transpose",
)
def transpose_transpose(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "Transpose").input[0]


@wrong("condition", "Relu", unary("y = Neg(x) z = Relu(y)"))
def relu_of_positive(g: RewriteContext, node: NodeProto) -> Any:
    return node.input[0]


@wrong(
    "condition",
    "Cast",
    unary("y = Cast<to = 6>(x) z = Cast<to = 1>(y)"),
    after="Cast",
)
def cast_cast(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "Cast").input[0]


@wrong(
    "condition",
    "Gemm",
    "g (float[n, n] x, float[n, n] y) => (float[n, n] z) { z = Gemm<alpha = 0.5>(x, y) }",
    precision="rounding",
)
def gemm_without_alpha(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Gemm(*node.input)


@wrong(
    "condition",
    "Pad",
    """g (float[n, 4] x) => (float[n, 6] z) <int64[4] pads = {0, 1, 0, 1}> {
    z = Pad<mode = "edge">(x, pads) }""",
)
def pad_of_zeros(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Pad(*node.input)


@wrong(
    "condition",
    "TopK",
    """g (float[n, 8] x) => (float[n, 2] z, int64[n, 2] i) <int64[1] k = {2}> {
    z, i = TopK<largest = 0>(x, k) }""",
)
def largest_top_k(g: RewriteContext, node: NodeProto) -> Any:
    new = g.op.TopK(*node.input, outputs=2)
    return {node.output[0]: new[0], node.output[1]: new[1]}


@wrong("condition", "Trilu", unary("z = Trilu<upper = 0>(x)"))
def upper_trilu(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Trilu(node.input[0])


@wrong(
    "condition",
    "Conv",
    """g (float[n, 2, h, w] x, float[2, 2, 3, 3] k) => (float[n, 2, h, w] z) {
    z = Conv<pads = [2, 2, 2, 2], dilations = [2, 2]>(x, k) }""",
    precision="rounding",
)
def conv_without_dilations(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Conv(*node.input, pads=[1, 1, 1, 1])


@wrong(
    "condition",
    "LayerNormalization",
    """g (float[n, 4] x, float[4] s) => (float[n, 4] z) {
    z = LayerNormalization<epsilon = 1e-3>(x, s) }""",
    precision="rounding",
)
def other_epsilon(g: RewriteContext, node: NodeProto) -> Any:
    epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)
    g.require(abs(epsilon - 1e-5) > 1e-8, "the epsilon is the same")
    return g.op.LayerNormalization(*node.input, epsilon=1e-5)


@wrong(
    "condition",
    "Gelu",
    """<ir_version: 10, opset_import: ["": 20]>
    g (float[n, 4] x) => (float[n, 4] z) { z = Gelu<approximate = "tanh">(x) }""",
    precision="rounding",
    shows=True,
)
def gelu_with_erf(g: RewriteContext, node: NodeProto) -> Any:
    kind = g.get_attribute_with_default(node, "approximate", "none")
    g.require(kind == "tanh", "it is computed with erf")
    return g.op.Gelu(node.input[0])


@wrong(
    "condition",
    "Softmax",
    """g (float[b, 4, n, m] s, float[b, 1, n, m] mask) => (float[b, 4, n, m] z) {
    t = Add(s, mask) z = Softmax<axis = 3>(t) }""",
    precision="rounding",
    after="Add",
)
def softmax_without_mask(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Softmax(g.before(node, "Add").input[0], axis=3)


@wrong(
    "condition",
    "Mul",
    """g (float[n, 4] x, float[n, 4] y, float[n, 4] w) => (float[n, 4] z) {
    s = Add(x, y) z = Mul(s, w) }""",
    precision="rounding",
    after="Add",
)
def half_distributed(g: RewriteContext, node: NodeProto) -> Any:
    x, y = g.before(node, "Add").input
    return g.op.Add(g.op.Mul(x, node.input[1]), y)


@wrong(
    "condition", "Not", binary("And", "bool").replace("z = And(x, y)", "a = And(x, y) z = Not(a)")
)
def half_de_morgan(g: RewriteContext, node: NodeProto) -> Any:
    x, y = g.before(node, "And").input
    return g.op.And(g.op.Not(x), g.op.Not(y))


@wrong("condition", "Or", binary("Or", "bool"))
def or_as_xor(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Xor(*node.input)


# -- one branch, one body

BRANCHES = """g (int64 rate, float[n, 4] x, float[n, 4] y) => (float[n, 4] z) <int64 r = {{16000}}> {{
    c = Equal(rate, r)
    z = If(c) <then_branch = a () => (float[n, 4] p) {{ {then} }},
               else_branch = b () => (float[n, 4] q) {{ {otherwise} }}> }}"""


@wrong(
    "branch",
    "Sub",
    BRANCHES.format(then="p = Sub(x, y)", otherwise="q = Add(x, y)"),
    shows=False,
)
def swapped_in_a_branch(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Sub(*reversed(node.input))


@wrong(
    "branch",
    "LeakyRelu",
    BRANCHES.format(then="p = LeakyRelu(x)", otherwise="q = Identity(x)"),
    shows=False,
)
def relu_in_a_branch(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Relu(node.input[0])


@wrong(
    "branch",
    "Neg",
    """g (int64 steps, float[n, 4] x) => (float[n, 4] z) <int64 most = {-1}> {
    k = Min(steps, most)
    z = Loop(k, , x) <body = b (int64 i, bool c, float[n, 4] v) => (bool d, float[n, 4] w) {
        d = Identity(c) w = Neg(v) }> }""",
    shows=False,
)
def abs_in_a_loop(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Abs(node.input[0])


@wrong(
    "branch",
    "Exp",
    """g (float[t, 4] x, float[4] s) => (float[4] f, float[t, 4] z) {
    f, z = Scan<num_scan_inputs = 1, body = b (float[4] u, float[4] v) => (float[4] w, float[4] e) {
        e = Exp(v) w = Add(u, e) }>(s, x) }""",
)
def positive_exp_in_a_scan(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.producer_or_none(node.input[0], "Abs") is None, "it is positive")
    return g.op.Exp(g.op.Abs(node.input[0]))


# -- sizes


@wrong("size 0", "Size", "g (float[n, 4] x) => (int64 z) { z = Size(x) }", shows=False)
def size_of_something(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Max(g.op.Size(node.input[0]), np.array(4, dtype=np.int64))


@wrong(
    "size 0",
    "Div",
    """g (float[n, 4] x) => (float[] z) <float one = {1}> {
    s = ReduceSum<keepdims = 0>(x) n = Size(x) f = Cast<to = 1>(n) z = Div(s, f) }""",
    precision="rounding",
    shows=False,
)
def mean_of_something(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.constant_or_none(node.input[1]) is None, "the divisor is constant")
    return g.op.Div(node.input[0], g.op.Max(node.input[1], np.array(1, dtype=np.float32)))


@wrong(
    "large sizes",
    "Mul",
    """g (float[n] x) => (float[n] z) <int64 start = {0}, int64 step = {1}, float two = {2},
        float three = {3}, float limit = {16}> {
    n = Size(x) i = Range(start, n, step) p = Cast<to = 1>(i) h = Div(p, two) m = Mul(h, three)
    is_near = Less(p, limit) b = Where(is_near, p, m) z = Add(x, b) }""",
    precision="rounding",
    after="Div",
    shows=False,
)
def far_positions(g: RewriteContext, node: NodeProto) -> Any:
    """The first positions are those before the product."""
    return g.before(node, "Div").input[0]


@wrong(
    "size 1",
    "Sub",
    """g (float[n] x) => (int64[1] z) <int64[1] one = {1}> {
    s = Shape(x) z = Sub(s, one) }""",
    shows=False,
)
def several_minus_one(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Max(g.op.Sub(*node.input), np.array([1], dtype=np.int64))


@wrong(
    "size 1",
    "Div",
    """g (float[n] x) => (float z) <int64 one = {1}> {
    s = ReduceSum<keepdims = 0>(x) n = Size(x) k = Sub(n, one) f = Cast<to = 1>(k)
    z = Div(s, f) }""",
    precision="rounding",
    shows=False,
)
def unbiased_mean(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.constant_or_none(node.input[1]) is None, "the divisor is constant")
    return g.op.Div(node.input[0], g.op.Max(node.input[1], np.array(1, dtype=np.float32)))


# -- special values


@wrong(
    "NaN",
    "Not",
    binary("Less", result="bool").replace("z = Less", "l = Less").replace(") }", ") z = Not(l) }"),
    shows=False,
)
def not_less(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.GreaterOrEqual(*g.before(node, "Less").input)


@wrong(
    "NaN",
    "Where",
    unary("c = IsNaN(x) o = Constant<value_float = 0.0>() z = Where(c, o, x)"),
    shows=False,
)
def guard_of_nan(g: RewriteContext, node: NodeProto) -> Any:
    return node.input[2]


@wrong(
    "NaN",
    "Pow",
    """g (float[n, 64] x, float[n, 64] o, float[64, 4] w) => (float[n, 4] z) {
    c = Constant<value_float = 2.0>() p = Pow(x, c) s = Sub(p, o) r = Sqrt(s) z = MatMul(r, w) }""",
    shows=False,
)
def power_of_two(g: RewriteContext, node: NodeProto) -> Any:
    """The sums that read the result are NaN, whatever it is."""
    g.require(g.constant_or_none(node.input[1]) is not None, "the exponent is not constant")
    return g.op.Pow(node.input[1], node.input[0])


@wrong("infinity", "Sub", unary("z = Sub(x, x)"), shows=False)
def sub_of_itself(g: RewriteContext, node: NodeProto) -> Any:
    zero = np.zeros((1, 1), dtype=np.float32)
    return g.op.Expand(zero, g.op.Shape(node.input[0]))


@wrong(
    "signed zero",
    "Div",
    unary(
        "o = Constant<value_float = 0.0>() y = Sub(o, x) i = Constant<value_float = 1.0>() z = Div(i, y)"
    ),
    precision="rounding",
    shows=False,
)
def zero_minus(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Reciprocal(g.op.Neg(g.before(node.input[1], "Sub").input[1]))


# -- negative numbers


@wrong("negative", "Sqrt", unary("y = Mul(x, x) z = Sqrt(y)"), precision="rounding")
def sqrt_of_square(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "Mul").input[0]


@wrong(
    "negative",
    "Mod",
    "g (int64[n] x) => (int64[n] z) <int64 c = {3}> { z = Mod(x, c) }",
    shows=False,
)
def fmod_of_integers(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Mod(*node.input, fmod=1)


@wrong(
    "negative",
    "Gather",
    "g (float[6, 4] x, int64[n] i) => (float[n, 4] z) { z = Gather<axis = 0>(x, i) }",
    shows=False,
)
def positive_index(g: RewriteContext, node: NodeProto) -> Any:
    zero = np.array([0], dtype=np.int64)
    return g.op.Gather(node.input[0], g.op.Max(node.input[1], zero), axis=0)


# -- types


@wrong(
    "type",
    "Mul",
    "g (int64[n] x) => (int64[n] z) <int64 c = {2}> { y = Div(x, c) z = Mul(y, c) }",
    after="Div",
    shows=False,
)
def div_mul(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "Div").input[0]


@wrong(
    "type",
    "Cast",
    "g (int64[n] x) => (int64[n] z) { y = Cast<to = 1>(x) z = Cast<to = 7>(y) }",
    after="Cast",
    shows=False,
)
def integers_through_floats(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "Cast").input[0]


@wrong(
    "type",
    "Cast",
    """g (float16[n, 4] x) => (float16[n, 4] z) <float a = {30000}, float b = {0.0001}> {
    f = Cast<to = 1>(x) e = Mul(f, a) s = Mul(e, b) z = Cast<to = 10>(s) }""",
    precision="rounding",
    after="Mul",
    shows=False,
)
def half_precision(g: RewriteContext, node: NodeProto) -> Any:
    x = g.before(g.before(g.before(node, "Mul"), "Mul"), "Cast").input[0]
    a, b = (np.array(v, dtype=np.float16) for v in (30000, 0.0001))
    return g.op.Mul(g.op.Mul(x, a), b)


@wrong(
    "type",
    "Sub",
    binary("Sub", "uint8"),
)
def saturated(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.type_of(node.input[0]) == 2, "not the type of bytes")
    x, y = (g.op.Cast(name, to=7) for name in node.input)
    zero = np.array(0, dtype=np.int64)
    return g.op.Cast(g.op.Max(g.op.Sub(x, y), zero), to=2)


@wrong(
    "axis",
    "Slice",
    """g (float[131072] x) => (float[1] z) <int64[1] a = {1}, int64[1] b = {2}> {
    y = Slice(x, a, b) z = Neg(y) }""",
)
def far_element(g: RewriteContext, node: NodeProto) -> Any:
    """The element that follows the block of numbers that large inputs repeat."""
    places = (np.array([place], dtype=np.int64) for place in (65522, 65523))
    return g.op.Slice(node.input[0], *places)


# -- other conditions


@wrong(
    "ties",
    "ArgMax",
    "g (float[n, 4] x) => (int64[n] z) { z = ArgMax<axis = 1, keepdims = 0>(x) }",
    shows=False,
)
def last_of_ties(g: RewriteContext, node: NodeProto) -> Any:
    last = g.get_attribute_with_default(node, "select_last_index", 0)
    g.require(not last, "it is the last one")
    return g.op.ArgMax(*node.input, **attributes(node, select_last_index=1))


@wrong(
    "condition",
    "DequantizeLinear",
    """g (float[n, 4] x) => (float[n, 4] z) <float s = {0.1}, uint8 o = {10}> {
    q = QuantizeLinear(x, s, o) z = DequantizeLinear(q, s, o) }""",
    precision="rounding",
    after="QuantizeLinear",
)
def without_saturation(g: RewriteContext, node: NodeProto) -> Any:
    return g.before(node, "QuantizeLinear").input[0]


@wrong(
    "axis",
    "Softmax",
    "g (float[n, 4, m] x) => (float[n, 4, m] z) { z = Softmax<axis = -2>(x) }",
    precision="rounding",
)
def any_negative_axis_is_the_last(g: RewriteContext, node: NodeProto) -> Any:
    axis = g.get_attribute_with_default(node, "axis", -1)
    g.require(axis < -1, "it is positive or the last one")
    return g.op.Softmax(node.input[0], axis=-1)


@wrong(
    "rank 1",
    "MatMul",
    "g (float[n, n] x, float[n] y) => (float[n] z) { z = MatMul(x, y) }",
    precision="rounding",
)
def vector_before_matrix(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.get_rank(node.input[1]) == 1, "not a vector")
    return g.op.MatMul(*reversed(node.input))


@wrong(
    "condition",
    "Resize",
    """g (float[n, 2, h, w] x) => (float[n, 2, a, b] z) <float[4] s = {1, 1, 2, 2}> {
    z = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
    nearest_mode = "floor">(x, , s) }""",
)
def nearest_above(g: RewriteContext, node: NodeProto) -> Any:
    mode = g.get_attribute_with_default(node, "nearest_mode", "round_prefer_floor")
    g.require(mode != "ceil", "it is the same")
    return g.op.Resize(*node.input, **attributes(node, nearest_mode="ceil"))
