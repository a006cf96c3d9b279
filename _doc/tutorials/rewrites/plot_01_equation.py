"""
A rewrite as an equation
========================

Most rewrites are an equation with a condition. This tutorial writes one with ``@rule`` and runs it on a model.
"""

import onnx

import xoptim
from xoptim import rule


@rule("Where(x > 0, x, x * slope) -> LeakyRelu(x, alpha=slope)", min_opset=6)
def leaky(g, x):
    """Where(x > 0, x, x * s) -> LeakyRelu(x, alpha=s), for floats."""
    g.require(g.type_of(x) == onnx.TensorProto.FLOAT, "the type is not float")


model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 4] x) => (float[batch, 4] y) <float zero = {0}, float s = {0.1}> {
        positive = Greater (x, zero)
        small = Mul (s, x)
        y = Where (positive, x, small)
    }
""")
done = xoptim.optimize(model, patterns=[leaky], verify=True)
drawn = {"before": model, "after": done.model}

# %%
# Reading the equation
# ++++++++++++++++++++
#
# * ``x`` and ``slope`` stand for any result. ``slope`` becomes an attribute, so it has to be a constant.
# * ``x * slope`` also matches ``slope * x``.
# * The function adds conditions. When a condition fails, ``g.require`` refuses the match with a reason, which
#   ``explain`` prints.
#
# If an operator does not exist, the declaration of the rule raises an error:

try:
    rule("Lgo(Exp(x)) -> x")(lambda g: None)
except Exception as e:
    print(type(e).__name__, e)

# %%
# The next tutorial is :doc:`plot_02_function`, for conditions that ask questions about the graph.
