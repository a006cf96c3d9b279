"""Families of rewrites of domain ai.onnx.ml; the registry imports every module of this package."""

#: families of each phase
BY_PHASE = {"specialize": ("tree_ensemble",)}
#: phase of each family
PATTERN_PHASES = {word: phase for phase, words in BY_PHASE.items() for word in words}
