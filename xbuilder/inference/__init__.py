"""Facts about the results of nodes, of calls to functions, of graphs inside nodes."""

from __future__ import annotations

from . import function_calls  # noqa: F401
