"""Rewrites given as two small graphs: equations, functions, models, tuples."""

from __future__ import annotations

from .rules import RulePattern, equation, rule

__all__ = ["RulePattern", "equation", "rule"]
