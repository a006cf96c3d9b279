"""Trust in an optimized model: verification, random inputs, bisection, timing."""
