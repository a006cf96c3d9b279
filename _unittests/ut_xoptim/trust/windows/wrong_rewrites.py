"""Deliberately wrong rewrites, each with a small model it applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from xoptim import PatternOptimization, rewrite
from xoptim.authoring import RewriteContext

#: writes what replaces a node
Rewriting = Callable[[RewriteContext, NodeProto], Any]


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
    kind: str, root: str, graph: str, *words: str, name: str = ""
) -> Callable[[Rewriting], Rewriting]:
    """Decorator that adds a wrong rewrite to the table. The words are `rounding` if it may round,
    `hidden` if the results of the model do not show it."""

    def decorate(function: Rewriting) -> Rewriting:
        short = name or "".join(p.title() for p in function.__name__.split("_"))
        precision = "rounding" if "rounding" in words else "exact"
        cls = rewrite(root=root, precision=precision, name=short)(function)
        shows = "hidden" not in words and kind != "operands"
        WRONG.append(Wrong(short, kind, cls(), graph, shows))
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


def swapped(g: RewriteContext, node: NodeProto) -> Any:
    """The operands in the other order."""
    return g.like(node, *reversed(node.input))


def dropped(g: RewriteContext, node: NodeProto) -> Any:
    """The first operand."""
    return node.input[0]


def before(op_type: str) -> Rewriting:
    """What the node before reads, whatever this one does."""
    return lambda g, node: g.before(node, op_type).input[0]


def written(op_type: str, **options: Any) -> Rewriting:
    """An operator on the same operands, with other attributes."""
    return lambda g, node: getattr(g.op, op_type)(*node.input, **options)


BRANCHES = """g (int64 rate, float[n, 4] x, float[n, 4] y) => (float[n, 4] z) <int64 r = {{16000}}> {{
    c = Equal(rate, r)
    z = If(c) <then_branch = a () => (float[n, 4] p) {{ {then} }},
               else_branch = b () => (float[n, 4] q) {{ {otherwise} }}> }}"""

#: kind -> name -> root, graph, what is written, words of :func:`wrong`
ROWS: dict[str, dict[str, tuple[Any, ...]]] = {
    "operands": {
        "SwappedSub": ("Sub", binary("Sub"), swapped),
        "SwappedDiv": ("Div", binary("Div"), swapped),
        "SwappedPow": ("Pow", binary("Pow"), swapped),
        "SwappedLess": ("Less", binary("Less", result="bool"), swapped),
        "SwappedMatmul": (
            "MatMul",
            "g (float[n, n] x, float[n, n] y) => (float[n, n] z) { z = MatMul(x, y) }",
            swapped,
            "rounding",
        ),
        "SwappedConcat": (
            "Concat",
            "g (float[n, 4] x, float[n, 4] y) => (float[m, 4] z) { z = Concat<axis = 0>(x, y) }",
            swapped,
        ),
        "SwappedWhere": (
            "Where",
            "g (bool[n, 4] c, float[n, 4] x, float[n, 4] y) => (float[n, 4] z) { z = Where(c, x, y) }",
            lambda g, node: g.op.Where(node.input[0], node.input[2], node.input[1]),
        ),
    },
    "axis": {
        "SoftmaxOverRows": (
            "Softmax",
            unary("z = Softmax<axis = 1>(x)"),
            written("Softmax", axis=0),
            "rounding",
        ),
        "SumOfColumns": (
            "ReduceSum",
            "g (float[n, n] x) => (float[n] z) <int64[1] axes = {0}> "
            "{ z = ReduceSum<keepdims = 0>(x, axes) }",
            lambda g, node: g.op.ReduceSum(node.input[0], axes=[1], keepdims=0),
            "rounding",
        ),
        "GatherColumns": (
            "Gather",
            "g (float[n, n] x) => (float[n] z) <int64 i = {0}> { z = Gather<axis = 0>(x, i) }",
            written("Gather", axis=1),
        ),
        # the axis does not exist
        "GatherOfNoAxis": (
            "Gather",
            """g (float[n, m] x) => (int64 z) <int64 i = {0}> {
    s = Shape(x) z = Gather<axis = 0>(s, i) }""",
            written("Gather", axis=1),
            "hidden",
        ),
        "CumulatedRows": (
            "CumSum",
            "g (float[n, 4] x) => (float[n, 4] z) <int64 axis = {1}> { z = CumSum(x, axis) }",
            lambda g, node: g.op.CumSum(node.input[0], np.array(0, dtype=np.int64)),
            "rounding",
        ),
        "ArgmaxOfColumns": (
            "ArgMax",
            "g (float[n, n] x) => (int64[n] z) { z = ArgMax<axis = 0, keepdims = 0>(x) }",
            written("ArgMax", axis=1, keepdims=0),
        ),
        # the element that follows the block of numbers that large inputs repeat
        "FarElement": (
            "Slice",
            """g (float[131072] x) => (float[1] z) <int64[1] a = {1}, int64[1] b = {2}> {
    y = Slice(x, a, b) z = Neg(y) }""",
            lambda g, node: g.op.Slice(
                node.input[0], *(np.array([place], dtype=np.int64) for place in (65522, 65523))
            ),
        ),
    },
    "condition": {
        "MulByOne": ("Mul", unary("c = Constant<value_float = 1.5>() z = Mul(x, c)"), dropped),
        "AddZero": ("Add", unary("c = Constant<value_float = 1e-3>() z = Add(x, c)"), dropped),
        "TransposeTranspose": (
            "Transpose",
            """g (float[n, n, n] x) => (float[n, n, n] z) {
    y = Transpose<perm = [2, 0, 1]>(x) z = Transpose<perm = [2, 0, 1]>(y) }""",
            before("Transpose"),
        ),
        "ReluOfPositive": ("Relu", unary("y = Neg(x) z = Relu(y)"), dropped),
        "CastCast": ("Cast", unary("y = Cast<to = 6>(x) z = Cast<to = 1>(y)"), before("Cast")),
        "GemmWithoutAlpha": (
            "Gemm",
            "g (float[n, n] x, float[n, n] y) => (float[n, n] z) { z = Gemm<alpha = 0.5>(x, y) }",
            written("Gemm"),
            "rounding",
        ),
        "PadOfZeros": (
            "Pad",
            """g (float[n, 4] x) => (float[n, 6] z) <int64[4] pads = {0, 1, 0, 1}> {
    z = Pad<mode = "edge">(x, pads) }""",
            written("Pad"),
        ),
        "UpperTrilu": ("Trilu", unary("z = Trilu<upper = 0>(x)"), written("Trilu")),
        "ConvWithoutDilations": (
            "Conv",
            """g (float[n, 2, h, w] x, float[2, 2, 3, 3] k) => (float[n, 2, h, w] z) {
    z = Conv<pads = [2, 2, 2, 2], dilations = [2, 2]>(x, k) }""",
            written("Conv", pads=[1, 1, 1, 1]),
            "rounding",
        ),
        "SoftmaxWithoutMask": (
            "Softmax",
            """g (float[b, 4, n, m] s, float[b, 1, n, m] mask) => (float[b, 4, n, m] z) {
    t = Add(s, mask) z = Softmax<axis = 3>(t) }""",
            lambda g, node: g.op.Softmax(g.before(node, "Add").input[0], axis=3),
            "rounding",
        ),
        "OrAsXor": ("Or", binary("Or", "bool"), written("Xor")),
        "WithoutSaturation": (
            "DequantizeLinear",
            """g (float[n, 4] x) => (float[n, 4] z) <float s = {0.1}, uint8 o = {10}> {
    q = QuantizeLinear(x, s, o) z = DequantizeLinear(q, s, o) }""",
            before("QuantizeLinear"),
            "rounding",
        ),
    },
    "branch": {
        "SwappedInABranch": (
            "Sub",
            BRANCHES.format(then="p = Sub(x, y)", otherwise="q = Add(x, y)"),
            swapped,
            "hidden",
        ),
        "ReluInABranch": (
            "LeakyRelu",
            BRANCHES.format(then="p = LeakyRelu(x)", otherwise="q = Identity(x)"),
            written("Relu"),
            "hidden",
        ),
        "AbsInALoop": (
            "Neg",
            """g (int64 steps, float[n, 4] x) => (float[n, 4] z) <int64 most = {-1}> {
    k = Min(steps, most)
    z = Loop(k, , x) <body = b (int64 i, bool c, float[n, 4] v) => (bool d, float[n, 4] w) {
        d = Identity(c) w = Neg(v) }> }""",
            written("Abs"),
            "hidden",
        ),
    },
    "size 0": {
        "SizeOfSomething": (
            "Size",
            "g (float[n, 4] x) => (int64 z) { z = Size(x) }",
            lambda g, node: g.op.Max(g.op.Size(node.input[0]), np.array(4, dtype=np.int64)),
            "hidden",
        ),
    },
    "large sizes": {
        # the first positions are those before the product
        "FarPositions": (
            "Mul",
            """g (float[n] x) => (float[n] z) <int64 start = {0}, int64 step = {1}, float two = {2},
        float three = {3}, float limit = {16}> {
    n = Size(x) i = Range(start, n, step) p = Cast<to = 1>(i) h = Div(p, two) m = Mul(h, three)
    is_near = Less(p, limit) b = Where(is_near, p, m) z = Add(x, b) }""",
            before("Div"),
            "rounding",
            "hidden",
        ),
    },
    "size 1": {
        "SeveralMinusOne": (
            "Sub",
            """g (float[n] x) => (int64[1] z) <int64[1] one = {1}> {
    s = Shape(x) z = Sub(s, one) }""",
            lambda g, node: g.op.Max(g.op.Sub(*node.input), np.array([1], dtype=np.int64)),
            "hidden",
        ),
    },
    "NaN": {
        "NotLess": (
            "Not",
            binary("Less", result="bool")
            .replace("z = Less", "l = Less")
            .replace(") }", ") z = Not(l) }"),
            lambda g, node: g.op.GreaterOrEqual(*g.before(node, "Less").input),
            "hidden",
        ),
        "GuardOfNan": (
            "Where",
            unary("c = IsNaN(x) o = Constant<value_float = 0.0>() z = Where(c, o, x)"),
            lambda g, node: node.input[2],
            "hidden",
        ),
    },
    "infinity": {
        "SubOfItself": (
            "Sub",
            unary("z = Sub(x, x)"),
            lambda g, node: g.op.Expand(
                np.zeros((1, 1), dtype=np.float32), g.op.Shape(node.input[0])
            ),
            "hidden",
        ),
    },
    "signed zero": {
        "ZeroMinus": (
            "Div",
            unary(
                "o = Constant<value_float = 0.0>() y = Sub(o, x) i = Constant<value_float = 1.0>() z = Div(i, y)"
            ),
            lambda g, node: g.op.Reciprocal(g.op.Neg(g.before(node.input[1], "Sub").input[1])),
            "rounding",
            "hidden",
        ),
    },
    "negative": {
        "SqrtOfSquare": ("Sqrt", unary("y = Mul(x, x) z = Sqrt(y)"), before("Mul"), "rounding"),
        "FmodOfIntegers": (
            "Mod",
            "g (int64[n] x) => (int64[n] z) <int64 c = {3}> { z = Mod(x, c) }",
            written("Mod", fmod=1),
            "hidden",
        ),
        "PositiveIndex": (
            "Gather",
            "g (float[6, 4] x, int64[n] i) => (float[n, 4] z) { z = Gather<axis = 0>(x, i) }",
            lambda g, node: g.op.Gather(
                node.input[0], g.op.Max(node.input[1], np.array([0], dtype=np.int64)), axis=0
            ),
            "hidden",
        ),
    },
    "type": {
        "DivMul": (
            "Mul",
            "g (int64[n] x) => (int64[n] z) <int64 c = {2}> { y = Div(x, c) z = Mul(y, c) }",
            before("Div"),
            "hidden",
        ),
        "IntegersThroughFloats": (
            "Cast",
            "g (int64[n] x) => (int64[n] z) { y = Cast<to = 1>(x) z = Cast<to = 7>(y) }",
            before("Cast"),
            "hidden",
        ),
    },
}
for _kind, _rows in ROWS.items():
    for _name, (_root, _graph, _function, *_words) in _rows.items():
        wrong(_kind, _root, _graph, *_words, name=_name)(_function)


@wrong(
    "operands",
    "Split",
    """g (float[n, 4] x) => (float[n, 2] y, float[n, 2] z) {
    a, b = Split<axis = 1, num_outputs = 2>(x) y = Neg(a) z = Exp(b) }""",
)
def swapped_split(g: RewriteContext, node: NodeProto) -> Any:
    new = g.op.Split(node.input[0], axis=1, num_outputs=2, outputs=2)
    return {node.output[0]: new[1], node.output[1]: new[0]}


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
    "condition",
    "TopK",
    """g (float[n, 8] x) => (float[n, 2] z, int64[n, 2] i) <int64[1] k = {2}> {
    z, i = TopK<largest = 0>(x, k) }""",
)
def largest_top_k(g: RewriteContext, node: NodeProto) -> Any:
    new = g.op.TopK(*node.input, outputs=2)
    return {node.output[0]: new[0], node.output[1]: new[1]}


@wrong(
    "condition",
    "LayerNormalization",
    """g (float[n, 4] x, float[4] s) => (float[n, 4] z) {
    z = LayerNormalization<epsilon = 1e-3>(x, s) }""",
    "rounding",
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
    "rounding",
)
def gelu_with_erf(g: RewriteContext, node: NodeProto) -> Any:
    kind = g.get_attribute_with_default(node, "approximate", "none")
    g.require(kind == "tanh", "it is computed with erf")
    return g.op.Gelu(node.input[0])


@wrong(
    "condition",
    "Mul",
    """g (float[n, 4] x, float[n, 4] y, float[n, 4] w) => (float[n, 4] z) {
    s = Add(x, y) z = Mul(s, w) }""",
    "rounding",
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


@wrong(
    "size 1",
    "Div",
    """g (float[n] x) => (float z) <int64 one = {1}> {
    s = ReduceSum<keepdims = 0>(x) n = Size(x) k = Sub(n, one) f = Cast<to = 1>(k)
    z = Div(s, f) }""",
    "rounding",
    "hidden",
    name="UnbiasedMean",
)
@wrong(
    "size 0",
    "Div",
    """g (float[n, 4] x) => (float[] z) <float one = {1}> {
    s = ReduceSum<keepdims = 0>(x) n = Size(x) f = Cast<to = 1>(n) z = Div(s, f) }""",
    "rounding",
    "hidden",
)
def mean_of_something(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.constant_or_none(node.input[1]) is None, "the divisor is constant")
    return g.op.Div(node.input[0], g.op.Max(node.input[1], np.array(1, dtype=np.float32)))


@wrong(
    "NaN",
    "Pow",
    """g (float[n, 64] x, float[n, 64] o, float[64, 4] w) => (float[n, 4] z) {
    c = Constant<value_float = 2.0>() p = Pow(x, c) s = Sub(p, o) r = Sqrt(s) z = MatMul(r, w) }""",
    "hidden",
)
def power_of_two(g: RewriteContext, node: NodeProto) -> Any:
    """The sums that read the result are NaN, whatever it is."""
    g.require(g.constant_or_none(node.input[1]) is not None, "the exponent is not constant")
    return g.op.Pow(node.input[1], node.input[0])


@wrong(
    "type",
    "Cast",
    """g (float16[n, 4] x) => (float16[n, 4] z) <float a = {30000}, float b = {0.0001}> {
    f = Cast<to = 1>(x) e = Mul(f, a) s = Mul(e, b) z = Cast<to = 10>(s) }""",
    "rounding",
    "hidden",
)
def half_precision(g: RewriteContext, node: NodeProto) -> Any:
    x = g.before(g.before(g.before(node, "Mul"), "Mul"), "Cast").input[0]
    a, b = (np.array(v, dtype=np.float16) for v in (30000, 0.0001))
    return g.op.Mul(g.op.Mul(x, a), b)


@wrong("type", "Sub", binary("Sub", "uint8"))
def saturated(g: RewriteContext, node: NodeProto) -> Any:
    g.require(g.type_of(node.input[0]) == 2, "not the type of bytes")
    x, y = (g.op.Cast(name, to=7) for name in node.input)
    zero = np.array(0, dtype=np.int64)
    return g.op.Cast(g.op.Max(g.op.Sub(x, y), zero), to=2)


@wrong(
    "ties",
    "ArgMax",
    "g (float[n, 4] x) => (int64[n] z) { z = ArgMax<axis = 1, keepdims = 0>(x) }",
    "hidden",
)
def last_of_ties(g: RewriteContext, node: NodeProto) -> Any:
    last = g.get_attribute_with_default(node, "select_last_index", 0)
    g.require(not last, "it is the last one")
    return g.op.ArgMax(*node.input, **attributes(node, select_last_index=1))


@wrong(
    "axis",
    "Softmax",
    "g (float[n, 4, m] x) => (float[n, 4, m] z) { z = Softmax<axis = -2>(x) }",
    "rounding",
)
def any_negative_axis_is_the_last(g: RewriteContext, node: NodeProto) -> Any:
    axis = g.get_attribute_with_default(node, "axis", -1)
    g.require(axis < -1, "it is positive or the last one")
    return g.op.Softmax(node.input[0], axis=-1)


@wrong(
    "rank 1",
    "MatMul",
    "g (float[n, n] x, float[n] y) => (float[n] z) { z = MatMul(x, y) }",
    "rounding",
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
