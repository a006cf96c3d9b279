"""Expand, filled tensors, what is repeated along an axis."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
