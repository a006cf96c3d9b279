"""The API of an author of rewrites: what a rewrite is and may ask, how it is registered and
selected."""

from __future__ import annotations

from .context import Answer, RewriteContext
from .deduction import Refusal
from .patterns import MatchResult, PatternOptimization
from .queries import GraphQueries
from .registry import register_pattern
from .rewrite import Rewrite, rewrite
from .right_side import NewNode, NewResult, Remade

__all__ = [
    "Answer",
    "GraphQueries",
    "MatchResult",
    "NewNode",
    "NewResult",
    "PatternOptimization",
    "Refusal",
    "Remade",
    "Rewrite",
    "RewriteContext",
    "register_pattern",
    "rewrite",
]
