"""The models the benchmarks measure."""
