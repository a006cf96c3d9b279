"""Arithmetic, comparisons, conversions of types, activations, masks."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
