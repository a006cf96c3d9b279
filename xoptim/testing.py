"""Tools to test a pattern: before and after as ONNX text, same outputs, near misses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.parser
from onnx import GraphProto, ModelProto, TensorProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.constants.evaluation import constant_node_value
from xbuilder.dims import evaluate, symbols
from xbuilder.errors import XoptimError
from xbuilder.graph_check import check_graph
from xbuilder.opsets import ir_version_for

from .api.patterns import PatternOptimization
from .api.selection import get_pattern_list
from .engine.optimizer import GraphBuilderPatternOptimization

#: sizes given to symbols, one row per run
SIZES = ((3, 4, 5, 6, 7, 8), (2, 6, 3, 5, 4, 9))


class PatternTestError(AssertionError, XoptimError):
    """A pattern does not do what its test says."""


def model_from_text(
    text: str, opset: int = 18, domains: Iterable[str] = ("com.microsoft",)
) -> ModelProto:
    """Parses a model, or a graph alone to which a header is added.

    :param text: ONNX text format
    :param opset: main opset of the header
    :param domains: other domains of the header, version 1
    """
    text = text.strip()
    if not text.startswith("<"):
        imports = ", ".join([f'"": {opset}', *(f'"{d}": 1' for d in domains)])
        text = f"<ir_version: {ir_version_for(opset)}, opset_import: [{imports}]>\n{text}"
    return onnx.parser.parse_model(text)


# -- comparing graphs


def _leaf(array: np.ndarray) -> str:
    content = array.tolist() if array.size <= 16 else hash(array.tobytes())
    return f"{array.dtype}{list(array.shape)}{content}"


def canonical_graph(graph: GraphProto, outer: Mapping[str, str] | None = None) -> list[str]:
    """A graph as lines of text where generated names do not appear: equal graphs give equal lines.

    Nodes are numbered from the outputs; constants are written by value.
    """
    known: dict[str, str] = dict(outer or {})
    known.update({i.name: f"input:{i.name}" for i in graph.input})
    known.update({i.name: _leaf(onnx.numpy_helper.to_array(i)) for i in graph.initializer})
    known[""] = "_"
    producers = {o: n for n in graph.node for o in n.output if o}
    lines: list[str] = []
    done: dict[int, str] = {}

    def visit(name: str) -> str:
        if name in known:
            return known[name]
        node = producers[name]
        if id(node) not in done:
            value = constant_node_value(node) if node.op_type == "Constant" else None
            if value is not None:
                known[name] = _leaf(value)
                return known[name]
            inputs = [visit(i) for i in node.input]
            attributes = [_attribute(a, known, visit) for a in node.attribute]
            label = f"n{len(done)}"
            done[id(node)] = label
            domain = f"{node.domain}." if node.domain else ""
            arguments = ", ".join([*inputs, *sorted(attributes)])
            lines.append(f"{label} = {domain}{node.op_type}({arguments})")
        position = node.output[:].index(name)
        known[name] = f"{done[id(node)]}#{position}"
        return known[name]

    ends = [f"{o.name} <- {visit(o.name)}" for o in graph.output]
    lines.extend(f"unused {n.op_type}" for n in graph.node if id(n) not in done and _is_op(n))
    return lines + ends


def _is_op(node: onnx.NodeProto) -> bool:
    return node.op_type != "Constant"


def _attribute(att: onnx.AttributeProto, known: Mapping[str, str], visit: Any) -> str:
    if att.type == onnx.AttributeProto.GRAPH:
        from xbuilder.nodes.protos import captured_names

        outer = dict(known)
        outer.update({n: visit(n) for n in captured_names(att.g)})
        return f"{att.name}={{{'; '.join(canonical_graph(att.g, outer))}}}"
    value = oh.get_attribute_value(att)
    if isinstance(value, TensorProto):
        value = _leaf(onnx.numpy_helper.to_array(value))
    elif isinstance(value, float):
        value = float(np.float32(value))
    return f"{att.name}={value}"


# -- running


def random_array(elem_type: int, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Random values of one type: small integers, floats around 0."""
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    if elem_type == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if elem_type == TensorProto.STRING:
        return np.array([f"s{i}" for i in range(int(np.prod(shape)))], dtype=object).reshape(shape)
    if dtype.kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _size_tables(model: ModelProto, sizes: Any) -> list[dict[str, int]]:
    if sizes is not None:
        return [dict(s) for s in (sizes if isinstance(sizes, (list, tuple)) else [sizes])]
    builder = GraphBuilder(model)
    names: dict[str, None] = {}
    for info in builder.input_specs:
        for d in builder.facts[info.name].shape or ():
            if isinstance(d, str):
                names.update(dict.fromkeys(sorted(symbols(d))))
    return (
        [{name: row[i % len(row)] for i, name in enumerate(names)} for row in SIZES]
        if names
        else [{}]
    )


