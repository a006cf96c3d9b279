"""The rewriting toolkit: ways to write, combine, store and observe rewrites, on one engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbuilder.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from ..catalogue.database import ProxyDatabase, RewriteDatabase
    from ..catalogue.database_query import RewriteDatabaseQuery
    from ..catalogue.registry import pattern_database
    from .databases import (
        EquilibriumDatabase,
        SequenceDatabase,
        WalkingDatabase,
        phase_sequence,
    )
    from .decorators import graph_rewriter, node_rewriter
    from .equilibrium import EquilibriumGraphRewriter
    from .merge import MergeOptimizer
    from .pattern_rewriter import PatternNodeRewriter
    from .rewriters import EditableGraph, GraphRewriter, NodeRewriter
    from .rewriting import rewrite_graph
    from .sequential import SequentialGraphRewriter
    from .substitution import RemovalNodeRewriter, SubstitutionNodeRewriter
    from .trees import Var
    from .walking import WalkingGraphRewriter, in2out, out2in

__all__ = [
    "EditableGraph",
    "EquilibriumDatabase",
    "EquilibriumGraphRewriter",
    "GraphRewriter",
    "MergeOptimizer",
    "NodeRewriter",
    "PatternNodeRewriter",
    "ProxyDatabase",
    "RemovalNodeRewriter",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "SequenceDatabase",
    "SequentialGraphRewriter",
    "SubstitutionNodeRewriter",
    "Var",
    "WalkingDatabase",
    "WalkingGraphRewriter",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "out2in",
    "pattern_database",
    "phase_sequence",
    "rewrite_graph",
]

HOMES = {
    "..catalogue.database": (
        "ProxyDatabase",
        "RewriteDatabase",
    ),
    "..catalogue.database_query": ("RewriteDatabaseQuery",),
    "..catalogue.registry": ("pattern_database",),
    ".databases": (
        "EquilibriumDatabase",
        "SequenceDatabase",
        "WalkingDatabase",
        "phase_sequence",
    ),
    ".decorators": (
        "graph_rewriter",
        "node_rewriter",
    ),
    ".equilibrium": ("EquilibriumGraphRewriter",),
    ".merge": ("MergeOptimizer",),
    ".pattern_rewriter": ("PatternNodeRewriter",),
    ".rewriters": (
        "EditableGraph",
        "GraphRewriter",
        "NodeRewriter",
    ),
    ".rewriting": ("rewrite_graph",),
    ".sequential": ("SequentialGraphRewriter",),
    ".substitution": (
        "RemovalNodeRewriter",
        "SubstitutionNodeRewriter",
    ),
    ".trees": ("Var",),
    ".walking": (
        "WalkingGraphRewriter",
        "in2out",
        "out2in",
    ),
}
__getattr__ = lazy_names(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
