"""Tools to test a pattern: models as ONNX text, same outputs, near misses."""

from __future__ import annotations

from .checks import check_no_match, check_pattern, optimize_with, optimizer_of, reasons_of
from .graphs import canonical_graph
from .models import PatternTestError, model_from_text
from .running import (
    assert_same_outputs,
    compare_models,
    make_feeds,
    random_array,
    run_onnxruntime,
    run_reference,
)
from .tables import refusal_tests, rewrite_tests, table_rows

__all__ = [
    "PatternTestError",
    "assert_same_outputs",
    "canonical_graph",
    "check_no_match",
    "check_pattern",
    "compare_models",
    "make_feeds",
    "model_from_text",
    "optimize_with",
    "optimizer_of",
    "random_array",
    "reasons_of",
    "refusal_tests",
    "rewrite_tests",
    "run_onnxruntime",
    "run_reference",
    "table_rows",
]
