"""Findings about a model: what will not run, what a reader would not expect, what mends it."""
