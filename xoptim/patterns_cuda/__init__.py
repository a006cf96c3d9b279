"""Families of rewrites to CUDA operators of onnx-extended; the registry imports every module of
this package."""

#: families of each phase
BY_PHASE = {"specialize": ("arithmetic", "elementwise", "layout", "scatter")}
#: phase of each family
PATTERN_PHASES = {word: phase for phase, words in BY_PHASE.items() for word in words}
