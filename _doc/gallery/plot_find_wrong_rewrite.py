"""
Find the rewrite that is wrong
==============================

The rewrite below is wrong for negative numbers. ``bisect`` optimizes the model with it and with the set ``default``,
compares the results on random inputs, names the wrong rewrite, and saves the nodes it replaced.
"""

import onnx

import xoptim
from xoptim import rewrite


@rewrite(root="Sqrt", after="Mul")
def sqrt_square(g, node):
    """Sqrt(x * x) -> x, which is wrong: it is Abs(x)."""
    product = g.before(node, "Mul")
    g.require(product.input[0] == product.input[1], "it is not a square")
    return g.op.Identity(product.input[0])


model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 4] x) => (float[batch, 4] y) {
        a = Tanh (x)
        b = Mul (a, a)
        c = Sqrt (b)
        d = Sigmoid (c)
        y = Add (d, a)
    }
""")
found = xoptim.bisect(model, ["default", sqrt_square], folder="wrong")
print(found.wrong.patterns, found.wrong.reason)

# %%
# The folder holds two small models: the nodes that the rewrite replaced and those it wrote.

before, after = (onnx.load(path) for path in sorted(found.wrong.files, reverse=True))
drawn = {"what it replaced": before, "what it wrote": after}
