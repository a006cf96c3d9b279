"""Rewrites for a purpose a user names: functions kept by name, observers."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
