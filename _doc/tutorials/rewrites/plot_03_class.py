"""
A rewrite as a class
====================

A class gives parameters to a rewrite. This one removes a multiplication by a number close to 1. The parameter says
how close it has to be.
"""

import onnx

import xoptim
from xoptim import Rewrite


class DropSmallScale(Rewrite):
    """x * c -> x when c is within *epsilon* of 1."""

    roots = ("Mul",)

    def __init__(self, epsilon=0.0, verbose=0):
        super().__init__(verbose)
        self.epsilon = epsilon

    def rewrite(self, g, node):
        x, c = node.input
        value = g.constant_of(c, "the factor is not constant")
        g.require(value.ndim == 0, "the factor is not a scalar")
        g.require(abs(value - 1) <= self.epsilon, "the factor is not close enough to 1")
        return x


model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x) => (float[n] y) <float c = {1.0001}> {
        a = Mul (x, c)
        y = Relu (a)
    }
""")
for epsilon in (0.0, 0.001):
    done = xoptim.optimize(model, patterns=[DropSmallScale(epsilon)])
    print(epsilon, [node.op_type for node in done.model.graph.node])

# %%
# With the second value, the rewrite changes the results, so it is *approximate*. The sets ``default`` and
# ``onnxruntime`` accept no such rewrite. ``verify`` measures how much the results change:

report = xoptim.verify(model, done.model)
print(report.ok, report.max_rel)
