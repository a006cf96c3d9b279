"""Inference of the facts of results: nodes, calls to functions, bodies of nodes."""

from __future__ import annotations

from . import function_calls  # noqa: F401
