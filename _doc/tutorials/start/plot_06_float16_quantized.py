"""
fp16, int8, int4: precision and quantized models
================================================

xoptim never changes the precision of a model. Other tools do, and this page says which one to use, and whether
to optimize before or after.
"""

# %%
# float16
# +++++++
#
# 1. Optimize in float32. Patterns see the graph as it was exported.
# 2. Convert to float16 with the converter of onnxruntime.
# 3. Optimize again: the conversion leaves Cast nodes.

import numpy as np
import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16

import xoptim

weights = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32) / 4
model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 8] x) => (float[batch, 8] y) {
        a = MatMul (x, w)
        b = Relu (a)
        c = MatMul (b, w)
        y = Softmax (c)
    }
""")
model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))

half = convert_float_to_float16(xoptim.optimize(model).model, keep_io_types=True)
smaller = xoptim.optimize(half, verify=True)
print("nodes", len(half.graph.node), "->", len(smaller.model.graph.node))

# %%
# A Cast to fewer bits changes values. xoptim keeps it, because removing it would change the results.
#
# int8
# ++++
#
# The dynamic quantizer of onnxruntime replaces a MatMul with DynamicQuantizeLinear, MatMulInteger and three more
# nodes. xoptim merges them into one DynamicQuantizeMatMul. The static quantizer puts QuantizeLinear and
# DequantizeLinear around the operators, and xoptim keeps them there.

onnx.save(xoptim.optimize(model).model, "float.onnx")
quantize_dynamic("float.onnx", "int8.onnx", weight_type=QuantType.QInt8)
int8 = xoptim.optimize("int8.onnx", patterns="default+onnxruntime", verify=True)
print(int8)

# %%
# int4
# ++++
#
# xoptim reads weights of 4 bits as they are and never unpacks them, in ``MatMulNBits`` of onnxruntime and in
# ``QMoE``.
#
# ==================  ======================================================  ====================
# you want            tool                                                    xoptim before, after
# ==================  ======================================================  ====================
# float16             ``onnxruntime.transformers.float16``                    both
# int8, dynamic       ``onnxruntime.quantization.quantize_dynamic``           before, after
# int8, static        ``onnxruntime.quantization.quantize_static``            before, after
# int4 weights        ``onnxruntime.quantization.matmul_nbits_quantizer``     before
# ==================  ======================================================  ====================
