"""Every single-node model of onnx's backend tests goes through the shape functions.

The facts are compared with the real outputs stored in the test suite, with several degrees of
knowledge on the inputs, from everything (constants) to the rank only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from ut_xbuilder.shapes.shape_cases import NewDims, differences, python_attributes, run

from xbuilder.dims import Constraints
from xbuilder.facts.facts import ResultFacts
from xbuilder.nodes.record import NodeRecord
from xbuilder.shapes import ShapeContext, array_facts, get_shape_function
from xbuilder.shapes.context import FactSources
from xbuilder.shapes.moving.creation import type_of_array
from xbuilder.shapes.moving.sequence import facts_of_type_proto

#: operators with subgraphs are not the business of shape functions
SUBGRAPHS = {"If", "Loop", "Scan", "SequenceMap"}

#: outputs that depend on the data, whatever is known before running the node
DATA_DEPENDENT = {
    "ImageDecoder",
    "NonMaxSuppression",
    "NonZero",
    "StringNormalizer",
    "StringSplit",
    "Unique",
}

Case = tuple[str, ModelProto, list[Any], list[Any]]


@cache
def cases() -> dict[str, list[Case]]:
    """Single-node models and their data, by operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    result: dict[str, list[Case]] = {}
    for test in tests:
        if test.model is None or len(test.model.graph.node) != 1:
            continue
        op_type = test.model.graph.node[0].op_type
        if op_type in SUBGRAPHS:
            continue
        for inputs, outputs in test.data_sets:
            result.setdefault(op_type, []).append((test.name, test.model, inputs, outputs))
    return result


def tensor_facts(
    array: np.ndarray, name: str, level: str, sizes: dict[str, int], op_type: str
) -> ResultFacts:
    """The facts of an input at a given level.

    A null element has a meaning of its own for Reshape, it does not become a symbol.
    """
    facts = array_facts(array)
    if level in ("constant", "static"):
        return facts if level == "constant" else ResultFacts(facts.type, facts.shape)
    if level == "rank":
        return ResultFacts(facts.type, None, array.ndim)
    if level == "nothing":
        return ResultFacts(facts.type)
    shape = []
    for axis, size in enumerate(array.shape):
        symbol = f"d{size}" if level == "shared" else f"{name}_{axis}"
        sizes[symbol] = size
        shape.append(symbol)
    value = facts.value
    if value is not None:
        keeps_zero = op_type == "Reshape"
        value = _symbolic(facts, name, level, sizes, int(keeps_zero))
        return ResultFacts(facts.type, facts.shape, None, value)
    return ResultFacts(facts.type, tuple(shape))


def _symbolic(facts: ResultFacts, name: str, level: str, sizes: dict[str, int], lowest: int) -> Any:
    """Integers not below *lowest* become symbols at level *content*."""
    if level != "content" or facts.type == 9:
        return facts.value
    many = isinstance(facts.value, tuple)
    items = []
    for i, item in enumerate(facts.value if many else (facts.value,)):
        symbol = f"{name}_v{i}"
        if item >= lowest:
            sizes[symbol] = item
        items.append(symbol if item >= lowest else item)
    return tuple(items) if many else items[0]


def declared_facts(proto: TypeProto, data: Any) -> ResultFacts:
    """Facts of an input that is not a tensor, from its declaration."""
    return facts_of_type_proto(proto)


def context(case: Case, level: str, sizes: dict[str, int]) -> ShapeContext:
    """Context of the node of a case."""
    _, model, inputs, _ = case
    node = model.graph.node[0]
    facts, constants = {}, {}
    for value_info, data in zip(model.graph.input, inputs, strict=False):
        name = value_info.name
        if isinstance(data, (list, type(None))) or not value_info.type.HasField("tensor_type"):
            facts[name] = declared_facts(value_info.type, data)
            continue
        array = numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)
        facts[name] = tensor_facts(array, name, level, sizes, node.op_type)
        shape_like = array.ndim <= 1 and type_of_array(array) in (6, 7, 9)
        if level == "constant" or (level in ("symbolic", "shared") and not shape_like):
            constants[name] = array
    opset = {d.domain: d.version for d in model.opset_import}
    sources = FactSources(
        lambda name: facts.get(name, ResultFacts()),
        lambda name: constants.get(name) if level == "constant" else None,
        lambda _: python_attributes(node),
        NewDims(),
        Constraints(),
    )
    return ShapeContext(NodeRecord(node, 0, 0), opset[node.domain], sources)


def check(case: Case, level: str) -> Iterator[str]:
    """Yields what is wrong for a case."""
    name, model, _, outputs = case
    sizes: dict[str, int] = {}
    ctx = context(case, level, sizes)
    strict = level == "constant" and ctx.op_type not in DATA_DEPENDENT
    answer = run(ctx)
    named = [i for i, output in enumerate(model.graph.node[0].output) if output]
    for i, real in zip(named, outputs, strict=False):
        try:
            found = differences(answer[i], real, sizes, strict)
        except Exception as e:
            found = [f"{type(e).__name__}: {e}"]
        for message in found:
            yield f"{name}[{level}] output {i}: {message}"


LEVELS = ("constant", "static", "symbolic", "shared", "content", "rank", "nothing")


@pytest.mark.parametrize("level", LEVELS)
def test_backend_nodes(level: str) -> None:
    """No fact contradicts a real result, and constants are enough to know everything."""
    wrong, count = [], 0
    for op_type, rows in cases().items():
        for case in rows:
            node, opsets = case[1].graph.node[0], case[1].opset_import
            version = next(d.version for d in opsets if d.domain == node.domain)
            if get_shape_function(node.domain, op_type, version) is None:
                wrong.append(f"{case[0]}: {op_type} is not registered")
                continue
            count += 1
            try:
                wrong.extend(check(case, level))
            except Exception as e:
                wrong.append(f"{case[0]}[{level}]: {type(e).__name__}: {e}")
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:200])
    assert count > 1400, f"only {count} models were checked"
