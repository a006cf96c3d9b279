"""The tools of an author of rewrites: queries about the graph, the right-hand side, refusals."""

from __future__ import annotations

from .context import Answer, RewriteContext
from .deduction import Refusal
from .patterns import MatchResult, PatternOptimization
from .queries import GraphQueries
from .rewrite import Rewrite
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
]
