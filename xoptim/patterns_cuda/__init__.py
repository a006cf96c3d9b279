"""Rewrites into operators of onnx-extended for CUDA."""

#: phase of the rewrites of this package that do not name another one
PHASE = "specialize"
