"""ReduceSum and the others, Softmax, losses."""

#: phase of the rewrites of this folder that do not name another one
PHASE = "specialize"
