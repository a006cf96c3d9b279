"""The next number of a type, by an addition that is rounded.

The distance of Rump, Zimmermann, Boldo and Melquiond ("Computing predecessor and successor in
rounding to nearest", 2009), slightly more than half a unit in the last place, is enough for all
numbers but the smallest ones, which are a constant apart.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from .operands import cast, f64, same_type

DOUBLE = TensorProto.DOUBLE
#: the precision, the exponent of the smallest number, the highest number
_FLOATS: dict[int, tuple[int, int, float]] = {
    TensorProto.FLOAT: (24, -149, float(np.finfo(np.float32).max)),
    TensorProto.BFLOAT16: (8, -133, (2 - 2.0**-7) * 2.0**127),
}


@aten("aten.nextafter.default", "prims.nextafter.default")
def nextafter(g: GraphWriter, x: str, y: str) -> str:
    """The number after x in the direction of y, y if they are equal."""
    itype = g.get_type(x)
    if itype not in _FLOATS:
        raise ValueError("nextafter of doubles needs more than 64 bits")
    digits, lowest, highest = _FLOATS[itype]
    start, end = same_type(g, x, y, itype=DOUBLE)
    unit = 2.0**-digits
    size = g.op.Mul(g.op.Abs(start), f64(unit * (1 + 4 * unit)))
    step = g.op.Max(size, f64(2.0**lowest))
    up = g.op.Greater(end, start)
    moved = g.op.Where(up, g.op.Add(start, step), g.op.Sub(start, step))
    # from an infinity, the highest number
    moved = g.op.Where(g.op.IsInf(start), g.op.Mul(g.op.Sign(start), f64(highest)), moved)
    found = g.op.Where(g.op.Or(up, g.op.Less(end, start)), moved, end)
    missing = g.op.Or(g.op.IsNaN(start), g.op.IsNaN(end))
    return cast(g, g.op.Where(missing, f64(math.nan), found), itype)
