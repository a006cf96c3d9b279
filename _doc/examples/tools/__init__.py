"""Code the benchmarks share."""