def make_feeds(model: ModelProto, sizes: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs for a model whose symbols have these sizes."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder(model)
    feeds: dict[str, np.ndarray] = {}
    defaults = {i.name for i in model.graph.initializer}
    for spec in builder.input_specs:
        if spec.name in defaults:
            continue
        facts = builder.facts[spec.name]
        shape = [evaluate(d, sizes) if isinstance(d, str) else d for d in facts.shape or ()]
        feeds[spec.name] = random_array(facts.type, shape, rng)
    return feeds


def run_onnxruntime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Outputs of a model under onnxruntime, its own optimizations disabled."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))


def run_reference(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Outputs of a model under onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, dict(feeds))


def assert_same_outputs(
    expected: Sequence[Any], got: Sequence[Any], atol: float, rtol: float, where: str
) -> None:
    """Compares outputs: types, shapes, values (NaN equal to NaN)."""
    if len(expected) != len(got):
        raise PatternTestError(f"{where}: {len(expected)} outputs before, {len(got)} after")
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        if isinstance(a, list):
            assert_same_outputs(a, b, atol, rtol, f"{where}[{i}]")
            continue
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype or a.shape != b.shape:
            raise PatternTestError(
                f"{where}, output {i}: {a.dtype}{a.shape} before, {b.dtype}{b.shape} after"
            )
        if a.dtype.kind not in "fc" and a.dtype.kind != "V":
            same = bool((a == b).all())
        else:
            wide_a, wide_b = (v.astype(np.float64) if v.dtype.kind != "c" else v for v in (a, b))
            same = np.allclose(wide_a, wide_b, atol=atol, rtol=rtol, equal_nan=True)
        if not same:
            raise PatternTestError(f"{where}, output {i}: values differ\n{a}\n{b}")


# -- checks


def optimize_with(
    model: ModelProto, patterns: Any, **options: Any
) -> tuple[ModelProto, list[dict[str, Any]], GraphBuilder]:
    """Runs patterns, and only them, on a model. Returns the model, the statistics, the builder."""
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(
            patterns=patterns, passes=("patterns", "remove_unused"), verifies=True, **options
        ),
    )
    rows = builder.optimize()
    check_graph(builder)
    return builder.to_onnx(optimize=False, inline=False), rows, builder


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
    the invariants of the store.

    :param before: model or graph, as text or proto
    :param after: what is expected, None to compare outputs only
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
        feeds = [make_feeds(model, s, i) for i, s in enumerate(_size_tables(model, sizes))]
    compare_models(model, result, feeds, atol, rtol, reference, runtime)
    return result


def compare_models(
    before: ModelProto,
    after: ModelProto,
    feeds: Iterable[Mapping[str, np.ndarray]],
    atol: float = 0.0,
    rtol: float = 0.0,
    reference: bool = True,
    runtime: bool = True,
) -> None:
    """Compares the outputs of two models on several inputs.

    :raises PatternTestError: they differ
    """
    custom = any(n.domain not in ("", "ai.onnx.ml") for m in (before, after) for n in m.graph.node)
    for feed in feeds:
        if runtime:
            expected = run_onnxruntime(before, feed)
            assert_same_outputs(expected, run_onnxruntime(after, feed), atol, rtol, "onnxruntime")
        if reference and not custom:
            expected = run_reference(before, feed)
            assert_same_outputs(expected, run_reference(after, feed), atol, rtol, "reference")


def reasons_of(model: ModelProto, pattern: PatternOptimization | str) -> list[tuple[str, str]]:
    """Looks at every root of a pattern: `(operator, reason of the rejection or "match")`."""
    builder = GraphBuilder(model, infer_shapes_options=True)
    instance = get_pattern_list([pattern])[0]
    optimizer = GraphBuilderPatternOptimization(builder, [instance])
    return [(n.op_type, optimizer.explain(instance, n)) for n in optimizer.iter_roots(instance)]


def check_no_match(
    text: str | ModelProto, pattern: Any, reason: str | None = None, opset: int = 18
) -> None:
    """Checks that a pattern refuses a model, and that one of the reasons it gives is the expected
    one.

    :param text: model or graph
    :param pattern: the pattern
    :param reason: regular expression searched in the reasons
    :param opset: main opset if the text is a graph
    :raises PatternTestError: it matches, or gives other reasons
    """
    model = model_from_text(text, opset) if isinstance(text, str) else text
    found = reasons_of(model, pattern)
    matches = [r for _, r in found if r.startswith("MatchResult")]
    if matches:
        raise PatternTestError(f"the pattern matches: {matches[0]}")
    if reason is not None and not any(re.search(reason, r) for _, r in found):
        raise PatternTestError(f"no rejection for {reason!r}, reasons are {found}")


__all__ = [
    "PatternTestError",
    "canonical_graph",
    "check_no_match",
    "check_pattern",
    "compare_models",
    "model_from_text",
    "reasons_of",
]
