"""Nodes that a pattern of a user may add to a graph."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import NegNeg

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord
from xoptim.engine.guards.valid_nodes import check_new_node
from xoptim.testing import model_from_text

TEXT = "agraph (float[4] X) => (float[4] Y) { n = Neg(X) Y = Neg(n) }"

#: a branch with an operator that does not exist
BRANCH = oh.make_graph(
    [oh.make_node("Reluu", ["X"], ["r"])], "branch", [], [oh.make_tensor_value_info("r", 1, [4])]
)


def rewrite(op_type: str, n_inputs: int = 1, opset: int = 18, **kwargs: Any) -> onnx.ModelProto:
    """Two Neg become one node of another operator."""

    class Maker(NegNeg):
        def apply(self, g: Any, first: onnx.NodeProto, second: onnx.NodeProto) -> Any:
            inputs = [first.input[0]] * n_inputs
            return [g.make_node(op_type, inputs, [second.output[0]], **kwargs)]

    options = OptimizationOptions(patterns=[Maker()])
    model = model_from_text(TEXT, opset=opset)
    return GraphBuilder(model, optimization_options=options).to_onnx()


@pytest.mark.parametrize(
    "op_type, n_inputs, opset, kwargs, reason",
    [
        (
            "RMSNormalization",
            2,
            18,
            {},
            "opset 18 .*has no operator 'RMSNormalization'; set min_opset",
        ),
        ("Gelu", 1, 19, {}, "opset 19 .*has no operator 'Gelu'"),
        ("Tanspose", 1, 18, {}, "no operator 'Tanspose'; did you mean Transpose"),
        ("Neg", 2, 18, {}, r"not valid. Node Neg\(X, X\) -> Y has 2 input"),
        ("Add", 1, 18, {}, "not valid. .* has 1 input"),
        ("Relu", 1, 18, {"foo": 3}, "attribute 'foo', which operator 'Relu' .*it has none"),
        ("LeakyRelu", 1, 18, {"alpha": "a"}, "'alpha' must be of type FLOAT, not STRING"),
        ("Concat", 2, 18, {}, "Concat.* attribute 'axis' is missing"),
        ("Foo", 1, 18, {"domain": "ai.onnx.ml"}, "domain 'ai.onnx.ml' has no operator 'Foo'"),
        ("Scaler", 2, 18, {"domain": "ai.onnx.ml"}, "not valid. .* has 2 input"),
        ("Gemm", 2, 18, {}, "'X' has rank 1; Gemm expects rank 2"),
        ("If", 1, 18, {"then_branch": BRANCH, "else_branch": BRANCH}, "no operator 'Reluu'"),
    ],
)
def test_refused(
    op_type: str, n_inputs: int, opset: int, kwargs: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PatternError, match=f"(?s)Pattern Maker makes .*{reason}"):
        rewrite(op_type, n_inputs, opset, **kwargs)


@pytest.mark.parametrize(
    "op_type, n_inputs, opset, kwargs",
    [
        ("Abs", 1, 18, {}),
        ("Gelu", 1, 20, {}),
        ("SimplifiedLayerNormalization", 2, 18, {}),
        ("LayerNormalization", 2, 16, {}),
        ("Anything", 3, 18, {"domain": "custom"}),
        ("FastGelu", 1, 18, {"domain": "com.microsoft"}),
    ],
)
def test_accepted(op_type: str, n_inputs: int, opset: int, kwargs: dict[str, str]) -> None:
    """Operators of onnxruntime in the main domain and other domains are not judged."""
    model = rewrite(op_type, n_inputs, opset, **kwargs)
    assert [n.op_type for n in model.graph.node] == [op_type]


def test_what_the_model_does_is_not_valid_elsewhere() -> None:
    """An attribute the operator does not have is accepted where the model already writes it, and
    only there."""
    builder = GraphBuilder(model_from_text(TEXT))
    nodes = [oh.make_node("Softsign", ["X"], [name], mine=1) for name in ("a", "b")]
    old, new = (NodeRecord(node, 0, 0) for node in nodes)
    check_new_node(builder.graph, new, "Maker", [old])
    with pytest.raises(PatternError, match="attribute 'mine'"):
        check_new_node(builder.graph, new, "Maker")
