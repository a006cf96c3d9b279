"""MatMul, Gemm, Conv, Einsum, constants folded into their weights."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
