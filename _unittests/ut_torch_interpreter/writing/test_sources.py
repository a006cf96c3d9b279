"""Nodes tell the module, the operator and the line of torch they come from."""

from __future__ import annotations

import torch
from onnx import NodeProto
from ut_torch_interpreter.export_checks import Mlp

from torch_interpreter import ExportOptions, to_onnx
from xbuilder import GraphBuilder
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.sources import SCOPES, fused_labels, source_of


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = Mlp()

    def forward(self, x):
        return x + self.mlp(x)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * 2


class Choice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = Branches()

    def forward(self, x):
        return self.layer(x)


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y.exp() + 1, lambda y: y.cos() - 1, (x,))


def by_name(nodes: list[NodeProto]) -> dict[str, NodeProto]:
    return {node.name: node for node in nodes}


def paths(onx) -> list[tuple[str, str]]:
    return [(node.name, source_of(node).module) for node in onx.graph.node]


NAMES = [
    (f"layers.{i}.mlp.{name}" if "Add" not in name else f"layers.{i}.Add", f"layers.{i}{module}")
    for i in range(2)
    for name, module in [
        ("up.Gemm", ".mlp.up"),
        ("Relu", ".mlp"),
        ("down.Gemm", ".mlp.down"),
        ("Add", ""),
    ]
]


def test_names_and_metadata_after_the_optimization():
    onx = to_onnx(Model().eval(), (torch.randn(3, 4),))
    assert paths(onx) == [*NAMES, ("Mul", "")]
    source = source_of(by_name(onx.graph.node)["layers.1.mlp.Relu"])
    here = Model.__module__
    assert source.scopes == ("", "layers.1", "layers.1.mlp", "relu_1")
    assert source.classes[:-1] == (f"{here}.Model", f"{here}.Layer", f"{Mlp.__module__}.Mlp")
    assert source.classes[-1] == "aten.relu.default"
    last = source.trace.splitlines()[-2:]
    assert "export_checks.py" in last[0]
    assert last[1].strip() == "return self.down(torch.relu(self.up(x)))"
    assert "torch/nn" not in source_of(onx.graph.node[0]).trace  # nn.Linear is torch's


def test_the_option_turns_it_off():
    options = ExportOptions(node_sources=False)
    onx = to_onnx(Model().eval(), (torch.randn(3, 4),), export_options=options)
    assert not any(node.metadata_props for node in onx.graph.node)
    assert not any("layers" in node.name for node in onx.graph.node)


def test_the_same_module_twice_shares_its_path():
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = torch.nn.Tanh()

        def forward(self, x):
            return self.act(self.act(x) + 1)

    onx = to_onnx(Twice(), (torch.randn(3),))
    assert paths(onx) == [("act.Tanh", "act"), ("Add", ""), ("act.Tanh1", "act")]


def test_nodes_of_branches():
    onx = to_onnx(Choice(), (torch.randn(3),))
    nodes = all_nodes(onx.graph.node)
    assert {"If", "Exp", "Cos"} <= {node.op_type for node in nodes}
    kept = [n for n in nodes if n.op_type in {"If", "Exp", "Cos"}]
    assert {source_of(node).module for node in kept} == {"layer"}
    assert {node.name.split(".")[0] for node in kept} == {"layer"}


def test_layers_share_a_function_and_have_their_paths_once_inlined():
    kinds = {Layer, Mlp}
    onx = to_onnx(Model().eval(), (torch.randn(3, 4),), export_modules_as_functions=kinds)
    assert [n.op_type for n in onx.graph.node] == ["Layer", "Layer", "Mul"]
    assert sorted(f.name for f in onx.functions) == ["Layer", "Mlp"]
    assert [source_of(n).module for n in onx.graph.node] == ["layers.0", "layers.1", ""]
    inlined = GraphBuilder(onx).to_onnx()
    assert paths(inlined) == [*NAMES, ("Mul", "")]


def test_an_operator_kept_as_a_function():
    class Attention(torch.nn.Module):
        def forward(self, q):
            return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    model = torch.nn.Sequential(Attention())
    options = ExportOptions(aten_as_function={"aten.scaled_dot_product_attention.default"})
    onx = to_onnx(model, (torch.randn(2, 4, 5, 8),), export_options=options)
    inlined = GraphBuilder(onx).to_onnx()
    assert len(inlined.graph.node) > 1
    found = {source_of(node) for node in inlined.graph.node}
    assert {s.module for s in found} == {"0"}
    assert {s.classes[-1] for s in found} == {"aten.scaled_dot_product_attention.default"}


def test_a_graph_without_modules():
    graph = torch.fx.symbolic_trace(Model().eval())
    onx = to_onnx(graph, (torch.randn(3, 4),))
    assert all(source_of(node) for node in onx.graph.node)


def test_slices_fused_into_a_split_are_listed():
    class Halves(torch.nn.Module):
        def forward(self, x):
            return torch.cat([x[:, 4:], -x[:, :4]], dim=1)

    onx = to_onnx(torch.nn.Sequential(Halves()), (torch.randn(3, 8),))
    (split,) = [n for n in onx.graph.node if n.op_type == "Split"]
    labels = fused_labels(split)
    assert len(labels) > 1 and all(": aten.slice.Tensor" in label for label in labels)
    assert {p.key for p in split.metadata_props} >= {SCOPES}


def test_a_size_that_torch_adds_comes_from_its_tensor():
    class Joined(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = torch.nn.Parameter(torch.zeros(1, 1, 16))
            layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 1)

        def forward(self, x):
            x = torch.cat((self.token.repeat(x.shape[0], 1, 1), x), 1)
            return self.encoder(x)[:, 0]

    onx = to_onnx(
        Joined().eval(), (torch.randn(2, 6, 16),), dynamic_shapes=({0: "batch", 1: "seq"},)
    )
    sources = [source_of(n) for n in onx.graph.node]
    assert {s.module.split(".")[0] for s in sources} == {"", "encoder"}
    assert not any("runtime_assert" in s.trace or "_empty" in str(s) for s in sources)
    assert all(s.trace for s in sources if s.module)
