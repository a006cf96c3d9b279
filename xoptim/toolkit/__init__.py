"""The rewriting toolkit: the ways to write, combine, store, watch rewrites, on one engine."""
