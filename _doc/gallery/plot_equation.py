"""
A rewrite in one line
=====================

``@rule`` turns an equation into a rewrite. This one replaces three operators by Mish.
"""

import onnx

import xoptim
from xoptim import rule


@rule("x * Tanh(Softplus(x)) -> Mish(x)", min_opset=18)
def mish(g):
    """x * Tanh(Softplus(x)) -> Mish(x)."""


model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 4] x) => (float[batch, 4] y) {
        a = Softplus (x)
        b = Tanh (a)
        y = Mul (b, x)
    }
""")
done = xoptim.optimize(model, patterns=[mish])
drawn = {"before": model, "after": done.model}
