"""The inverse of the error function, computed in 64 bits.

The polynomials are those of M. Giles ("Approximating the erfinv function", GPU Computing Gems 2,
2010), in ``w = -log((1 - x) (1 + x))``: three of them, for x from 0 to the last number below 1.
"""

from __future__ import annotations

import math

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from .operands import f64
from .special import horner, in_double

#: below 6.25, in w - 3.125, the constant first
_CENTRE = (
    1.6536545626831027356, 0.24015818242558961693, -0.0060336708714301490533,
    -0.00074070253416626697512, 0.0001867342080340571352, -1.3882523362786468719e-05,
    -1.3654692000834678645e-06, 4.2347877827932403518e-07, -2.9070369957882005086e-08,
    -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4154120542946279317e-11,
    -1.2975133253453532498e-11, 2.6335093153082322977e-12, -8.1519341976054721522e-14,
    -4.0545662729752068639e-14, 6.6376381343583238325e-15, 2.0972767875968561637e-17,
    -1.333171662854620906e-16, 1.115787767802518096e-17, 1.2858480715256400167e-18,
    -1.685059138182016589e-19, -3.6444120640178196996e-21,
)  # fmt: skip
#: below 16, in sqrt(w) - 3.25
_SIDE = (
    3.0838856104922207635, 1.0052589676941592334, 0.005370914553590063617,
    -0.0037512085075692412107, 0.0024914420961078508066, -0.0016882755560235047313,
    0.00095328937973738049703, -0.0003550375203628474796, 2.4031110387097893999e-05,
    6.8284851459573175448e-05, -4.7318229009055733981e-05, 1.2475304481671778723e-05,
    2.9234449089955446044e-06, -4.013867526981545969e-06, 1.5027403968909827627e-06,
    1.8239629214389227755e-08, -2.7517406297064545428e-07, 9.0756561938885390979e-08,
    2.2137376921775787049e-09,
)  # fmt: skip
#: above, in sqrt(w) - 5
_TAIL = (
    4.8499064014085844221, 1.0103004648645343977, -0.00013871931833623122026,
    -0.00021503011930044477347, 7.5995277030017761139e-05, -1.9681778105531670567e-05,
    4.5260625972231537039e-06, -9.9298272942317002539e-07, 2.2900482228026654717e-07,
    -6.7711997758452339498e-08, 2.9147953450901080826e-08, -1.4960026627149240478e-08,
    7.6157012080783393804e-09, -3.7894654401267369937e-09, 1.5076572693500548083e-09,
    -2.5556418169965252055e-10, -2.7109920616438573243e-11,
)  # fmt: skip


@aten("aten.erfinv.default", "aten.special_erfinv.default", "prims.erf_inv.default")
@in_double
def erfinv(g: GraphWriter, x: str) -> str:
    """The inverse of erf: infinite at -1 and 1, nan beyond."""
    one = f64(1)
    return erfinv_of(g, x, g.op.Mul(g.op.Sub(one, x), g.op.Add(one, x)))


def erfinv_of(g: GraphWriter, x: str, rest: str) -> str:
    """The inverse of erf at x, when 1 - x^2 is known better than x tells it.

    :param g: builder
    :param x: doubles
    :param rest: 1 - x^2
    """
    w = g.op.Neg(g.op.Log(rest))
    root = g.op.Sqrt(g.op.Max(w, f64(0)))
    side = horner(g, g.op.Sub(root, f64(3.25)), _SIDE)
    tail = horner(g, g.op.Sub(root, f64(5)), _TAIL)
    centre = horner(g, g.op.Sub(w, f64(3.125)), _CENTRE)
    found = g.op.Where(g.op.Less(w, f64(16)), side, tail)
    found = g.op.Where(g.op.Less(w, f64(6.25)), centre, found)
    at_end = g.op.Equal(g.op.Abs(x), f64(1))
    return g.op.Mul(x, g.op.Where(at_end, f64(math.inf), found))
