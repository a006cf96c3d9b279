"""Graphs inside graphs: bodies of nodes, local functions, inlining and splicing."""

from __future__ import annotations

from . import body_inference  # noqa: F401
