"""How rewrites are named, tagged, ordered and selected."""

from __future__ import annotations

from .registry import register_pattern
from .rewrite_function import rewrite

__all__ = ["register_pattern", "rewrite"]
