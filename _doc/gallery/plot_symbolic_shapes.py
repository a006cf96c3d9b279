"""
Shapes with names
=================

The optimizer infers shapes as expressions of the dimensions of the inputs. It uses them to prove that two shapes are
equal, whatever the sizes.
"""

import onnx

from xbuilder import GraphBuilder

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, seq, 12] x, float[batch, past, 12] cache) => (float[batch, t, 3, 4] y)
    <int64[4] heads = {0, 0, 3, 4}, int64[1] one = {1}, int64[1] far = {100}> {
        both = Concat <axis = 1> (cache, x)
        cut = Slice (both, one, far, one)
        y = Reshape (both, heads)
    }
""")
builder = GraphBuilder(model, infer_shapes_options=True)
for name in ("both", "y"):
    print(name, builder.get_shape(name))

# %%
# The drawing shows the shapes beside the edges.

drawn = {"shapes": model}
