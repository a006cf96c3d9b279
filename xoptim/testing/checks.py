"""Checks that a pattern rewrites a model as expected, or refuses it with the expected reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph

from ..authoring.patterns import PatternOptimization
from ..catalogue.selection import get_pattern_list, single_pattern
from ..engine.optimizer import GraphBuilderPatternOptimization
from .graphs import canonical_graph
from .models import PatternTestError, model_from_text
from .running import compare_models, make_feeds, size_tables


def optimize_with(
    model: ModelProto, patterns: Any, verifies: bool = True, **options: Any
) -> tuple[ModelProto, list[dict[str, Any]], GraphBuilder]:
    """Runs the given patterns only on a model.

    :param model: the model
    :param patterns: the patterns
    :param verifies: each rewrite is checked in its window, and the invariants after each iteration
    :param options: other options of the optimizer
    :return: the model, the statistics, the builder
    """
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(
            patterns=patterns, passes=("patterns", "remove_unused"), verifies=verifies, **options
        ),
    )
    rows = builder.optimize()
    check_graph(builder.graph)
    return builder.to_onnx(optimize=False, inline=False), rows, builder


def optimizer_of(
    model: str | ModelProto, patterns: Any = None, opset: int = 18, **options: Any
) -> GraphBuilderPatternOptimization:
    """Makes an optimizer on a model, to ask queries as a pattern does.

    :param model: model or graph, as text or proto
    :param patterns: patterns it may run
    :param opset: main opset if the text is a graph
    :param options: other arguments of :class:`GraphBuilderPatternOptimization`
    :return: the optimizer, nothing has run
    """
    proto = model_from_text(model, opset) if isinstance(model, str) else model
    builder = GraphBuilder(proto, infer_shapes_options=True)
    return GraphBuilderPatternOptimization(builder, patterns, **options)


def check_pattern(
    before: str | ModelProto,
    after: str | ModelProto | None,
    patterns: Any,
    opset: int = 18,
    atol: float = 0.0,
    rtol: float = 0.0,
    sizes: Any = None,
    feeds: Iterable[Mapping[str, np.ndarray]] | None = None,
    reference: bool = True,
    runtime: bool = True,
    **options: Any,
) -> ModelProto:
    """Checks that a pattern turns a model into another one that computes the same.

    It compares the graph with the expected one, the outputs under onnxruntime and the reference
    evaluator at two sizes of each symbol, runs the pattern again (nothing may change) and checks
    the invariants of the store. A rewriter with a method `values_eq_approx` says how its values are
    compared.

    :param before: model or graph, as text or proto
    :param after: the expected model, None to compare outputs only
    :param patterns: patterns to run
    :param opset: main opset if the text is a graph
    :param atol: absolute tolerance, 0 for an exact rewrite
    :param rtol: relative tolerance
    :param sizes: sizes of the symbols, one dictionary or several
    :param feeds: inputs to use instead of random ones
    :param reference: compares with the reference evaluator as well, when both models only use
        the main domain
    :param runtime: compares under onnxruntime; False when it has no kernel for the model
    :param options: options of the optimizer
    :return: the model after
    :raises PatternTestError: something differs
    """
    model = model_from_text(before, opset) if isinstance(before, str) else before
    copy = model.SerializeToString(deterministic=True)
    result, rows, _ = optimize_with(model, patterns, **options)
    if copy != model.SerializeToString(deterministic=True):
        raise PatternTestError("the original model was modified")
    applied = sum(r.get("instances", 0) for r in rows if r["pattern"].startswith("apply_"))
    if after is not None:
        expected = model_from_text(after, opset) if isinstance(after, str) else after
        a, b = canonical_graph(expected.graph), canonical_graph(result.graph)
        if a != b:
            raise PatternTestError("expected graph:\n" + "\n".join(a) + "\ngot:\n" + "\n".join(b))
    if not applied:
        raise PatternTestError(f"no pattern of {patterns} matched")
    again, rows, _ = optimize_with(result, patterns, **options)
    if canonical_graph(again.graph) != canonical_graph(result.graph):
        raise PatternTestError("the pattern changes its own result: it is not idempotent")
    if feeds is None:
        feeds = [make_feeds(model, s, i) for i, s in enumerate(size_tables(model, sizes))]
    members = get_pattern_list(patterns)
    equal = next((e for m in members if (e := getattr(m, "values_eq_approx", None))), None)
    compare_models(model, result, feeds, atol, rtol, reference, runtime, equal)
    return result


def reasons_of(
    model: ModelProto, pattern: PatternOptimization | str, **options: Any
) -> list[tuple[str, str]]:
    """The answers of a pattern at its roots: `(operator, reason of the rejection or "match")`."""
    instance = single_pattern(pattern)
    optimizer = optimizer_of(model, [instance], **options)
    return [(n.op_type, optimizer.explain(instance, n)) for n in optimizer.iter_roots(instance)]


def check_no_match(
    text: str | ModelProto,
    pattern: Any,
    reason: str | None = None,
    opset: int = 18,
    **options: Any,
) -> None:
    """Checks that a pattern refuses a model, and that one of the reasons it gives is the expected
    one.

    :param text: model or graph
    :param pattern: the pattern
    :param reason: regular expression searched in the reasons
    :param opset: main opset if the text is a graph
    :param options: options of the optimizer
    :raises PatternTestError: it matches, or gives other reasons
    """
    model = model_from_text(text, opset) if isinstance(text, str) else text
    found = reasons_of(model, pattern, **options)
    matches = [r for _, r in found if r.startswith("MatchResult")]
    if matches:
        raise PatternTestError(f"the pattern matches: {matches[0]}")
    if reason is not None and not any(re.search(reason, r) for _, r in found):
        raise PatternTestError(f"no rejection for {reason!r}, reasons are {found}")
