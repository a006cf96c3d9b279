"""
Fix a dimension, rename, extract
================================

A model that always runs with the same size is easier to optimize, so fix its dimensions first. This page also
renames inputs, and extracts a part of a model to look at it.
"""

import onnx

import xoptim
from xoptim.surgery.signature import SignatureChanges

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 3, n, n] images) => (float[batch, c] scores, float[batch, 3, n, n] extra)
    <int64[1] minus_one = {-1}, int64[1] zero = {0}, int64[1] one = {1}> {
        shape = Shape (images)
        rows = Slice (shape, zero, one)
        target = Concat <axis = 0> (rows, minus_one)
        scores = Reshape (images, target)
        extra = Relu (images)
    }
""")

# %%
# Fix a dimension
# +++++++++++++++
#
# This model computes a shape from the batch. Once the size is known, the shape is a constant.

done = xoptim.optimize(model, signature=SignatureChanges(sizes={"batch": 1, "n": 32}))
drawn = {"any size": model, "batch=1, n=32": done.model}

# %%
# The command is ``xoptim optimize model.onnx fixed.onnx --set-dim batch=1 --set-dim n=32``, or
# ``--input-shape images:1,3,32,32``.
#
# Rename
# ++++++

renamed = xoptim.optimize(
    model, signature=SignatureChanges(names={"images": "pixels"}, outputs=["scores"])
).model
print([i.name for i in renamed.graph.input], [o.name for o in renamed.graph.output])

# %%
# The options of the command are ``--rename images=pixels``, ``--rename-dim n=side`` and
# ``--keep-outputs scores``.
#
# Extract
# +++++++
#
# ``extract`` makes a model of the nodes that compute a result. ``inputs`` says where to start, if it is not at
# the inputs of the model.

part = xoptim.extract(model, ["target"])
print([node.op_type for node in part.graph.node])
