"""Functions of the normal distribution far from its centre, computed in 64 bits.

The polynomials are interpolations at Chebyshev's points, computed with 40 digits: the relative
error is about 1e-14.
"""

from __future__ import annotations

import math

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from .inverse_error import erfinv_of
from .operands import f64
from .special import horner, in_double

#: (1 + 2x) exp(x^2) erfc(x) in (x - 2.5) / (x + 2.5)
_ERFCX = (
    1.2648381843668615, -0.12235676308240419, -0.09902453957360054, 0.15762991902320475,
    -0.10296705603863399, 0.03276089326912973, 0.0009318928184352962, -0.004382078347539035,
    0.0004918658041021489, 0.0006321243999471835, -8.847920687669829e-05,
    -0.00011352263330159166, 6.266010784972976e-06, 2.2700321802206237e-05,
    2.6086713496937893e-06, -4.218714353172795e-06, -1.5844422539027936e-06,
    5.270042406441144e-07, 5.323857055177547e-07, 3.4821591847815385e-08,
    -1.250612981958526e-07, -4.304925430265938e-08, 1.928916211860086e-08,
    1.1903099290545922e-08, -1.4759816086462547e-09, -1.3684070995217539e-09,
)  # fmt: skip
#: -y ndtri(p) with y = 1 / sqrt(-2 log p) between 1/40 and 1/7, scaled from -1 to 1
_TAIL = (
    0.9759037621587242, -0.029047664457898015, -0.006899145896725163, 0.0007270224086307656,
    -0.00014240967787339736, 4.061373956699706e-05, -1.427832666346846e-05,
    5.711547234310004e-06, -2.4985200063500468e-06, 1.1668695619392605e-06,
    -5.733133746779076e-07, 2.929250462176915e-07, -1.5073620294637922e-07,
    7.952894899204051e-08, -5.581412133490614e-08, 3.623966985662058e-08, 8.63219870404735e-09,
    -1.4067881106741516e-08, -4.2328581432726564e-08, 3.670191639130793e-08,
    3.9301324544558984e-08, -3.3881937180681685e-08, -3.0326379495066294e-08,
    2.4337765285893e-08, 1.2695642499274748e-08, -9.784968859091496e-09,
    -2.7697553143636442e-09, 2.0161338359152062e-09,
)  # fmt: skip
_TAIL_ENDS = 1 / 40, 1 / 7
_TAIL_BELOW = math.exp(-49 / 2)


@aten("aten.special_erfcx.default", "prims.erfcx.default")
@in_double
def erfcx(g: GraphWriter, x: str) -> str:
    """exp(x^2) erfc(x), 2 exp(x^2) less the one of -x below 0."""
    found = _erfcx_above(g, g.op.Abs(x))
    mirror = g.op.Sub(g.op.Mul(f64(2), g.op.Exp(g.op.Mul(x, x))), found)
    found = g.op.Where(g.op.Less(x, f64(0)), mirror, found)
    return g.op.Where(g.op.IsNaN(x), x, found)


def _erfcx_above(g: GraphWriter, x: str) -> str:
    """erfcx of numbers above 0."""
    a = g.op.Min(x, f64(1e300))
    u = g.op.Div(g.op.Sub(a, f64(2.5)), g.op.Add(a, f64(2.5)))
    scale = g.op.Add(f64(1), g.op.Mul(a, f64(2)))
    return g.op.Div(horner(g, u, _ERFCX), scale)


@aten("aten.special_log_ndtr.default")
@in_double
def log_ndtr(g: GraphWriter, x: str) -> str:
    """The logarithm of the probability that a normal variable is below x.

    With t = |x| / sqrt(2) and q = exp(-t^2) erfcx(t) / 2, it is log q below 0, log(1 - q) above.
    """
    one = f64(1)
    t = g.op.Mul(g.op.Abs(x), f64(math.sqrt(0.5)))
    square, half = g.op.Mul(t, t), g.op.Mul(_erfcx_above(g, t), f64(0.5))
    below = g.op.Sub(g.op.Log(half), square)
    q = g.op.Mul(g.op.Exp(g.op.Neg(square)), half)
    rest = g.op.Sub(one, q)
    # the error of 1 - q is in both the logarithm and the difference
    none = g.op.Equal(rest, one)
    difference = g.op.Where(none, one, g.op.Sub(one, rest))
    above = g.op.Mul(g.op.Log(rest), g.op.Div(q, difference))
    above = g.op.Where(none, g.op.Neg(q), above)
    found = g.op.Where(g.op.Less(x, f64(0)), below, above)
    return g.op.Where(g.op.IsNaN(x), x, found)


@aten("aten.special_ndtri.default", "prims.ndtri.default")
@in_double
def ndtri(g: GraphWriter, p: str) -> str:
    """The number below which a normal variable is with a probability: nan out of [0, 1]."""
    one = f64(1)
    centre = erfinv_of(
        g,
        g.op.Sub(g.op.Mul(f64(2), p), one),
        g.op.Mul(f64(4), g.op.Mul(p, g.op.Sub(one, p))),
    )
    centre = g.op.Mul(f64(math.sqrt(2)), centre)
    small = g.op.Max(g.op.Min(p, f64(_TAIL_BELOW)), f64(5e-324))
    y = g.op.Reciprocal(g.op.Sqrt(g.op.Mul(f64(-2), g.op.Log(small))))
    low, high = _TAIL_ENDS
    u = g.op.Sub(g.op.Mul(g.op.Sub(y, f64(low)), f64(2 / (high - low))), one)
    tail = g.op.Neg(g.op.Div(horner(g, u, _TAIL), y))
    found = g.op.Where(g.op.Less(p, f64(_TAIL_BELOW)), tail, centre)
    found = g.op.Where(g.op.Equal(p, f64(0)), f64(-math.inf), found)
    return g.op.Where(g.op.Less(p, f64(0)), f64(math.nan), found)
