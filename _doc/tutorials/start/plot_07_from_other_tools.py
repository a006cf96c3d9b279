"""
From onnxsim, OnnxSlim, onnxscript
==================================

You know another tool. This table gives the name that each of its jobs has here.

======================================  ==========================================================
there                                   here
======================================  ==========================================================
``onnxsim in.onnx out.onnx``            ``xoptim in.onnx out.onnx``
``onnxsim in out 3``                    ``xoptim in out --verify``
``--overwrite-input-shape x:1,3``       ``--input-shape x:1,3``
``onnxsim.simplify(model)``             ``xoptim.optimize(model).model``
``onnxslim in.onnx out.onnx``           ``xoptim in.onnx out.onnx``
``onnxslim --input-shapes x:1,3``       ``--input-shape x:1,3``
``onnxslim --inspect``                  ``xoptim info model.onnx``
``onnxslim --dtype fp16``               :doc:`plot_06_float16_quantized`
``onnxscript.optimizer.optimize(m)``    ``xoptim.optimize(m).model``
``onnxscript.rewriter.rewrite``         ``xoptim.optimize(m, patterns=[...])``
``RewriteRule(pattern, rewrite)``       ``@rule("Log(Exp(x)) -> x")``, :doc:`/rewrites/writing_a_pattern`
``polygraphy inspect model``            ``xoptim info``, ``xoptim print``
``polygraphy run --onnxrt a b``         ``xoptim verify a.onnx b.onnx``
``polygraphy debug reduce``             ``xoptim reduce``
``onnxruntime.transformers.optimizer``  ``-p default+onnxruntime``, for any family of models
======================================  ==========================================================

:doc:`/from_experimental_experiment` lists the names of experimental-experiment.
"""

# %%
# You can use a rule of onnxscript without changes, with the other patterns:

import onnx
from onnxscript.rewriter import pattern

import xoptim
from xoptim.toolkit.onnxscript_rules import patterns_from_rules

two_negations = pattern.RewriteRule(
    lambda op, x: op.Neg(op.Neg(x)), lambda op, x: op.Identity(x), name="TwoNegations"
)
model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x) => (float[n] y) {
        a = Neg (x)
        b = Neg (a)
        y = Relu (b)
    }
""")
done = xoptim.optimize(model, patterns=["default", *patterns_from_rules(two_negations)])
print([node.op_type for node in done.model.graph.node])
