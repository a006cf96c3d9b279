"""Passes: what an optimization is made of, and the table to run them by name."""

from __future__ import annotations

from . import constant_folding, control_flow, duplicates, identity, order, patterns, unused  # noqa: F401
from .patterns import pattern_names
from .registry import complete_rows, get_pass, pass_names, register_pass, run_pass

__all__ = ["complete_rows", "get_pass", "pass_names", "pattern_names", "register_pass", "run_pass"]
