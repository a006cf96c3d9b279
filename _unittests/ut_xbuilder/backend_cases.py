"""The node tests of the onnx package: models, inputs and expected outputs, as numpy sees them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import ModelProto, TensorProto

from xbuilder import GraphBuilder
from xoptim.testing import run_onnxruntime, run_reference


@lru_cache(maxsize=1)
def node_cases() -> dict[str, Any]:
    """Every node test of the onnx package by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


def to_numpy(value: Any) -> Any:
    """A tensor as an array, anything else as it is."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def data_sets(case: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Inputs and expected outputs of a test by name."""
    graph = case.model.graph
    for inputs, outputs in case.data_sets:
        yield (
            {i.name: to_numpy(x) for i, x in zip(graph.input, inputs, strict=False)},
            {o.name: to_numpy(x) for o, x in zip(graph.output, outputs, strict=False)},
        )


def contradictions(builder: GraphBuilder, values: dict[str, Any]) -> list[str]:
    """What the builder states and the values of a run contradict."""
    rows: list[str] = []
    for name, value in values.items():
        facts = builder.facts.get(name)
        if value is None or isinstance(value, (list, dict)) or facts.sequence or facts.optional:
            continue
        array = np.asarray(value)
        if facts.type and array.dtype.kind not in "OUS":
            found = oh.np_dtype_to_tensor_dtype(array.dtype)
            if found != facts.type:
                rows.append(f"type of {name}: {facts.type} stated, {found} found")
        rank = facts.known_rank()
        if rank is not None and rank != array.ndim:
            rows.append(f"rank of {name}: {facts} stated, {array.shape} found")
            continue
        for stated, found in zip(facts.shape or (), array.shape, strict=False):
            if isinstance(stated, int) and stated != found:
                rows.append(f"shape of {name}: {facts.shape} stated, {array.shape} found")
        if facts.value is not None:
            content = facts.value if isinstance(facts.value, tuple) else (facts.value,)
            for stated, found in zip(content, array.ravel().tolist(), strict=True):
                if isinstance(stated, int) and stated != found:
                    rows.append(f"content of {name}: {facts.value} stated, {array} found")
    return rows


def with_every_result(model: ModelProto) -> ModelProto:
    """The model returning every result of its main graph."""
    copy = ModelProto()
    copy.CopyFrom(model)
    known = {o.name for o in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in known:
                copy.graph.output.append(oh.make_empty_tensor_value_info(name))
    return copy


def run(model: ModelProto, feeds: dict[str, Any]) -> tuple[str, list[Any]] | None:
    """Outputs and the runtime that computed them: onnxruntime, else the reference evaluator."""
    for name, function in (("onnxruntime", run_onnxruntime), ("reference", run_reference)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return name, function(model, feeds)
        except Exception:
            continue
    return None
