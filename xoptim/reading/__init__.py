"""Analyses rewrites share to read a graph: arguments, axes, shapes, proven values, weights."""
