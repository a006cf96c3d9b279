"""Rewrites keep the documentation and the metadata of the nodes they replace."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.nodes.sources import NodeSource, fused_labels, source_of, write_source
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


def from_torch(node: NodeProto, module: str, name: str, operator: str) -> None:
    """Writes the place of a torch model a node comes from, and a name that tells it."""
    scopes = ["", module, name] if module else ["", name]
    classes = ["M", "Layer", operator] if module else ["M", operator]
    write_source(node, NodeSource(tuple(scopes), tuple(classes), f"line of {name}"))
    node.name = f"{module}.{node.op_type}" if module else node.op_type


def test_a_fused_node_lists_its_sources() -> None:
    model = model_from_text(PRODUCT)
    from_torch(model.graph.node[0], "a", "mm", "aten.mm")
    from_torch(model.graph.node[1], "b", "add", "aten.add")
    (node,) = optimize(model, "MatMulAdd").graph.node
    assert (node.name, source_of(node).module) == ("b.Gemm", "b")
    assert fused_labels(node) == ["b/add: aten.add", "a/mm: aten.mm"]
    assert source_of(node).trace == "line of add\nline of mm"


def test_the_same_operator_keeps_its_name() -> None:
    model = model_from_text("g (float[a] x) => (float[a] y) { t = Relu(x) y = Relu(t) }")
    from_torch(model.graph.node[0], "a", "relu", "aten.relu")
    from_torch(model.graph.node[1], "a", "relu_1", "aten.relu")
    model.graph.node[0].name = "a.Relu1"
    (node,) = optimize(model, [ReluTwice()]).graph.node
    assert node.name == "a.Relu"


@pytest.mark.parametrize("module,name", [("", "a.Add"), ("a", "node_add")])
def test_names_of_another_tool_stay(module: str, name: str) -> None:
    """A node that is not named after its module gives no such name."""
    model = model_from_text(PRODUCT)
    from_torch(model.graph.node[1], module, "add", "aten.add")
    model.graph.node[1].name = name
    (node,) = optimize(model, "MatMulAdd").graph.node
    assert not node.name.startswith("a.Gemm") and source_of(node).module == module


class MatMulOfSum(PatternOptimization):
    """Add(MatMul(x, w), b) -> two nodes, the first one with a new result."""

    def match(self, g, node, matched):
        before = g.node_before(node.input[0]) if node.op_type == "Add" else None
        if before is None or before.op_type != "MatMul":
            return self.none()
        return MatchResult(self, [before, node], self.apply)

    def apply(self, g, before, node):
        product = g.make_node("MatMul", list(before.input), 1)
        total = g.make_node("Sum", [product.output[0], node.input[1]], [node.output[0]])
        return [product, total]


def test_a_result_that_is_new_has_the_source_of_its_operator() -> None:
    model = model_from_text(PRODUCT)
    from_torch(model.graph.node[0], "a", "mm", "aten.mm")
    from_torch(model.graph.node[1], "b", "add", "aten.add")
    product, total = optimize(model, [MatMulOfSum()]).graph.node
    assert (source_of(product).module, source_of(total).module) == ("a", "b")
    assert (product.name, total.name) == ("a.MatMul1", "b.Sum")


class WrittenAgain(PatternOptimization):
    """Writes a chain again: its operators are the same, its results are new."""

    def match(self, g, node, matched):
        if node.op_type != "Neg":
            return self.none()
        nodes = [node]
        while (before := g.node_before(nodes[0].input[0])) is not None:
            nodes.insert(0, before)
        return MatchResult(self, nodes, self.apply) if len(nodes) > 3 else self.none()

    def apply(self, g, *nodes):
        made, last = [], "x"
        for node in nodes[:-1]:
            made.append(g.make_node(node.op_type, [last, *node.input[1:]], 1))
            last = made[-1].output[0]
        return [*made, g.make_node("Abs", [last], [nodes[-1].output[0]])]


def test_a_chain_that_is_written_again_keeps_its_sources() -> None:
    model = model_from_text(
        """g (float[a] x) => (float[a] y) <float p = {2}, float q = {3}> {
            t = Mul(x, p) u = Relu(t) v = Mul(u, q) w = Relu(v) y = Neg(w)
        }"""
    )
    for node, module in zip(model.graph.node, "abcde", strict=True):
        from_torch(node, module, module, "aten.op")
    nodes = optimize(model, [WrittenAgain()]).graph.node
    assert [n.op_type for n in nodes] == ["Mul", "Relu", "Mul", "Relu", "Abs"]
    assert [source_of(n).module for n in nodes] == ["a", "b", "c", "d", "e"]


class ReluFirst(PatternOptimization):
    """Relu(Neg(x)) -> Neg(Relu(x)), which is wrong: only the names count."""

    def match(self, g, node, matched):
        before = g.node_before(node.input[0]) if node.op_type == "Relu" else None
        if before is None or before.op_type != "Neg":
            return self.none()
        return MatchResult(self, [before, node], self.apply)

    def apply(self, g, before, node):
        relu = g.make_node("Relu", [before.input[0]], 1)
        return [relu, g.make_node("Neg", [relu.output[0]], [node.output[0]])]


def test_nodes_that_change_places_keep_their_sources() -> None:
    model = model_from_text("g (float[a] x) => (float[a] y) { t = Neg(x) y = Relu(t) }")
    for node, module in zip(model.graph.node, "ab", strict=True):
        from_torch(node, module, module, "aten.op")
    relu, neg = optimize(model, [ReluFirst()]).graph.node
    assert (source_of(relu).module, source_of(neg).module) == ("b", "a")
    assert neg.name == "a.Neg"


def test_a_kept_node_keeps_its_source() -> None:
    """The product is read twice: the rewrite returns it with the Gemm."""
    text = PRODUCT.replace("=> (float[a, 4] y)", "=> (float[a, 4] y, float[a, 4] t)")
    model = model_from_text(text)
    from_torch(model.graph.node[0], "a", "mm", "aten.mm")
    from_torch(model.graph.node[1], "b", "add", "aten.add")
    for node in optimize(model, "MatMulAdd").graph.node:
        if node.op_type == "MatMul":
            assert fused_labels(node) == ["a/mm: aten.mm"] and node.name == "a.MatMul"


def test_equal_nodes_of_two_modules_are_merged() -> None:
    model = model_from_text(
        "g (float[a] x) => (float[a] y) { t = Exp(x) u = Exp(x) y = Add(t, u) }"
    )
    for node, module in zip(model.graph.node, "abc", strict=True):
        from_torch(node, module, module, "aten.op")
    found = optimize(model, "default").graph.node
    assert [n.op_type for n in found].count("Exp") == 1
    assert all(source_of(n) for n in found)
