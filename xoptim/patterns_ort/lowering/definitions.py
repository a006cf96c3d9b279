"""Definitions of operators by others, where ONNX has none or one that onnxruntime does not load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import onnx
from onnx import FunctionProto, NodeProto, TensorProto

from xbuilder.nodes.attributes import find_attribute
from xbuilder.nodes.schema_functions import bound_function, schema_function
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_schemas import schema_of
from xbuilder.operators.op_traits import FLOATS

#: number of terms of a series
_TERMS = 120


def _series() -> Iterator[float]:
    """The coefficients 2 ** n / (1 * 3 * ... * (2 * n + 1))."""
    value = 1.0
    for n in range(_TERMS):
        yield value
        value *= 2 / (2 * n + 3)


def _doubles(values: Iterable[float]) -> str:
    """A tensor in the text of ONNX."""
    texts = [repr(float(v)) for v in values]
    return f"double[{len(texts)}] {{{', '.join(texts)}}}"


#: log(1 + t) with the digits of t, t >= 0
_LOG1P = """
    one = Constant<value = double {1.0}>() huge = Constant<value = double {1e16}>()
    w = Add(one, t) log = Log(w) minus = Sub(w, one) ratio = Div(t, minus)
    product = Mul(log, ratio) is_one = Equal(w, one) small = Where(is_one, t, product)
    is_huge = Greater(w, huge) l = Where(is_huge, log, small)
"""
#: for x > 1e9, acosh(x) and asinh(x) are log(2 * x)
_LARGE = """
    limit = Constant<value = double {1e9}>() log2 = Constant<value = double {0.6931471805599453}>()
    is_large = Greater(a, limit) la = Log(a) large = Add(la, log2) r = Where(is_large, large, l)
"""
#: axes of the spatial dimensions
_SPATIAL = """
    i0 = Constant<value_int = 1>() i1 = Constant<value_int = 2>()
    shape = Shape(x) rank = Size(shape) axes = Range(i1, rank, i0)
