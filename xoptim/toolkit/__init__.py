"""The rewriting toolkit: the ways to write, combine, store, watch rewrites, on one engine."""

from __future__ import annotations

from .decorators import graph_rewriter, node_rewriter
from .equilibrium import EquilibriumGraphRewriter
from .merge import MergeOptimizer
from .pattern_rewriter import PatternNodeRewriter
from .rewriters import EditableGraph, GraphRewriter, NodeRewriter
from .sequential import SequentialGraphRewriter
from .substitution import RemovalNodeRewriter, SubstitutionNodeRewriter
from .trees import Var
from .walking import WalkingGraphRewriter, in2out, out2in

__all__ = [
    "EditableGraph",
    "EquilibriumGraphRewriter",
    "GraphRewriter",
    "MergeOptimizer",
    "NodeRewriter",
    "PatternNodeRewriter",
    "RemovalNodeRewriter",
    "SequentialGraphRewriter",
    "SubstitutionNodeRewriter",
    "Var",
    "WalkingGraphRewriter",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "out2in",
]
