"""The tools of an author of rewrites: queries about the graph, the right-hand side, refusals."""

from __future__ import annotations

from .context import RewriteContext, RewriteResult
from .deduction import Refusal
from .patterns import MatchResult, PatternOptimization
from .queries import GraphQueries
from .rewrite import Rewrite
from .right_side import DerivedConstant, NewNode, NewResult

__all__ = [
    "DerivedConstant",
    "GraphQueries",
    "MatchResult",
    "NewNode",
    "NewResult",
    "PatternOptimization",
    "Refusal",
    "Rewrite",
    "RewriteContext",
    "RewriteResult",
]