"""
#: operator -> its definition in double: the results of float have 24 bits, these have about 50.
#: The float result of Atan is corrected once, the other inverse functions are made of it or of Log.
#: Erf is a series without cancellation, its 120 terms are enough for 1e-14 below 6.
_IN_DOUBLE = {
    "Acos": """(x) => (y) {
        one = Constant<value = double {1.0}>() two = Constant<value = double {2.0}>()
        p = Add(one, x) m = Sub(one, x) q = Div(m, p) s = Sqrt(q) h = Atan(s) y = Mul(two, h) }""",
    "Acosh": f"""(x) => (y) {{
        k = Constant<value = double {{1.0}}>() two = Constant<value = double {{2.0}}>()
        a = Identity(x) d = Sub(x, k) d2 = Add(d, two) s = Sqrt(d) s2 = Sqrt(d2) p = Mul(s, s2)
        t = Add(d, p) {_LOG1P} {_LARGE} y = Identity(r) }}""",
    "Asin": """(x) => (y) {
        one = Constant<value = double {1.0}>()
        p = Add(one, x) m = Sub(one, x) q = Mul(m, p) s = Sqrt(q) t = Div(x, s) y = Atan(t) }""",
    "Asinh": f"""(x) => (y) {{
        k = Constant<value = double {{1.0}}>()
        a = Abs(x) a2 = Mul(a, a) b = Add(k, a2) s = Sqrt(b) u = Add(k, s) v = Div(a, u)
        c = Mul(a, v) t = Add(a, c) {_LOG1P} {_LARGE} sign = Sign(x) y = Mul(sign, r) }}""",
    "Atan": """(x) => (y) {
        low = Constant<value = double {-1e300}>() high = Constant<value = double {1e300}>()
        c = Clip(x, low, high) f = Cast<to = 1>(x) af = Atan(f) a = Cast<to = 11>(af)
        s = Sin(a) k = Cos(a) ck = Mul(c, k) cs = Mul(c, s) n = Sub(s, ck) d = Add(k, cs)
        e = Div(n, d) y = Sub(a, e) }""",
    "Atanh": f"""(x) => (y) {{
        k = Constant<value = double {{1.0}}>() two = Constant<value = double {{2.0}}>()
        half = Constant<value = double {{0.5}}>()
        a = Abs(x) m = Sub(k, a) a2 = Mul(two, a) t = Div(a2, m) {_LOG1P}
        r = Mul(l, half) sign = Sign(x) y = Mul(sign, r) }}""",
    "Cosh": """(x) => (y) {
        half = Constant<value = double {0.5}>()
        a = Abs(x) h = Mul(a, half) e = Exp(h) f = Mul(half, e) p = Mul(f, e)
        q = Div(half, e) r = Div(q, e) y = Add(p, r) }""",
    "Erf": f"""(x) => (y) {{
        six = Constant<value = double {{6.0}}>()
        slope = Constant<value = double {{{2 / math.sqrt(math.pi)!r}}}>()
        powers = Constant<value = {_doubles(range(_TERMS))}>() last = Constant<value_ints = [-1]>()
        terms = Constant<value = {_doubles(_series())}>()
        a = Abs(x) c = Min(a, six) u = Mul(c, c) v = Unsqueeze(u, last) p = Pow(v, powers)
        sum = MatMul(p, terms) n = Neg(u) e = Exp(n) f = Mul(e, c) g = Mul(f, sum)
        h = Mul(g, slope) is_far = GreaterOrEqual(a, six) one = Constant<value = double {{1.0}}>()
        r = Where(is_far, one, h) sign = Sign(x) y = Mul(sign, r) }}""",
    "Gelu": f"""(x) => (y) {{
        half = Constant<value = double {{0.5}}>()
        root = Constant<value = double {{{math.sqrt(0.5)!r}}}>()
        one = Constant<value = double {{1.0}}>()
        s = Mul(x, root) e = Erf(s) p = Add(e, one) h = Mul(x, half) y = Mul(h, p) }}""",
    "GlobalAveragePool": f"(x) => (y) {{ {_SPATIAL} y = ReduceMean<keepdims = 1>(x, axes) }}",
    "GlobalMaxPool": f"(x) => (y) {{ {_SPATIAL} y = ReduceMax<keepdims = 1>(x, axes) }}",
    "Hardmax": """(x) => (y) {
        i = ArgMax<axis: int = @axis, keepdims = 0>(x) shape = Shape(x)
        axis = Constant<value_int: int = @axis>() depth = Gather(shape, axis)
        values = Constant<value_floats = [0.0, 1.0]>()
        ones = OneHot<axis: int = @axis>(i, depth, values) y = Cast<to = 11>(ones) }""",
    "InstanceNormalization": f"""(x, scale, bias) => (y) {{ {_SPATIAL}
        mean = ReduceMean<keepdims = 1>(x, axes) d = Sub(x, mean) d2 = Mul(d, d)
        v = ReduceMean<keepdims = 1>(d2, axes) ef = Constant<value_float: float = @epsilon>()
        e = Cast<to = 11>(ef) ve = Add(v, e) s = Sqrt(ve) n = Div(d, s)
        last = Sub(rank, i0) others = Range(i0, last, i0)
        us = Unsqueeze(scale, others) ub = Unsqueeze(bias, others)
        m = Mul(n, us) y = Add(m, ub) }}""",
    "Mean": """(...) => (y) {
        s = Sum(...) n = Constant<value = double {COUNT.0}>() y = Div(s, n) }""",
    "Sinh": "(x) => (y) { t = Tanh(x) c = Cosh(x) y = Mul(t, c) }",
    "Tan": "(x) => (y) { s = Sin(x) c = Cos(x) y = Div(s, c) }",
}
#: operator -> the types of the inputs of the one it is made of, its definition for other types
_IN_ANY_TYPE = {
    "NonZero": ((TensorProto.BOOL,), "(x) => (y) { b = Cast<to = KIND>(x) y = NonZero(b) }"),
    "OneHot": (
        (TensorProto.INT64,) * 3,
        """(i, depth, values) => (y) {
        j = Cast<to = KIND>(i) d = Cast<to = 7>(depth) bits = Constant<value_ints = [0, 1]>()
        ones = OneHot<axis: int = @axis>(j, d, bits) y = Gather(values, ones) }""",
    ),
}
#: operators that have a definition here
DEFINED = frozenset({*_IN_DOUBLE, *_IN_ANY_TYPE})
#: first opset of the operators in a text: a reduction takes its axes as an input, or the usual one
_SINCE = dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization"), 18)
_USUAL = 13


def definitions(node: NodeProto, opset: int, types: Sequence[int]) -> list[FunctionProto]:
    """The functions that define an operator for the types of a node: ours, then that of ONNX, which
    has constants in float.

    :param node: the node
    :param opset: version of the main domain
    :param types: element type of each input, 0 for a missing one
    """
    function = schema_function(node, opset, types)
    known = [] if function is None else [function]
    since = _SINCE.get(node.op_type, _USUAL)
    if main_domain(node.domain) or opset < since or not types or _is_left(node, types):
        return known
    text = _IN_DOUBLE.get(node.op_type) if TensorProto.DOUBLE in types else None
    inner, other = _IN_ANY_TYPE.get(node.op_type, ((), ""))
    if node.op_type == "OneHot" and types[0] == TensorProto.FLOAT:  # it may have a fraction
        inner = (TensorProto.FLOAT, *inner[1:])
    if other and inner != tuple(types):  # it would be made of itself
        text = other.replace("KIND", str(inner[0]))
    schema = schema_of(node.op_type, "", opset)
    if text is None or schema is None:
        return known
    return [bound_function(_parsed(node.op_type, text, len(types)), node, schema), *known]


def _is_left(node: NodeProto, types: Sequence[int]) -> bool:
    """Whether Gelu is the one that has no Erf, or the operands of OneHot may have fractions."""
    if node.op_type == "OneHot":
        return types[1] in FLOATS or types[0] in FLOATS - {TensorProto.FLOAT}
    approximate = find_attribute(node, "approximate")
    return approximate is not None and approximate.s != b"none"


@cache
def _parsed(op_type: str, text: str, count: int) -> FunctionProto:
    names = ", ".join(f"x{i}" for i in range(count))
    written = text.replace("...", names).replace("COUNT", str(count))
    head = f'<domain: "defined", opset_import: ["" : {_USUAL}]> {op_type} '
    return onnx.parser.parse_function(head + written)
