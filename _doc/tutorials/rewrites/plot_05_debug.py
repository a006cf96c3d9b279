"""
Why does my rewrite not apply?
==============================

When a rewrite does not apply, ``explain`` names the first condition that fails. ``near_misses`` tries every pattern
on a node. Both work for the patterns of the project and for yours.
"""

import onnx

import xoptim

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[a, b] x) => (float[b, a] t, float[a, b] y) {
        t = Transpose <perm = [1, 0]> (x)
        u = Transpose <perm = [1, 0]> (t)
        v = Relu (t)
        w = Transpose <perm = [1, 0]> (v)
        y = Add (u, w)
    }
""")

drawn = {"model": model}

# %%
# ``explain`` tries one pattern on every node it may start from:

for row in xoptim.explain(model, "TransposeTranspose"):
    print(row["result"], row["operator"], "->", row["answer"])

# %%
# ``near_misses`` tries every pattern on the nodes of one operator. The first rows are the patterns that visited the
# most nodes before they declined:

for miss in xoptim.near_misses(model, op_type="Add")[:5]:
    print(f"{miss.pattern:24} visited {miss.visited}: {miss.reason}")

# %%
# The commands ``xoptim explain model.onnx TransposeTranspose`` and ``xoptim explain model.onnx --op Add`` do the same.
#
# See the match
# +++++++++++++
#
# ``dump_applied_patterns`` writes each match as two models, before and after the rewrite.

from pathlib import Path

from xbuilder import GraphBuilder, OptimizationOptions

options = OptimizationOptions(patterns="default", dump_applied_patterns="dumped")
GraphBuilder(model, optimization_options=options).to_onnx()
print(sorted(path.name for path in Path("dumped").glob("*.onnx")))

# %%
# ``verbose=10`` prints every match, and every refusal with its line. The option of the command is ``-vv``.
# :doc:`/command/debugging` has more tools.
