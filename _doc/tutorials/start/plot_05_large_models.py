"""
Large models and external data
==============================

A model over 2 GB keeps its weights in other files. The same call optimizes it, and the weights stay
on the disk.
"""

# %%
# A small model stands for a large one here: its weights go to a second file.

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
# Weights that no rewrite changed may stay in the first data file. Only the graph is written then::
#
#     xoptim optimize large.onnx -o small.onnx --refer-to-source
#
# ``--external`` chooses between one data file, one file for each weight, and everything inside the
# model. A file that points outside of its folder is refused. :doc:`/large_models` has the formats, and
# measures of the memory.
