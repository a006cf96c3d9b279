"""Transpose and what it crosses, channels, blocks of pixels."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "canonicalize"
