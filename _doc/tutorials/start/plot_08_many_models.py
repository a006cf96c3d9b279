"""
Many models, and a cluster
==========================

``xoptim.batch`` optimizes the models of a folder, several at the same time. If a model fails, its row of the
table says so and the others continue. A second run only optimizes what changed.
"""

from pathlib import Path

import onnx

import xoptim

text = """
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 4] x) => (float[batch, 4] y) <float one = {1}> {
        a = Mul (x, one)
        y = Relu (a)
    }
"""
Path("zoo").mkdir(exist_ok=True)
Path("zoo/broken.onnx").write_text("this is not a model")
for name in ("first", "second"):
    onnx.save(onnx.parser.parse_model(text), f"zoo/{name}.onnx")

# %%
# One process is enough for this page. ``jobs=8`` starts eight.

done = xoptim.batch("zoo", "optimized", jobs=1)
print(done)

# %%
# The second run tries the broken model again, and skips the others.

print([row["state"] for row in xoptim.batch("zoo", "optimized", jobs=1).rows])

# %%
# The command accepts folders, globs and addresses::
#
#     xoptim batch zoo --output-dir optimized --verify --report report.html
#     xoptim batch s3://bucket/zoo --output-dir s3://bucket/optimized
#
# ``--dask tcp://host:8786`` sends the models to the workers of a dask cluster. :doc:`/command/many_models` says what
# happens when a worker dies.
