"""Rewrites keep the documentation and the metadata of the nodes they replace."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import MatchResult, PatternOptimization
from xoptim.testing import model_from_text

PRODUCT = "g (float[a, 3] x, float[3, 4] w, float[4] b) => (float[a, 4] y) { t = MatMul(x, w) y = Add(t, b) }"


def said(node: NodeProto) -> tuple[str, dict[str, str]]:
    return node.doc_string, {p.key: p.value for p in node.metadata_props}


def say(node: NodeProto, doc: str = "", **props: str) -> None:
    node.doc_string = doc
    for key, value in props.items():
        node.metadata_props.append(onnx.StringStringEntryProto(key=key, value=value))


def optimize(model: ModelProto, patterns: object) -> ModelProto:
    options = OptimizationOptions(patterns=patterns)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    return builder.to_onnx()


@pytest.mark.parametrize(
    "product,total,expected",
    [
        (("", {}), ("", {}), ("", {})),
        (("", {}), ("sum", {"k": "2"}), ("sum", {"k": "2"})),
        (("product", {"k": "1"}), ("", {}), ("product", {"k": "1"})),
        (
            ("product", {"k": "1", "l": "3"}),
            ("sum", {"k": "2"}),
            ("sum", {"k": "2", "l": "3"}),
        ),
    ],
)
def test_mat_mul_add(product: tuple, total: tuple, expected: tuple) -> None:
    """Add(MatMul) -> Gemm: what the Add says first, then what the MatMul says."""
    model = model_from_text(PRODUCT)
    for node, (doc, props) in zip(model.graph.node, (product, total), strict=True):
        say(node, doc, **props)
    (node,) = optimize(model, "MatMulAdd").graph.node
    assert node.op_type == "Gemm" and said(node) == expected


class ReluTwice(PatternOptimization):
    """Relu(Relu(x)) -> Relu(x), written by hand; the node says something itself or not."""

    def __init__(self, doc: str = ""):
        super().__init__()
        self.doc = doc

    def match(self, g, node, matched):
        before = g.node_before(node.input[0]) if node.op_type == "Relu" else None
        if before is None or before.op_type != "Relu":
            return self.none()
        return MatchResult(self, [before, node], self.apply)

    def apply(self, g, before, node):
        return [g.make_node("Relu", [before.input[0]], [node.output[0]], doc_string=self.doc)]


@pytest.mark.parametrize("doc,expected", [("", "second"), ("mine", "mine")])
def test_a_rewrite_written_by_hand(doc: str, expected: str) -> None:
    """The documentation a rewrite writes itself is kept."""
    model = model_from_text("g (float[a] x) => (float[a] y) { t = Relu(x) y = Relu(t) }")
    say(model.graph.node[0], "first", k="1")
    say(model.graph.node[1], "second")
    (node,) = optimize(model, [ReluTwice(doc)]).graph.node
    assert said(node) == (expected, {"k": "1"})
