"""
Quickstart: a first model
=========================

One call reads a model, optimizes it, checks the result and saves it. This page does it in Python,
then with the command.
"""

# %%
# Any ONNX file will do. This page writes a small one, so that you see what happens. It has two
# transpositions that cancel each other, then a Gelu as exporters write it.

import onnx

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, seq, 8] x) => (float[batch, seq, 8] y)
    <float half = {0.5}, float one = {1}, float root = {1.4142135}> {
        turned = Transpose <perm = [0, 2, 1]> (x)
        back = Transpose <perm = [0, 2, 1]> (turned)
        scaled = Div (back, root)
        erf = Erf (scaled)
        shifted = Add (erf, one)
        product = Mul (back, shifted)
        y = Mul (product, half)
    }
""")
onnx.save(model, "model.onnx")

# %%
# Choose the rewrites ``default+onnxruntime`` when onnxruntime runs the model. ``default`` alone only
# writes standard operators. ``verify=True`` runs both models on the same random inputs.

import xoptim

done = xoptim.optimize("model.onnx", patterns="default+onnxruntime", verify=True)
print(done)

# %%
# Seven nodes became one. ``done.model`` is the new model, and ``done.save`` writes it to a file.

done.save("optimized.onnx")
drawn = {"before": model, "after": done.model}

# %%
# The command does the same::
#
#     xoptim model.onnx optimized.onnx -p default+onnxruntime --verify
#
# Next: :doc:`is it right <plot_02_is_it_right>`, :doc:`is it faster <plot_03_is_it_faster>`.
