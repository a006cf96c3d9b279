"""Optimizes an ONNX model: finds patterns of nodes and rewrites them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbuilder.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from xbuilder.options import OrderAlgorithm

    from . import repeated_optim, unfused
    from .authoring.context import RewriteContext
    from .authoring.patterns import MatchResult, PatternOptimization
    from .authoring.rewrite import Rewrite
    from .catalogue.registry import register_pattern
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

HOMES = {
    ".": ("repeated_optim", "unfused"),
    "xbuilder.options": ("OrderAlgorithm",),
    ".authoring.context": ("RewriteContext",),
    ".authoring.patterns": ("MatchResult", "PatternOptimization"),
    ".authoring.rewrite": ("Rewrite",),
    ".catalogue.registry": ("register_pattern",),
    ".catalogue.rewrite_function": ("rewrite",),
    ".catalogue.selection": ("get_pattern", "get_pattern_list"),
    ".declarative.easy_patterns": ("EasyPatternOptimization",),
    ".declarative.onnx_patterns": (
        "OnnxEasyPatternOptimization",
        "make_pattern_from_onnx",
        "remove_constants_for_initializers",
    ),
    ".declarative.pattern_code": ("to_graph_pattern_matching",),
    ".declarative.rules": ("rule",),
    ".engine.optimizer": ("GraphBuilderPatternOptimization",),
    ".tasks.calls": (
        "batch",
        "bisect",
        "check",
        "compare",
        "convert",
        "diff",
        "explain",
        "extract",
        "measure",
        "near_misses",
        "optimize",
        "summary",
        "verify",
    ),
}
__getattr__ = lazy_names(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
