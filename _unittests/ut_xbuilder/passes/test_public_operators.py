"""Operators only onnxruntime knows are announced, or not written."""

from __future__ import annotations

import onnx
import pytest
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes.public_operators import is_public, private_operators

RMS = parse(
    """agraph (float[a,8] x) => (float[a,8] y) <int64[1] axes = {-1}, float e = {1e-5}> {
        q = Mul(x, x)
        m = ReduceMean<keepdims=1>(q, axes)
        v = Add(m, e)
        s = Sqrt(v)
        y = Div(x, s)
    }"""
)
PRIVATE = "SimplifiedLayerNormalization"


@pytest.mark.parametrize(
    "op_type,domain,opset,expected",
    [
        ("Add", "", None, True),
        (PRIVATE, "", None, False),
        ("LayerNormalization", "", None, True),
        ("LayerNormalization", "", 17, True),
        ("LayerNormalization", "", 16, False),
        ("TreeEnsemble", "ai.onnx.ml", 5, True),
        ("TreeEnsemble", "ai.onnx.ml", 3, False),
        ("Nothing", "ai.onnx.ml", None, False),
        ("Nothing", "com.microsoft", 1, True),
    ],
)
def test_is_public(op_type: str, domain: str, opset: int | None, expected: bool) -> None:
    assert is_public(op_type, domain, opset) == expected


def optimized(model: onnx.ModelProto, **options: object) -> tuple[onnx.ModelProto, list[str]]:
    """The model, and what the rows announce."""
    chosen = OptimizationOptions(patterns="default+onnxruntime", **options)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=chosen)
    after, rows = builder.to_onnx(return_optimize_report=True)
    told = [str(row["pattern"]) for row in rows if "onnx.checker" in str(row["pattern"])]
    return after, told


def test_what_the_checker_refuses_is_announced_once() -> None:
    after, told = optimized(RMS)
    assert PRIVATE in {n.op_type for n in after.graph.node}
    assert len(told) == 1 and told[0].startswith(f"patterns: {PRIVATE} is known to onnxruntime")
    assert private_operators(GraphBuilder(after).graph) == {PRIVATE: 1}
    assert optimized(after)[1] == [], "the model had it"


def test_an_option_keeps_to_public_operators() -> None:
    after, told = optimized(RMS, public_operators=True)
    assert PRIVATE not in {n.op_type for n in after.graph.node} and told == []
    onnx.checker.check_model(after, full_check=True)


def test_an_opset_that_has_the_operator_writes_it() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(RMS)
    model.opset_import[0].version = 23
    after, told = optimized(model)
    assert [n.op_type for n in after.graph.node] == ["RMSNormalization"] and told == []
    onnx.checker.check_model(after, full_check=True)
