"""Graphs inside graphs: subgraphs, local functions, splicing."""

from __future__ import annotations

from . import body_inference  # noqa: F401
