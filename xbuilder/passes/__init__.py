"""The passes of an optimization, their registry, and the pipeline that runs them."""

from __future__ import annotations

from ..rows import complete_rows
from . import constant_folding, control_flow, duplicates, identity, order, patterns, unused  # noqa: F401
from .registry import PassReport, get_pass, pass_names, register_pass, run_pass

__all__ = ["PassReport", "complete_rows", "get_pass", "pass_names", "register_pass", "run_pass"]
