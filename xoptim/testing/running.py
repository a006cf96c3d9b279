"""Runs models on random inputs under onnxruntime and the reference evaluator, compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx.helper as oh
from onnx import ModelProto, TensorProto

from xbuilder import GraphBuilder
from xbuilder.dims import evaluate, symbols
from xbuilder.dims.scope import as_written
from xbuilder.runtimes.reference import reference_evaluator
from xbuilder.runtimes.sessions import plain_session

from ..trust.sessions.session_child import ArraySession
from .models import PatternTestError

#: whether two arrays are equal as far as a rewrite is concerned
ValuesEqual: TypeAlias = Callable[[Any, Any], bool]

#: sizes given to symbols, one row per run
SIZES = ((3, 4, 5, 6, 7, 8), (2, 6, 3, 5, 4, 9))


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


def size_tables(model: ModelProto, sizes: Any) -> list[dict[str, int]]:
    """Sizes of the symbols of a model, one table per run: those given, or two default ones."""
    if sizes is not None:
        return [dict(s) for s in (sizes if isinstance(sizes, (list, tuple)) else [sizes])]
    builder = GraphBuilder(model)
    names: dict[str, None] = {}
    for info in builder.input_specs:
        for d in builder.facts[info.name].shape or ():
            if isinstance(d, str):
                names.update(dict.fromkeys(sorted(symbols(as_written(d)))))
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
        # a name that looks like a formula proves nothing, but the sizes given for it are right
        dims = [as_written(d) if isinstance(d, str) else d for d in facts.shape or ()]
        shape = [evaluate(d, sizes) if isinstance(d, str) else d for d in dims]
        feeds[spec.name] = random_array(facts.type, shape, rng)
    return feeds


def run_onnxruntime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Outputs of a model under onnxruntime, its own optimizations disabled."""
    return ArraySession(plain_session(model.SerializeToString())).run(None, feeds)


def run_reference(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Outputs of a model under onnx's reference evaluator."""
    outputs = reference_evaluator(model).run(None, dict(feeds))
    return list(outputs.values()) if isinstance(outputs, dict) else outputs


def assert_same_outputs(
    expected: Sequence[Any],
    got: Sequence[Any],
    atol: float,
    rtol: float,
    where: str,
    equal: ValuesEqual | None = None,
) -> None:
    """Compares outputs: types, shapes, values (NaN equal to NaN).

    :param expected: outputs
    :param got: other ones
    :param atol: absolute tolerance
    :param rtol: relative tolerance
    :param where: the model and the runtime, for the message
    :param equal: compares two arrays, instead of the tolerances
    :raises PatternTestError: they differ
    """
    if len(expected) != len(got):
        raise PatternTestError(f"{where}: {len(expected)} outputs before, {len(got)} after")
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        if isinstance(a, list):
            assert_same_outputs(a, b, atol, rtol, f"{where}[{i}]", equal)
            continue
        a, b, allowed = np.asarray(a), np.asarray(b), ""
        if a.dtype != b.dtype or a.shape != b.shape:
            raise PatternTestError(
                f"{where}, output {i}: {a.dtype}{a.shape} before, {b.dtype}{b.shape} after"
            )
        if equal is not None:
            same = bool(equal(a, b))
            where = where if same else f"{where}, values_eq_approx"
        elif a.dtype.kind not in "fc" and a.dtype.kind != "V":
            same = bool((a == b).all())
        else:
            wide_a, wide_b = (v.astype(np.float64) if v.dtype.kind != "c" else v for v in (a, b))
            same = np.allclose(wide_a, wide_b, atol=atol, rtol=rtol, equal_nan=True)
            allowed = f", atol={atol:g} and rtol={rtol:g} are allowed"
        if not same:
            raise PatternTestError(f"{where}, output {i}: values differ{allowed}\n{a}\n{b}")


def compare_models(
    before: ModelProto,
    after: ModelProto,
    feeds: Iterable[Mapping[str, np.ndarray]],
    atol: float = 0.0,
    rtol: float = 0.0,
    reference: bool = True,
    runtime: bool = True,
    equal: ValuesEqual | None = None,
) -> None:
    """Compares the outputs of two models on several inputs, see :func:`assert_same_outputs`.

    :raises PatternTestError: they differ
    """
    custom = any(n.domain not in ("", "ai.onnx.ml") for m in (before, after) for n in m.graph.node)
    for feed in feeds:
        if runtime:
            expected = run_onnxruntime(before, feed)
            got = run_onnxruntime(after, feed)
            assert_same_outputs(expected, got, atol, rtol, "onnxruntime", equal)
        if reference and not custom:
            expected = run_reference(before, feed)
            got = run_reference(after, feed)
            assert_same_outputs(expected, got, atol, rtol, "reference", equal)
