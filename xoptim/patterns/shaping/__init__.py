"""Reshape, Squeeze, Unsqueeze, Range and the nodes that compute shapes."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
