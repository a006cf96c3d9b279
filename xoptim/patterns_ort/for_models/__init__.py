"""Rewrites one model needs, whose docstring names it: their tag is `model`."""
