"""Ranks readers demand: the runtime refuses another rank, nothing else counts."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.inference import required_ranks as demanded_ranks
from xbuilder.inference.required_ranks import needed_nodes, required_rank

#: operator -> shapes of its inputs, attributes
NODES = {
    "LSTM": (
        [(2, 1, 3), (1, 16, 3), (1, 16, 4), (1, 32), (1,), (1, 1, 4), (1, 1, 4), (1, 12)],
        {"hidden_size": 4},
    ),
    "GRU": (
        [(2, 1, 3), (1, 12, 3), (1, 12, 4), (1, 24), (1,), (1, 1, 4)],
        {"hidden_size": 4},
    ),
    "RNN": ([(2, 1, 3), (1, 4, 3), (1, 4, 4), (1, 8), (1,), (1, 1, 4)], {"hidden_size": 4}),
    "Gemm": ([(2, 3), (3, 4)], {}),
    "DepthToSpace": ([(1, 4, 2, 2)], {"blocksize": 2}),
    "SpaceToDepth": ([(1, 1, 2, 2)], {"blocksize": 2}),
    "Conv": ([(1, 2, 3, 3), (4, 2, 1, 1)], {}),
    "ConvTranspose": ([(1, 2, 3, 3), (2, 4, 1, 1)], {}),
    "AveragePool": ([(1, 2, 3, 3)], {"kernel_shape": [2, 2]}),
    "LpPool": ([(1, 2, 3, 3)], {"kernel_shape": [2, 2]}),
    "MaxPool": ([(1, 2, 3, 3)], {"kernel_shape": [2, 2]}),
    "Transpose": ([(2, 3, 4)], {"perm": [2, 0, 1]}),
}
CASES = [
    (op, i)
    for op, (shapes, _) in NODES.items()
    for i in range(len(shapes))
    if (op, i) != ("Gemm", 0)
]


def builder_of(op_type: str, unknown: int | None = None) -> GraphBuilder:
    """One node between inputs, one of which may have any rank."""
    shapes, attributes = NODES[op_type]
    names = [f"i{i}" for i in range(len(shapes))]
    node = oh.make_node(op_type, names, ["y"], **attributes)
    if op_type in ("LSTM", "GRU", "RNN"):
        node.output[:] = ["", "y"]
    inputs = [
        oh.make_tensor_value_info(
            n,
            TensorProto.INT32 if len(shapes) > 4 and i == 4 else TensorProto.FLOAT,
            None if i == unknown else s,
        )
        for i, (n, s) in enumerate(zip(names, shapes, strict=True))
    ]
    output = oh.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = oh.make_graph([node], "g", inputs, [output])
    return GraphBuilder(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9))


def runs(builder: GraphBuilder, unknown: int, shape: tuple[int, ...]) -> bool:
    """Whether onnxruntime runs a model when one of its inputs has some shape."""
    model = builder.to_onnx(optimize=False)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    shapes = NODES[model.graph.node[0].op_type][0]
    feeds = {
        f"i{i}": np.ones(shape if i == unknown else s, np.int32 if i == 4 else np.float32)
        for i, s in enumerate(shapes)
    }
    try:
        session.run(None, feeds)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("op_type,index", CASES)
def test_the_runtime_refuses_another_rank(op_type: str, index: int) -> None:
    builder = builder_of(op_type, index)
    shape = NODES[op_type][0][index]
    found = required_rank(builder.graph, f"i{index}", needed_nodes(builder.graph))
    assert found == len(shape)
    assert runs(builder, index, shape)
    assert not runs(builder, index, (1, *shape)) and not runs(builder, index, (*shape, 1))
    assert not runs(builder, index, shape[1:]) and not runs(builder, index, shape[:-1])


def test_a_vector_is_the_first_operand_of_gemm() -> None:
    """The specification forbids it, a runtime takes it: it is not demanded."""
    builder = builder_of("Gemm", 0)
    assert required_rank(builder.graph, "i0", needed_nodes(builder.graph)) is None


def test_every_operator_is_tested() -> None:
    tables = (demanded_ranks._FIXED, demanded_ranks._ALIKE, demanded_ranks._COUNTED)
    assert sorted(op for table in tables for op in table) == sorted(NODES)


LSTM = "u, h = LSTM <hidden_size = 4> (X, w, r) y = Relu(h)"
FOUND = {
    "itself": (LSTM.replace("X", "x"), 3),
    "elementwise operators": ("a = Relu(x) b = Clip(a) c = Identity(b) " + LSTM, 3),
    "Unsqueeze": ("c = Unsqueeze <axes = [0]> (x) " + LSTM, 2),
    "two axes": ("c = Unsqueeze <axes = [-1, -2]> (x) " + LSTM, 1),
    "Squeeze": ("c = Squeeze <axes = [0]> (x) " + LSTM, 4),
    "any permutation": ("c = Transpose (x) " + LSTM, 3),
    "several readers": ("e = Shape(x) c = Unsqueeze <axes = [0]> (x) " + LSTM, 2),
    "impossible axes": ("c = Unsqueeze <axes = [0, -1]> (x) " + LSTM, None),
    "the same axis": ("c = Unsqueeze <axes = [1, 1]> (x) " + LSTM, None),
    "any axis": ("c = Squeeze (x) " + LSTM, None),
    "axes that are shifted": ("c = Squeeze <axes = [0, -1]> (x) " + LSTM, None),
    "broadcast": ("c = Add(x, s) " + LSTM, None),
    "another operand": ("c = Clip(s, x) " + LSTM, None),
    "a concatenation": ("c = Concat <axis = 0> (x, s) y = Relu(c)", None),
    "another domain": ("u, h = other.LSTM <hidden_size = 4> (x, w, r) y = Relu(h)", None),
    "nothing depends on it": ("u, h = LSTM <hidden_size = 4> (x, w, r) y = Neg(w)", None),
    "nothing depends on what reads it": (
        "u, h = LSTM <hidden_size = 4> (x, w, r) z = Neg(h) y = Neg(w)",
        None,
    ),
    "a branch": (
        "y = If(i) <then_branch = t () => (float[a, b, c] o)"
        " { u, o = LSTM <hidden_size = 4> (x, w, r) },"
        " else_branch = e () => (float[a, b, c] o) { o = Relu(w) }>",
        None,
    ),
    "an unknown weight": ("y = Conv(x, s)", None),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_demands_a_rank(name: str) -> None:
    body, expected = FOUND[name]
    model = parse(
        f"""<ir_version: 8, opset_import: ["": 12, "other": 1]>
        g (float[] x, float[] s, float[1, 16, 3] w, float[1, 16, 4] r, bool i) => (float[] y)
        {{ {body.replace("(X,", "(c,")} }}"""
    )
    for value in (model.graph.input[0], model.graph.input[1], model.graph.output[0]):
        value.type.tensor_type.ClearField("shape")
    graph = GraphBuilder(model).graph
    assert required_rank(graph, "x", needed_nodes(graph)) == expected


def test_an_attribute_of_a_function_is_unknown() -> None:
    node = NodeProto(op_type="Transpose", input=["x"], output=["y"])
    node.attribute.add(name="perm", ref_attr_name="perm", type=7)
    opsets = [oh.make_opsetid("", 18)]
    function = oh.make_function("local", "f", ["x"], ["y"], [node], opsets, ["perm"])
    graph = GraphBuilder(function).graph
    assert required_rank(graph, "x", needed_nodes(graph)) is None


def test_a_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops after some results."""
    steps = " ".join(f"a{i + 1} = Relu(a{i})" for i in range(6))
    model = parse(
        f"g (float[p, q] x) => (float[p, q] y) {{ a0 = Neg(x) {steps} y = Transpose <perm = [1, 0]> (a6) }}"
    )
    graph = GraphBuilder(model).graph
    assert required_rank(graph, "a0", needed_nodes(graph)) == 2
    monkeypatch.setattr(demanded_ranks, "_MAX_RESULTS", 4)
    assert required_rank(graph, "a0", needed_nodes(graph)) is None
