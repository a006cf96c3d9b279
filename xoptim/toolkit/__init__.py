"""The rewriting toolkit: the ways to write, combine, store, watch rewrites, on one engine."""

from __future__ import annotations

from .decorators import graph_rewriter, node_rewriter
from .rewriters import EditableGraph, GraphRewriter, NodeRewriter

__all__ = [
    "EditableGraph",
    "GraphRewriter",
    "NodeRewriter",
    "graph_rewriter",
    "node_rewriter",
]
