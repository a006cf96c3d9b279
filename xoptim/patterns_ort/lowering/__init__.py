"""Operators that onnxruntime has no kernel for become operators it has kernels for."""

#: phase of the rewrites of this package
PHASE = "uncanonicalize"
