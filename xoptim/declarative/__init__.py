"""Rewrites declared as two small graphs: equations, functions, models, tuples."""

from __future__ import annotations

from .rules import RulePattern, equation, rule
from .tuples import equation_from_tuples

__all__ = ["RulePattern", "equation", "equation_from_tuples", "rule"]
