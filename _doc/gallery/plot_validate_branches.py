"""
A mistake in a branch that never runs
=====================================

Random inputs may never run a branch, so ``verify`` may miss a mistake in it. ``validate`` checks each rewrite alone, so
it finds the mistake in any branch.
"""

import onnx

import xoptim
from xoptim import rewrite

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x, int64 rate) => (float[n] y) <int64 high = {16000}> {
        is_high = Equal (rate, high)
        y = If (is_high) <
            then_branch = t () => (float[n] a) { a = Relu (x) },
            else_branch = e () => (float[n] b) { b = Sigmoid (x) }
        >
    }
""")


@rewrite(root="Sigmoid")
def wrong(g, node):
    """Sigmoid(x) -> Tanh(x)."""
    return g.op.Tanh(node.input[0])


try:
    xoptim.optimize(model, patterns=[wrong], validate=True)
except Exception as e:
    print(type(e).__name__)
    print(str(e)[:300])

# %%
# In this model, ``verify`` finds the constant that the rate is compared with. It uses the constant as one of the
# inputs, so both branches run.

report = xoptim.verify(model, model)
print("sets of inputs:", report.draws, "branches that never ran:", report.never_ran)
drawn = {"If": model}
