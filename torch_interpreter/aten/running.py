"""Running extrema and log-sum-exp, as one Scan."""

from __future__ import annotations

from collections.abc import Callable

import torch
from onnx import TensorProto, parser

from ..common.types import is_float, to_torch_type
from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten, aten_table
from ..writing.symbols import dim_of, int_vector, vector1d
from .operands import FLOAT, INT64, as_float, axis_of, cast, const
from .sort import const_index
from .view import MAX_INT

#: types the bodies have kernels for, with their names in the text
_BODY_TYPES: dict[int, str] = {
    FLOAT: "float",
    TensorProto.DOUBLE: "double",
    INT64: "int64",
    TensorProto.INT32: "int32",
}
#: keeps the last of equal values, the last nan too
_EXTREMUM = """
extremum ({type}[] best, int64[] at, {type}[] x, int64 i)
    => ({type}[] found, int64[] place, {type}[] row, int64[] rank) {{
    shape = Shape (x)
    {comparison}
    found = Where (before, best, x)
    everywhere = Expand (i, shape)
    place = Where (before, at, everywhere)
    row = Identity (found)
    rank = Identity (place)
}}
"""
_NUMBERS = "before = {op_type} (best, x)"
_FLOATS = """
    better = {op_type} (best, x)
    missing = IsNaN (best)
    either = Or (better, missing)
    given = IsNaN (x)
    number = Not (given)
    before = And (either, number)
"""
#: log(exp(a) + exp(b)), the difference of two equal infinities is nan
_LOG_SUM = """
log_sum ({type}[] best, {type}[] x) => ({type}[] found, {type}[] row) {{
    high = Max (best, x)
    low = Min (best, x)
    same = Equal (best, x)
    gap = Sub (low, high)
    number = Constant <value_float = 1.0> ()
    one = CastLike (number, x)
    zero = Sub (one, one)
    finite = Where (same, zero, gap)
    ratio = Exp (finite)
    total = Add (ratio, one)
    logarithm = Log (total)
    found = Add (high, logarithm)
    row = Identity (found)
}}
"""


def _worst(itype: int, largest: bool) -> float:
    """The value that every other value is at least as good as."""
    if is_float(itype):
        return -float("inf") if largest else float("inf")
    info = torch.iinfo(to_torch_type(itype))
    return info.min if largest else info.max


def _scan(g: GraphWriter, text: str, x: str, axis: int, worst: float, numbered: bool) -> list[str]:
    """Scans the rows of *x*, and their numbers, with a body.

    A first row of the worst values is added, then removed: the dimension may be empty. The rows
    are moved first, onnxruntime stops on empty ones if Scan does it.
    """
    perm = list(range(g.get_rank(x)))
    perm[0], perm[axis] = axis, 0
    pads = int_vector([1, *[0] * (2 * len(perm) - 1)])
    padded = g.op.Pad(g.op.Transpose(x, perm=perm), pads, const(worst, g.get_type(x)))
    states, rows = [g.op.Gather(padded, const(0, INT64), axis=0)], [padded]
    if numbered:
        size = g.op.Squeeze(vector1d(g, dim_of(g, x, axis)), int_vector([0]))
        states.append(g.op.Expand(const(0, INT64), g.op.Shape(states[0])))
        rows.append(g.op.Range(const(-1, INT64), size, const(1, INT64)))
    n, body = len(rows), parser.parse_graph(text)
    found = several(g, "Scan", 2 * n, *states, *rows, body=body, num_scan_inputs=n)
    limits = [int_vector([v]) for v in (1, MAX_INT, 0)]
    return [g.op.Transpose(g.op.Slice(v, *limits), perm=perm) for v in found[n:]]


def _running(op_type: str) -> Callable[..., list[str]]:
    def convert(g: GraphWriter, x: str, dim: int) -> list[str]:
        """The extrema so far and their positions."""
        itype = g.get_type(x)
        if g.get_rank(x) == 0:
            return [x, const_index(g)]
        if itype not in _BODY_TYPES:
            x = cast(g, x, FLOAT if is_float(itype) else INT64)
        inner = g.get_type(x)
        comparison = (_FLOATS if is_float(inner) else _NUMBERS).format(op_type=op_type)
        text = _EXTREMUM.format(type=_BODY_TYPES[inner], comparison=comparison)
        worst = _worst(inner, op_type == "Greater")
        values, index = _scan(g, text, x, axis_of(dim, g.get_rank(x)), worst, True)
        return [cast(g, values, itype), index]

    return convert


aten_table(_running, {"cummax": "Greater", "cummin": "Less"}, "aten.{}.default")


@aten("aten.logcumsumexp.default")
def logcumsumexp(g: GraphWriter, x: str, dim: int) -> str:
    """The logarithms of running sums of exponentials, with the highest one factored out."""
    if g.get_rank(x) == 0:
        return as_float(g, x)
    itype = g.get_type(x)
    inner = itype if itype in _BODY_TYPES else FLOAT
    text = _LOG_SUM.format(type=_BODY_TYPES[inner])
    axis = axis_of(dim, g.get_rank(x))
    return cast(g, _scan(g, text, cast(g, x, inner), axis, -float("inf"), False)[0], itype)
