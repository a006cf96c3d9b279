"""Rewrites into operators of onnxruntime, by subject."""

#: phase of the rewrites of this package that do not name another one
PHASE = "specialize"
