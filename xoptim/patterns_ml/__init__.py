"""Rewrites into operators of ai.onnx.ml."""

#: phase of the rewrites of this package that do not name another one
PHASE = "specialize"
