"""Rewrites one model needs, whose docstring names it: their tag is `model`."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
