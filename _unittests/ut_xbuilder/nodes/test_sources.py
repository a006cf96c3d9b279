"""The source of a node in a torch model, in its metadata."""

from __future__ import annotations

import pytest
from onnx import NodeProto

from xbuilder.nodes.sources import (
    CLASSES,
    FUSED,
    NAMESPACE,
    SCOPES,
    TRACE,
    NodeMetadata,
    NodeSource,
    complete_metadata,
    fused_labels,
    fused_metadata,
    move_sources,
    source_of,
    write_source,
)

LINE = 'File "model.py", line 3, in forward\n    return self.up(x)'
UP = NodeSource(
    ("", "mlp", "mlp.up", "linear"), ("M", "Mlp", "Linear", "aten.linear.default"), LINE
)


def node_from(source: NodeSource | None, op_type: str = "Gemm", name: str = "") -> NodeProto:
    node = NodeProto(op_type=op_type, name=name)
    if source is not None:
        write_source(node, source)
    return node


def said(node: NodeProto) -> dict[str, str]:
    return {p.key: p.value for p in node.metadata_props}


def test_the_form_of_torch_onnx():
    node = NodeProto(op_type="Gemm")
    node.metadata_props.add(key="mine", value="kept")
    node.metadata_props.add(key=SCOPES, value="['before']")
    write_source(node, UP)
    assert said(node) == {
        "mine": "kept",
        NAMESPACE: ": M/mlp: Mlp/mlp.up: Linear/linear: aten.linear.default",
        CLASSES: "['M', 'Mlp', 'Linear', 'aten.linear.default']",
        SCOPES: "['', 'mlp', 'mlp.up', 'linear']",
        TRACE: LINE,
    }
    assert source_of(node) == UP and UP.module == "mlp.up"
    assert UP.label == "mlp.up/linear: aten.linear.default"


@pytest.mark.parametrize("written", ["", "[", "3", "{'a': 1}", "f(x)"])
def test_metadata_of_another_tool(written: str):
    node = NodeProto(op_type="Relu")
    node.metadata_props.add(key=SCOPES, value=written)
    assert source_of(node) is None and fused_labels(node) == []


def write_fused(node: NodeProto, replaced: list[NodeMetadata]) -> None:
    complete_metadata(node, (), fused_metadata(replaced))


def test_pairs_that_are_written_prevail():
    node, other = NodeProto(), NodeProto()
    for key in ("a", "b"):
        node.metadata_props.add(key=key, value="mine")
    for key in ("c", "d"):
        other.metadata_props.add(key=key, value="other")
    complete_metadata(node, other.metadata_props, {"b": "new", "c": "", "e": "new"})
    assert said(node) == {"a": "mine", "d": "other", "b": "new", "e": "new"}


def test_one_operator_is_not_a_fusion():
    node = node_from(UP)
    write_fused(node, [NodeMetadata(n) for n in (node_from(UP), node_from(UP))])
    assert said(node) == said(node_from(UP))


def test_fused_operators_are_listed_once():
    act = NodeSource(("", "mlp", "relu"), ("M", "Mlp", "aten.relu.default"), "File b")
    more = NodeSource(("", "add"), ("M", "aten.add.Tensor"))
    node, again = node_from(act), node_from(more)
    write_fused(node, [NodeMetadata(n) for n in (node_from(act), node_from(UP))])
    labels = ["mlp/relu: aten.relu.default", "mlp.up/linear: aten.linear.default"]
    assert fused_labels(node) == labels
    assert said(node)[TRACE] == f"File b\n{LINE}" and source_of(node).scopes == act.scopes
    write_fused(again, [NodeMetadata(n) for n in (node, node_from(more), node_from(UP))])
    assert fused_labels(again) == [*labels, "add: aten.add.Tensor"]
    assert [p.key for p in again.metadata_props].count(FUSED) == 1


def test_a_fusion_of_a_whole_model_stays_short():
    many = [node_from(NodeSource(("", f"add_{i}"), ("M", "add"))) for i in range(100)]
    node = node_from(None)
    write_fused(node, [NodeMetadata(n) for n in many])
    assert len(fused_labels(node)) == 33 and fused_labels(node)[-1] == "..."


def test_an_inlined_node_has_the_path_of_the_call():
    layer = NodeSource(("", "layers.1", "linear_3"), ("M", "Layer", "aten.linear.default"))
    call = node_from(layer.called("layers.1", "Layer"), "Layer", "layers.1")
    inside = NodeSource(("", "mlp", "mlp.up", "linear"), ("Layer", "Mlp", "Linear", "aten.linear"))
    elsewhere = node_from(UP, name="mlp.up.Gemm")
    nodes = [node_from(inside, name="mlp.up.Gemm"), node_from(None, name="Neg"), elsewhere]
    move_sources(nodes, call)
    paths = ["", "layers.1", "layers.1.mlp", "layers.1.mlp.up", "linear"]
    moved = source_of(nodes[0])
    assert moved.scopes == tuple(paths)
    assert moved.classes == ("M", "Layer", "Mlp", "Linear", "aten.linear")
    assert source_of(nodes[1]).module == "layers.1"
    assert source_of(nodes[2]) == UP  # it is not relative to the module that is called
    assert [n.name for n in nodes] == ["layers.1.mlp.up.Gemm", "layers.1.Neg", "mlp.up.Gemm"]


def test_a_function_of_one_operator():
    call = node_from(UP, "linear_default")
    body = node_from(NodeSource(("linear",), ("aten.linear.default",)), "MatMul", "MatMul")
    move_sources([body], call)
    assert source_of(body) == UP and body.name == "mlp.up.MatMul"


def test_a_call_without_source_changes_nothing():
    node = node_from(UP, name="a")
    before = node.SerializeToString()
    move_sources([node], NodeProto(op_type="f"))
    assert node.SerializeToString() == before
