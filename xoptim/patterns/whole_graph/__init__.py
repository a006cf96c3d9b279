"""Common subexpressions, branches, constants, dropout, quantization."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
