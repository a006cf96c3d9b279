"""Gather, Slice, Split, Concat, Pad, Scatter: choosing and moving pieces."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
