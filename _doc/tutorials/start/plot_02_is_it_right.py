"""
Is it right?
============

An optimized model must give the results of the original. ``verify`` runs two models and compares their outputs.
``validate`` checks each rewrite alone. ``bisect`` finds the rewrite that is wrong.
"""

import numpy as np
import onnx

import xoptim

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 8] x) => (float[batch, 8] y) <float one = {1}> {
        a = Mul (x, one)
        b = Sigmoid (a)
        y = Mul (b, x)
    }
""")
optimized = xoptim.optimize(model).model

# %%
# Two models
# ++++++++++
#
# ``verify`` chooses a size for each dynamic dimension and draws the inputs at random.

report = xoptim.verify(model, optimized)
print(report.ok, report.sizes, "largest difference:", report.max_abs)

# %%
# Random numbers may miss what matters to you. Give real inputs:

x = np.linspace(-9, 9, 16, dtype=np.float32).reshape(2, 8)
report = xoptim.verify(model, optimized, inputs={"x": x})
print(report.ok, "largest difference:", report.max_abs)

# %%
# Each rewrite
# ++++++++++++
#
# ``validate=True`` runs the nodes that each rewrite removed and those that it wrote, and compares their
# results. It uses several sizes, NaN and infinities. It also checks the branches that no input reaches.

done = xoptim.optimize(model, validate=True)
for certificate in done.validation.certificates:
    print(certificate.pattern, "->", certificate.text())

# %%
# A wrong rewrite
# +++++++++++++++
#
# This rewrite is wrong on purpose: it replaces Sigmoid with Tanh. ``bisect`` names it.

from xoptim import rewrite


@rewrite(root="Sigmoid")
def wrong(g, node):
    """Sigmoid(x) -> Tanh(x)."""
    return g.op.Tanh(node.input[0])


found = xoptim.bisect(model, ["default", wrong])
print(found.wrong.patterns, found.wrong.reason)

# %%
# The commands are ``xoptim verify a.onnx b.onnx``, ``xoptim optimize --validate`` and ``xoptim bisect``.
# :doc:`/command/verification` says what counts as equal.
