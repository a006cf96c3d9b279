"""Recognizes Gelu written with Tanh or with Erf."""

from __future__ import annotations

from ...analysis.kernels import require_cpu_kernel
from ...authoring import RewriteContext
from ...declarative import rule

#: factors in any order; x ** 3 is Pow(x, 3), x * x * x or Pow(x, 2) * x; the cubic term may be
#: x * (1 + 0.044715 * x ** 2)
GELU_TANH = """product(0.5, x, 1 + Tanh(
    product(sqrt(2 / pi), x + product(0.044715, x ** 3))
    | product(sqrt(2 / pi), x, 1 + product(0.044715, x ** 2))))"""
GELU_ERF = "e = Erf(product(1 / sqrt(2), x)); product(0.5, x, 1 + e)"
#: the same, with 0.5 or x inside the sum
GELU_ERF_SUMS = """e = Erf(product(1 / sqrt(2), x));
    product(x, 0.5 + product(0.5, e)) | product(0.5, x + x * e)"""


@rule(
    "default",
    "specialize",
    f"{GELU_TANH} -> Gelu(x, approximate='tanh')",
    f"{GELU_ERF} -> Gelu(x)",
    f"{GELU_ERF_SUMS} -> Gelu(x)",
    root="e",
    min_opset=20,
    priority="first",
    precision="rounding",
    tolerance=5e-4,
)
def gelu(g: RewriteContext, x: str) -> None:
    """0.5 * x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) -> Gelu(x, approximate=tanh).

    1. x^3 is Pow(x, 3), x * x * x or Pow(x, 2) * x;
    2. the cubic term may be x * (1 + 0.044715 * x^2);
    3. 0.5 * x * (1 + Erf(x / sqrt(2))) is Gelu(x), x * (0.5 + 0.5 * Erf(...)) and
       0.5 * (x + x * Erf(...)) as well;
    4. constants may have been rounded to float16, factors come in any order.

    On CPU, runtimes compute double with more nodes than these.
    """
    require_cpu_kernel(g, "Gelu", g.type_of(x))
