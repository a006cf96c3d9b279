"""Nodes of another scope under free names."""

from __future__ import annotations

from onnx import NodeProto
from ut_xbuilder.graph_checks import check_stores, parse

from xbuilder import GraphBuilder
from xbuilder.nested.splicing import rename_calls, rename_graph, splice
from xbuilder.nodes.subgraphs import subgraphs_of

NESTED = parse(
    """
    agraph (float[2] x, bool c) => (float[2] y)
    {
        z = Neg(x)
        y = If (c) <
            then_branch = a () => (float[2] r) <float[2] k = {1.0, 2.0}, float[2] kk>
            {
                t = Add(z, k)
                kk = Neg(t)
                r = If (c) <
                    then_branch = d () => (float[2] u) { z2 = Neg(z) u = Add(z2, t) },
                    else_branch = e () => (float[2] v) { z = Exp(x) v = Add(z, t) }
                >
            },
            else_branch = b () => (float[2] s) { s = Neg(z) }
        >
    }
    """
)


def test_rename_graph():
    node = NodeProto()
    node.CopyFrom(NESTED.graph.node[1])
    graph = dict(subgraphs_of(node))["then_branch"]
    rename_graph(graph, lambda n: f"outer_{n}", lambda n: f"own_{n}")
    assert [i.name for i in graph.initializer] == ["own_k"]
    assert [v.name for v in graph.value_info] == ["own_kk"]
    assert [o.name for o in graph.output] == ["own_r"]
    add, _, owner = graph.node
    assert list(add.input) == ["outer_z", "own_k"] and list(add.output) == ["own_t"]
    assert list(owner.input) == ["outer_c"]
    inner = dict(subgraphs_of(owner))
    assert list(inner["then_branch"].node[0].input) == ["outer_z"]
    # the name is hidden in this one
    assert [list(n.input) for n in inner["else_branch"].node] == [["outer_x"], ["own_z", "own_t"]]


def test_splice():
    builder = GraphBuilder(18)
    builder.make_tensor_input("a", 1, ("n", 2))
    builder.make_tensor_input("c", 9, ())
    builder.make_node("Neg", ["a"], ["t"])
    results = [("z", "same"), ("y", "out"), ("x", "copy"), ("y", "twice"), ("other", "")]
    content = NESTED.SerializeToString()
    splice(builder.graph, None, NESTED.graph.node, {"x": "a"}, results, builder.unique_name)
    assert NESTED.SerializeToString() == content
    check_stores(builder)
    outputs = [r.outputs[0] for r in builder.store.nodes]
    assert outputs == ["t", "same", "out", "copy", "twice"]
    assert [r.op_type for r in builder.store.nodes[-2:]] == ["Identity", "Identity"]
    assert builder.store.nodes[-1].inputs == ("out",)
    assert builder.get_shape("same") == ("n", 2)
    # the `t` of the branch does not hide the one of the graph
    assert builder.shadowing_names() == set()


def test_splice_replaces_a_node():
    builder = GraphBuilder(18)
    builder.make_tensor_input("a", 1, ("n", 2))
    builder.make_node("Abs", ["a"], ["b"])
    builder.make_node("Exp", ["b"], ["e"])
    record = builder.store.producers["b"]
    nodes = parse("agraph (float[2] u) => (float[2] w) { v = Neg(u) w = Relu(v) }").graph.node
    added = splice(builder.graph, record, nodes, {"u": "a"}, [("w", "b")], builder.unique_name)
    assert [r.op_type for r in builder.store.nodes] == ["Neg", "Relu", "Exp"]
    assert added[-1].outputs == ("b",) and not record.alive
    check_stores(builder)


def test_rename_calls():
    model = parse(
        """
        <ir_version: 10, opset_import: ["": 18, "f": 1]>
        agraph (float[2] x, bool c) => (float[2] y)
        {
            z = Neg(x)
            y = If (c) <
                then_branch = a () => (float[2] r) { r = f.G(z) },
                else_branch = b () => (float[2] s) { s = G(z) }
            >
        }
        """
    )
    neg, owner = rename_calls(model.graph.node, {("f", "G"): ("f", "G_2")})
    assert neg is model.graph.node[0] or neg == model.graph.node[0]
    types = {a.name: a.g.node[0].op_type for a in owner.attribute}
    assert types == {"then_branch": "G_2", "else_branch": "G"}
    assert model.graph.node[1].attribute[0].g.node[0].op_type == "G"
