"""
Large models and external data
==============================

A model over 2 GB keeps its weights in other files. The usual call optimizes it, and leaves the weights
on the disk.
"""

# %%
# This page uses a small model, and saves its weights in a second file as a large model does.

import os

import numpy as np
import onnx

weights = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 512] x) => (float[batch, 512] y) <float one = {1}> {
        same = Mul (x, one)
        y = MatMul (same, w)
    }
""")
model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
onnx.save(model, "large.onnx", save_as_external_data=True, location="large.data")

# %%
# The optimized model has its own data file.

import xoptim

done = xoptim.optimize("large.onnx", output="small.onnx")
for row in done.files:
    print(os.path.basename(row["path"]), row["bytes"], "bytes")

# %%
# The weights that no rewrite changes may remain in the first data file. This command writes the graph and
# only the weights that changed::
#
#     xoptim optimize large.onnx -o small.onnx --refer-to-source
#
# ``--external`` chooses between one data file, one file for each weight, and everything inside the
# model. xoptim refuses a model that points outside of its folder. :doc:`/command/large_models` explains the formats and
# measures the memory.
