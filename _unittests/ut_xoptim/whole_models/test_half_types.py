"""The whole set on models of 16 bits: an operator without kernel for them is never written."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import ModelProto, TensorProto
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented

from xbuilder import GraphBuilder
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.sessions import plain_session
from xoptim.testing import (
    assert_same_outputs,
    make_feeds,
    model_from_text,
    optimize_with,
    run_onnxruntime,
    table_rows,
)
from xoptim.testing.running import size_tables

TESTS = Path(__file__).resolve().parents[1] / "patterns_ort"
_FLOAT = re.compile(r"\bfloat\b(?=[\s\[])")


@cache
def models() -> dict[str, tuple[str, int]]:
    """The models that tests of patterns for onnxruntime rewrite: name -> (text, opset)."""
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        module = import_module(
            ".".join(["ut_xoptim", *path.relative_to(TESTS.parent).with_suffix("").parts])
        )
        table: dict[str, Any] = getattr(module, "MODELS", {})
        # texts alone are models of something else
        for pattern, case, row in table_rows(
            {k: v for k, v in table.items() if type(v) is not str}
        ):
            options = row[2] if len(row) > 2 else {}
            if isinstance(row[0], str) and _FLOAT.search(row[0]):
                found[f"{pattern} {case}".strip()] = row[0], options.get("opset", 18)
    return found


def converted(name: str, kind: int) -> ModelProto:
    """A model where every float becomes another type."""
    model = model_from_text(*models()[name])
    graph = model.graph
    for value in (*graph.input, *graph.output):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type == TensorProto.FLOAT:
            tensor_type.elem_type = kind
    tensors = [*graph.initializer]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                tensors.append(attribute.t)
            if (
                node.op_type == "Cast"
                and attribute.name == "to"
                and attribute.i == TensorProto.FLOAT
            ):
                attribute.i = kind
    dtype = oh.tensor_dtype_to_np_dtype(kind)
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            with np.errstate(over="ignore"):
                value = onh.to_array(tensor).astype(dtype)
            tensor.CopyFrom(onh.from_array(value, tensor.name))
    return model


def written(before: ModelProto, builder: GraphBuilder) -> list[tuple[str, str, list[int]]]:
    """The nodes of operators there were not: domain, operator, types of the inputs."""
    known = {(node.domain, node.op_type) for node in before.graph.node}
    return [
        (node.domain, node.op_type, [builder.get_type(i) if i else 0 for i in node.input])
        for node in builder.nodes
        if (node.domain, node.op_type) not in known
    ]


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("name", sorted(models()))
def test_kernels(name: str, kind: str) -> None:
    """Every operator that is written has a kernel for its types."""
    before = converted(name, TensorProto.DataType.Value(kind))
    after, _, builder = optimize_with(before, "onnxruntime")
    opsets = {s.domain: s.version for s in after.opset_import}
    table = kernel_table("CPU")
    without = [
        (op_type, types)
        for domain, op_type, types in written(before, builder)
        if not table.runs(op_type, domain, opsets[domain], types)
    ]
    assert without == []


def loads(model: ModelProto) -> bool:
    """Whether onnxruntime accepts a model as it is."""
    try:
        plain_session(model.SerializeToString())
    except (Fail, InvalidGraph, NotImplemented):
        return False
    return True


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("name", sorted(models()))
def test_loads(name: str, kind: str) -> None:
    """A model onnxruntime accepts in 16 bits is accepted afterwards, with the same results in
    float16; it takes no array of bfloat16."""
    before = converted(name, TensorProto.DataType.Value(kind))
    after, _, _ = optimize_with(before, "onnxruntime")
    taken = loads(before)
    assert loads(after) or not taken
    if taken and kind == "FLOAT16":
        feeds = make_feeds(before, size_tables(before, None)[0])
        expected, got = run_onnxruntime(before, feeds), run_onnxruntime(after, feeds)
        assert_same_outputs(expected, got, 2e-2, 2e-2, name)
