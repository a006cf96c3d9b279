"""Rewrites declared as two small graphs: equations, functions, models, tuples."""

from __future__ import annotations

from .rule_patterns import RulePattern
from .rules import equation, rule
from .tuples import equation_from_tuples

__all__ = ["RulePattern", "equation", "equation_from_tuples", "rule"]
