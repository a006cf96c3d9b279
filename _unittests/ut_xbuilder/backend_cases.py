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

from xbuilder import GraphBuilder, ResultFacts
from xbuilder.dims import Dim, DimensionError, evaluate, symbols
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


#: how the dimensions of the inputs of a model become symbols, see :func:`symbolic`
VARIANTS = ("own", "shared", "constant")


def symbolic(
    model: ModelProto, feeds: dict[str, Any], variant: str
) -> tuple[ModelProto, dict[str, int]]:
    """The same model with symbolic inputs; nothing is declared about its results.

    :param model: model whose inputs are declared
    :param feeds: values of the inputs
    :param variant: "own" gives every dimension its symbol, "shared" one symbol to all those of the
        same size, "constant" is "own" where small vectors are initializers
    :return: the model, and the sizes of the symbols
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    sizes: dict[str, int] = {}
    constants: list[str] = []
    for i, declared in enumerate(copy.graph.input):
        value = feeds.get(declared.name)
        if not isinstance(value, np.ndarray) or not declared.type.HasField("tensor_type"):
            continue
        if variant == "constant" and value.ndim <= 1 and value.dtype.kind in "iufb":
            copy.graph.initializer.append(onnx.numpy_helper.from_array(value, declared.name))
            constants.append(declared.name)
        shape = declared.type.tensor_type.shape
        shape.ClearField("dim")
        for axis, size in enumerate(value.shape):
            symbol = f"n{size}" if variant == "shared" else f"s{i}_{axis}"
            sizes[symbol] = size
            shape.dim.add().dim_param = symbol
    kept = [declared for declared in copy.graph.input if declared.name not in constants]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    return copy, sizes


class StatedFacts:
    """Facts of a builder at the sizes of a run.

    A symbol the builder made gets the first size it meets, it must have it everywhere.

    :param builder: builder
    :param sizes: sizes of the symbols of the inputs
    """

    def __init__(self, builder: GraphBuilder, sizes: dict[str, int]):
        self.builder = builder
        self.sizes = dict(sizes)

    def at_run_time(self, dim: Dim) -> int | str | None:
        """Value of an expression, None if it is not known, a message if it has none."""
        try:
            return evaluate(dim, self.sizes)
        except DimensionError as error:
            return str(error) if symbols(dim) <= self.sizes.keys() else None

    def bind(self, stated: Dim, found: int) -> None:
        """Gives its size to a symbol."""
        alone = isinstance(stated, str) and symbols(stated) == {stated}
        if alone and self.builder.is_generated(stated):
            self.sizes.setdefault(stated, found)

    def differences(self, what: str, facts: ResultFacts, array: np.ndarray) -> list[str]:
        """The contradictions between facts and a real array."""
        found_type = 0
        if array.dtype.kind not in "OUS":
            found_type = oh.np_dtype_to_tensor_dtype(array.dtype)
        if facts.type and found_type and found_type != facts.type:
            return [f"type of {what}: {facts.type} stated, {found_type} found"]
        rank = facts.known_rank()
        if rank is not None and rank != array.ndim:
            return [f"rank of {what}: {facts} stated, {array.shape} found"]
        pairs = list(zip(facts.shape or (), array.shape, strict=False))
        if facts.value is not None:
            content = facts.value if isinstance(facts.value, tuple) else (facts.value,)
            if len(content) != array.size:
                return [f"content of {what}: {facts} stated, {array} found"]
            pairs.extend(zip(content, array.ravel().tolist(), strict=True))
        for stated, found in pairs:
            self.bind(stated, found)
        return [
            f"{what}: {stated!r} is {self.at_run_time(stated)} in {facts}, {found} found"
            for stated, found in pairs
            if self.at_run_time(stated) not in (None, found)
        ]


def contradictions(
    builder: GraphBuilder, values: dict[str, Any], sizes: dict[str, int] | None = None
) -> list[str]:
    """The contradictions between the builder and the values of a run.

    :param builder: builder
    :param values: values of the results by name
    :param sizes: sizes of the symbols of the inputs
    """
    rows: list[str] = []
    stated = StatedFacts(builder, sizes or {})
    # a symbol may be in an expression before the result it is bound to
    for _ in range(2):
        rows.clear()
        for name, value in values.items():
            facts = builder.facts[name]
            facts = facts.optional or facts
            if value is None or isinstance(value, dict):
                continue
            if not isinstance(value, list):
                rows.extend(stated.differences(name, facts, np.asarray(value)))
            elif facts.sequence is not None and facts.sequence.sequence is None:
                for item in filter(lambda v: v is not None, value):
                    array = np.asarray(to_numpy(item))
                    rows.extend(stated.differences(f"{name}[...]", facts.sequence, array))
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
