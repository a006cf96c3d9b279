"""Optimizes an ONNX model: finds patterns of nodes and rewrites them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xbuilder.options import OrderAlgorithm

from .authoring.context import RewriteContext
from .authoring.patterns import MatchResult, PatternOptimization
from .authoring.rewrite import Rewrite
from .catalogue.registry import add_families, register_pattern
from .catalogue.rewrite_function import rewrite
from .catalogue.selection import get_pattern, get_pattern_list
from .declarative.easy_patterns import EasyPatternOptimization
from .declarative.onnx_patterns import (
    OnnxEasyPatternOptimization,
    make_pattern_from_onnx,
    remove_constants_for_initializers,
)
from .declarative.pattern_code import to_graph_pattern_matching
from .declarative.rules import rule
from .engine.optimizer import GraphBuilderPatternOptimization
from .reports import repeated_optim, unfused

if TYPE_CHECKING:
    from .tasks.calls import (
        batch,
        bisect,
        check,
        compare,
        convert,
        diff,
        explain,
        extract,
        measure,
        near_misses,
        optimize,
        summary,
        verify,
    )

add_families(*(f"xoptim.patterns{end}" for end in ("", "_ort", "_ml", "_cuda")))

__all__ = [
    "EasyPatternOptimization",
    "GraphBuilderPatternOptimization",
    "MatchResult",
    "OnnxEasyPatternOptimization",
    "OrderAlgorithm",
    "PatternOptimization",
    "Rewrite",
    "RewriteContext",
    "batch",
    "bisect",
    "check",
    "compare",
    "convert",
    "diff",
    "explain",
    "extract",
    "get_pattern",
    "get_pattern_list",
    "make_pattern_from_onnx",
    "measure",
    "near_misses",
    "optimize",
    "register_pattern",
    "remove_constants_for_initializers",
    "repeated_optim",
    "rewrite",
    "rule",
    "summary",
    "to_graph_pattern_matching",
    "unfused",
    "verify",
]


def __getattr__(name: str) -> Any:
    """The functions of :mod:`xoptim.tasks.calls`, imported when they are first asked for."""
    if name in __all__:
        from .tasks import calls

        return getattr(calls, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
