"""Matches and rewrites an ONNX model."""

from __future__ import annotations

from xbuilder.optimization_options import OrderAlgorithm

from .easy_patterns import (
    EasyPatternOptimization,
    OnnxEasyPatternOptimization,
    make_pattern_from_onnx,
    remove_constants_for_initializers,
)
from .graph_builder_optim import GraphBuilderPatternOptimization
from .patterns_api import MatchResult, PatternOptimization
from .registry import register_pattern
from .selection import get_pattern, get_pattern_list

__all__ = [
    "EasyPatternOptimization",
    "GraphBuilderPatternOptimization",
    "MatchResult",
    "OnnxEasyPatternOptimization",
    "OrderAlgorithm",
    "PatternOptimization",
    "get_pattern",
    "get_pattern_list",
    "make_pattern_from_onnx",
    "register_pattern",
    "remove_constants_for_initializers",
]
