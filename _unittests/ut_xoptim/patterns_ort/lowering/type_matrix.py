"""The one-node models of onnx's backend tests in the newest opset, with sizes that are not known, in
other types: which of them onnxruntime loads, before and after it is optimized, and whether what loads
is right beside the reference of onnx.

``python -m ut_xoptim.patterns_ort.lowering.type_matrix`` prints the table, in some minutes, from the
folder ``_unittests``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
from onnx import ModelProto, TensorProto
from ut_xbuilder.backend_cases import data_sets, node_cases, symbolic
from ut_xoptim.whole_models.opset_matrix import at_opset

from xbuilder.errors import PatternError
from xbuilder.operators.op_traits import HALF_FLOATS, having
from xbuilder.operators.opsets import newest_opset
from xbuilder.runtimes.sessions import plain_session
from xoptim.linting.findings import NO_KERNEL
from xoptim.linting.model_check import check_model
from xoptim.testing import assert_same_outputs, optimize_with, run_onnxruntime, run_reference

#: types the floats of a model become, with the largest difference
KINDS: dict[str, float] = {"FLOAT": 1e-4, "DOUBLE": 1e-9, "FLOAT16": 1e-2, "BFLOAT16": 8e-2}
RANDOM = having("random") | {"Dropout"}
LOADS, MENDED, WRONG, MISSING = "loads", "loads now", "wrong", "does not load"
#: a model that loads now and has no reference to compare with
UNCOMPARED = "loads now, not compared"
KINDS_OF_CELLS = (LOADS, MENDED, UNCOMPARED, WRONG, MISSING)


@dataclass(frozen=True)
class Variant:
    """A model of one node whose floats have another type."""

    name: str
    op_type: str
    kind: str
    model: ModelProto
    feeds: Mapping[str, Any]
    #: the model in float, whose results are expected from halves: sums of the reference lose digits
    wide: ModelProto | None = None


def variants(kinds: Mapping[str, float] = KINDS) -> Iterator[Variant]:
    """Enumerates the models that the definitions allow.

    :param kinds: the types
    """
    for name, case in sorted(node_cases().items()):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain or case.model.functions:
            continue
        feeds, _ = next(iter(data_sets(case)), ({}, {}))
        seen = set()
        wide = converted(case.model, feeds, TensorProto.FLOAT)
        for kind in kinds:
            model = converted(case.model, feeds, TensorProto.DataType.Value(kind))
            content = b"" if model is None else model.SerializeToString()
            if model is not None and content not in seen:
                seen.add(content)
                values = {n: _converted_value(v, kind) for n, v in feeds.items()}
                yield Variant(name, nodes[0].op_type, kind, model, values, wide)


def _converted_value(value: Any, kind: str) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        if kind == "FLOAT16":  # the reference has no integer for an infinity
            value = np.asarray(value.clip(-65504, 65504))
        with np.errstate(over="ignore"):
            return value.astype(oh.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind)))
    return value


def converted(model: ModelProto, feeds: Mapping[str, Any], kind: int) -> ModelProto | None:
    """A model with another type and names for sizes, None if the newest definition refuses it."""
    newest = at_opset(model, newest_opset())
    copy, _ = symbolic(newest, dict(feeds), "own")
    for value in (*copy.graph.input, *copy.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = kind
    for attribute in copy.graph.node[0].attribute:
        if attribute.t.data_type == TensorProto.FLOAT:
            array = onh.to_array(attribute.t).astype(oh.tensor_dtype_to_np_dtype(kind))
            attribute.t.CopyFrom(onh.from_array(array))
    try:
        onnx.checker.check_model(newest)
        onnx.shape_inference.infer_shapes(copy, check_type=True, strict_mode=True)
    except Exception:
        return None
    return copy


def judge(variant: Variant, patterns: str = "default+onnxruntime") -> tuple[str, str]:
    """The outcome for a model, and the message of a failure."""
    if not failure_of(variant.model):
        return LOADS, ""
    try:
        found, _, _ = optimize_with(variant.model, patterns)
    except PatternError as error:  # the rewrite is accused
        return WRONG, str(error)
    failure = failure_of(found)
    if failure:
        return MISSING, failure
    if variant.op_type in RANDOM:
        return UNCOMPARED, ""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = _expected(variant)
    except Exception as error:
        return UNCOMPARED, str(error)
    atol = _largest_difference(variant)
    try:
        assert_same_outputs(expected, run_onnxruntime(found, variant.feeds), atol, atol, "")
    except Exception as error:
        if _is_of_the_kernel(variant, found, atol):
            return UNCOMPARED, f"onnxruntime computes it in float as well: {error}"
        return WRONG, str(error)
    return MENDED, ""


def _is_of_the_kernel(variant: Variant, found: ModelProto, atol: float) -> bool:
    """Whether onnxruntime gives, rounded, what its kernel for float gives: it is the kernel that
    differs from the reference, that of MaxUnpool with the shape of its result for instance."""
    if variant.wide is None or failure_of(variant.wide):
        return False
    floats = {v.name for v in variant.wide.graph.input if v.type.tensor_type.elem_type == 1}
    wide = {n: v.astype(np.float32) if n in floats else v for n, v in variant.feeds.items()}
    expected = _rounded(variant, run_onnxruntime(variant.wide, wide))
    try:
        assert_same_outputs(expected, run_onnxruntime(found, variant.feeds), atol, atol, "")
    except AssertionError:
        return False
    return True


def _largest_difference(variant: Variant) -> float:
    """That of the type, or of a type the model had already, which is not changed."""
    graph = variant.model.graph
    types = {v.type.tensor_type.elem_type for v in (*graph.input, *graph.output)}
    names = {variant.kind, *map(TensorProto.DataType.Name, types)}
    return max(KINDS.get(name, 0.0) for name in names)


def _expected(variant: Variant) -> list[Any]:
    """The results of the reference; in float for halves, then rounded."""
    if variant.wide is None or variant.kind not in ("FLOAT16", "BFLOAT16"):
        return run_reference(variant.model, variant.feeds)
    half = oh.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(variant.kind))
    if all(getattr(v, "dtype", None) != half for v in variant.feeds.values()):
        return run_reference(variant.model, variant.feeds)
    is_half = {n: getattr(v, "dtype", None) == half for n, v in variant.feeds.items()}
    feeds = {n: v.astype(np.float32) if is_half[n] else v for n, v in variant.feeds.items()}
    return _rounded(variant, run_reference(variant.wide, feeds))


def _rounded(variant: Variant, found: list[Any]) -> list[Any]:
    """Results in float, in the type that each result of the model has."""
    types = [o.type.tensor_type.elem_type for o in variant.model.graph.output]
    return [
        v.astype(oh.tensor_dtype_to_np_dtype(t)) if t in HALF_FLOATS else v
        for v, t in zip(found, types, strict=True)
    ]


def failure_of(model: ModelProto) -> str:
    try:
        plain_session(model.SerializeToString())
    except Exception as error:
        return str(error)
    return ""


def reason_of(model: ModelProto) -> str:
    """The reason why a model does not load, as `xoptim check` finds it, empty if it finds none."""
    found = [f for f in check_model(model).findings if f.code in NO_KERNEL or f.code == "X108"]
    if not found:
        return ""
    advice = found[0].advice.split("; ")[0]
    if found[0].code == "X108":
        return "a locale is not installed"
    if "refuses" in found[0].message:
        return "the attributes are refused"
    if advice.startswith("no opset has one for these types"):
        return "no kernel in these types"
    return "no kernel in any type" if advice == "no opset has one" else "no kernel in this opset"


def main() -> None:
    """Judges the models, prints the table by type, what does not load by operator and by reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--step", type=int, default=1, help="one model in STEP")
    parser.add_argument("--patterns", default="default+onnxruntime")
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    every = variants({kind: KINDS[kind] for kind in arguments.kinds})
    for i, variant in enumerate(every):
        if i % arguments.step == 0:
            cell, message = judge(variant, arguments.patterns)
            counts[variant.kind][cell] += 1
            rows[cell, variant.kind][variant.op_type] += 1
            if cell == MISSING:
                reasons[reason_of(variant.model)][f"{variant.op_type} {variant.kind}"] += 1
            if cell == WRONG:
                print(f"{variant.name} in {variant.kind}: {message}"[:300], flush=True)
    print("type", *KINDS_OF_CELLS, sep=" | ")
    for kind, found in counts.items():
        print(kind, *(found[cell] for cell in KINDS_OF_CELLS), sep=" | ")
    for (cell, kind), operators in sorted(rows.items()):
        if cell != LOADS:
            names = " ".join(f"{op} {n}" for op, n in sorted(operators.items()))
            print(f"{cell}, {kind}: {names}")
    for reason, found in sorted(reasons.items()):
        names = ", ".join(f"{name} {n}" for name, n in sorted(found.items()))
        print(f"{found.total()} models, {reason or 'check finds nothing'}: {names}")


if __name__ == "__main__":
    sys.exit(main())
