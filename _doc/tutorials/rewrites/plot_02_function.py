"""
A rewrite as a function
=======================

``@rewrite`` calls a function on each node of some operators. The function asks questions about the graph, then
refuses or returns the replacement of the node.
"""

import numpy as np
import onnx

import xoptim
from xoptim import rewrite


@rewrite(root="Clip", after="Clip", min_opset=11, sole_use=True)
def clip_min_max(g, outer):
    """Clip(Clip(x, min=a), max=b) -> Clip(x, a, b) when a <= b."""
    inner = g.before(outer, "Clip")
    g.require(len(inner.input) == 2, "the first Clip has an upper bound")
    g.require(len(outer.input) == 3 and not outer.input[1], "the second one has a lower bound")
    low = g.constant_of(inner.input[1], "a bound is not constant")
    high = g.constant_of(outer.input[2], "a bound is not constant")
    g.require(np.all(low <= high), "the bounds are not in order")
    return g.op.Clip(inner.input[0], inner.input[1], outer.input[2])


model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x) => (float[n] y) <float zero = {0}, float six = {6}> {
        a = Clip (x, zero)
        y = Clip (a, , six)
    }
""")
done = xoptim.optimize(model, patterns=["default", clip_min_max], verify=True)
drawn = {"before": model, "after": done.model}

# %%
# The engine does the rest
# ++++++++++++++++++++++++
#
# * It calls the function on the nodes that ``root`` and ``after`` select.
# * It removes the nodes that have no reader left. With ``sole_use=True``, it refuses the rewrite if another node
#   reads the first Clip.
# * It checks the operators, the types, the shapes and the order of the new nodes.
#
# **Unknown means no.** ``g.constant_of`` refuses the rewrite when the value is not known. A rewrite applies only if
# its conditions are proven.
#
# The next tutorial is :doc:`plot_03_class`, for rewrites with parameters.
