"""Attention, its masks and scores, rotary positions."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
