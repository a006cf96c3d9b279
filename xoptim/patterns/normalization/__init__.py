"""Layer, batch, instance and root mean square normalizations."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
