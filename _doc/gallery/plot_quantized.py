"""
A quantized model stays quantized
=================================

The optimization leaves QuantizeLinear and DequantizeLinear where they are. It rewrites the nodes around them.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnx
import pandas
from onnxruntime.quantization import QuantType, quantize_dynamic

import xoptim

rng = np.random.default_rng(0)
weights = [onnx.numpy_helper.from_array(rng.normal(size=(16, 16)).astype(np.float32), "w")]
model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 16] x) => (float[batch, 16] y) {
        a = MatMul (x, w)
        b = Relu (a)
        y = MatMul (b, w)
    }
""")
model.graph.initializer.extend(weights)
onnx.save(model, "float.onnx")
quantize_dynamic("float.onnx", "int8.onnx", weight_type=QuantType.QInt8)
int8 = onnx.load("int8.onnx")
done = xoptim.optimize(int8, patterns="default+onnxruntime", verify=True)

# %%

table = pandas.DataFrame(done.to_dict()["op_types"]).set_index("op_type")
table[["before", "after"]].plot.barh(figsize=(7, 3.5)).set(ylabel="", xlabel="nodes")
plt.tight_layout()
