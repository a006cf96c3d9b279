"""Shapes of every intermediate result of onnx's backend models that have several nodes.

They are the bodies of the operators onnx defines as functions: graphs that compute shapes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.shapes.shape_cases import differences, propagate

from xbuilder.facts.facts import ResultFacts

#: subgraphs are the business of the builder
SUBGRAPHS = {"If", "Loop", "Scan", "SequenceMap"}


def graph_models() -> list[tuple[str, ModelProto, list[Any]]]:
    """Models with several nodes, tensors as inputs, no subgraph, and one set of inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    return [
        (test.name, test.model, test.data_sets[0][0])
        for test in tests
        if test.model is not None
        and len(test.model.graph.node) > 1
        and not test.model.functions
        and not any(node.op_type in SUBGRAPHS for node in test.model.graph.node)
        and all(i.type.HasField("tensor_type") for i in test.model.graph.input)
    ]


def check_graph(model: ModelProto, inputs: list[Any], symbolic: bool) -> tuple[int, list[str]]:
    """Compares every result, returns how many there are and the differences."""
    facts, sizes, feeds = {}, {}, {}
    for value_info, data in zip(model.graph.input, inputs, strict=True):
        name = value_info.name
        array = numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)
        feeds[name] = array
        dims: tuple[Any, ...] = array.shape
        if symbolic:
            dims = tuple(f"{name}_{i}" for i in range(array.ndim))
            sizes.update(zip(dims, array.shape, strict=True))
        facts[name] = ResultFacts(value_info.type.tensor_type.elem_type, dims)
    names = [output for node in model.graph.node for output in node.output if output]
    complete = ModelProto()
    complete.CopyFrom(model)
    del complete.graph.output[:]
    complete.graph.output.extend(ValueInfoProto(name=name) for name in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = ReferenceEvaluator(complete).run(None, feeds)
    known = propagate(model, facts)
    wrong = [
        f"{name}: {message}"
        for name, real in zip(names, results, strict=True)
        for message in differences(known[name], real, sizes)
    ]
    return len(names), wrong


@pytest.mark.parametrize("symbolic", [False, True])
def test_backend_graphs(symbolic: bool) -> None:
    """No fact contradicts what onnx's reference evaluator computes."""
    count, wrong = 0, []
    for name, model, inputs in graph_models():
        seen, messages = check_graph(model, inputs, symbolic)
        count += seen
        wrong.extend(f"{name} {message}" for message in messages)
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:40])
    assert count > 8000, f"only {count} results were compared"
