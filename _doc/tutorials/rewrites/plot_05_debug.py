"""
Why does my rewrite not apply?
==============================

``explain`` names the first condition that fails. ``near_misses`` asks every pattern about a node.
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

# %%
# One pattern, every node it may start from:

for row in xoptim.explain(model, "TransposeTranspose"):
    print(row["result"], row["operator"], "->", row["answer"])

# %%
# One node, every pattern. Those that went the farthest before they declined come first.

for miss in xoptim.near_misses(model, op_type="Add")[:5]:
    print(f"{miss.pattern:24} visited {miss.visited}: {miss.reason}")

# %%
# The commands are ``xoptim explain model.onnx TransposeTranspose`` and ``xoptim explain model.onnx --op Add``.
#
# See the match
# +++++++++++++
#
# ``dump_applied_patterns`` writes each match as two models, before and after.

from pathlib import Path

from xbuilder import GraphBuilder, OptimizationOptions

options = OptimizationOptions(patterns="default", dump_applied_patterns="dumped")
GraphBuilder(model, optimization_options=options).to_onnx()
print(sorted(path.name for path in Path("dumped").glob("*.onnx")))

# %%
# ``verbose=10`` prints every match and every refusal with its line, ``-vv`` does it with the command.
# :doc:`/debugging` goes on.
