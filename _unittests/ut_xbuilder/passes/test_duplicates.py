"""Equal initializers, equal shapes."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import initializer_names, op_types, optimized, parse

from xbuilder import GraphBuilder
from xbuilder.passes import duplicates


def with_initializers(*values):
    """y = x + w0 + w1..."""
    nodes = []
    name = "x"
    for i in range(len(values)):
        nodes.append(oh.make_node("Add", [name, f"w{i}"], [f"r{i}"]))
        name = f"r{i}"
    tensors = [
        v if isinstance(v, TensorProto) else from_array(np.asarray(v, dtype=np.float32))
        for v in values
    ]
    for i, tensor in enumerate(tensors):
        tensor.name = f"w{i}"
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", 1, ["N", None])],
        [oh.make_tensor_value_info(name, 1, ["N", None])],
        tensors,
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def merge(*values):
    model = with_initializers(*values)
    return initializer_names(optimized(model, run=False))


def test_equal_ones_are_merged():
    big = np.arange(300, dtype=np.float32)
    assert merge([1.0], [1.0], [2.0]) == ["w0", "w2"]
    assert merge(big, big.copy()) == ["w0"]
    other = big.copy()
    other[150] = -1  # neither the beginning nor the end
    assert merge(big, other) == ["w0", "w1"]


def test_zeros_of_both_signs_are_different():
    assert merge([0.0], [-0.0]) == ["w0", "w1"]
    assert merge([np.nan], [np.nan]) == ["w0"]


def test_shapes_and_types_are_different():
    assert merge([1.0], [[1.0]]) == ["w0", "w1"]
    half = from_array(np.array([1.0, 0.0], dtype=np.float16))
    single = from_array(np.frombuffer(np.array([1.0, 0.0], np.float16).tobytes(), np.float32))
    assert merge(half, single) == ["w0", "w1"]


def test_raw_and_typed_data():
    typed = oh.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0])
    assert not typed.HasField("raw_data")
    assert merge(typed, [1.0, 2.0]) == ["w0"]
    many = [float(i) for i in range(200)]
    assert merge(oh.make_tensor("t", TensorProto.FLOAT, [200], many), many) == ["w0"]


def test_arrays_and_protos():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("N", 200))
    value = np.arange(200, dtype=np.float32)
    builder.make_initializer("a", value)
    builder.make_initializer("b", from_array(value, name="b"))
    builder.make_node("Sum", ["x", "a", "b"], ["y"])
    builder.make_tensor_output("y")
    assert builder.remove_duplicated_initializers() == 1
    assert list(builder.store.nodes[0].inputs) == ["x", "a", "a"]
    builder.store.check()


def test_strings():
    def strings(*values):
        return TensorProto(data_type=TensorProto.STRING, dims=[len(values)], string_data=values)

    def count(a, b):
        a.name, b.name = "a", "b"
        nodes = [oh.make_node("Concat", ["a", "b"], ["y"], axis=0)]
        graph = oh.make_graph(
            nodes, "g", [], [oh.make_tensor_value_info("y", TensorProto.STRING, [4])], [a, b]
        )
        model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
        return GraphBuilder(model).remove_duplicated_initializers()

    assert count(strings(b"u", b"v"), strings(b"u", b"v")) == 1
    assert count(strings(b"u", b"v"), strings(b"u", b"w")) == 0
    assert count(strings(b"u\0", b"v"), strings(b"u", b"\0v")) == 0


def test_overridable_and_outputs_are_left_alone():
    model = parse(
        """
        agraph (float[N] x, float[1] a) => (float[N] y, float[1] c)
        <float[1] a = {3.0}, float[1] b = {3.0}, float[1] c = {3.0}>
        { t = Add(x, a) u = Add(t, b) y = Add(u, c) }
        """
    )
    assert initializer_names(optimized(model)) == ["a", "b", "c"]


def test_captured_initializers():
    model = parse(
        """
        agraph (float[N] x, bool k) => (float[N] y)
        <float[1] a = {3.0}, float[1] b = {3.0}>
        {
            z = Add(x, a)
            y = If (k) <
                then_branch = t () => (float[N] r) { r = Add(z, b) },
                else_branch = e () => (float[N] s) { s = Sub(z, b) }
            >
        }
        """
    )
    after = optimized(model)
    assert initializer_names(after) == ["a"]


def test_constant_fusing_is_an_option():
    model = with_initializers([1.0], [1.0])
    assert initializer_names(optimized(model, constant_fusing=False)) == ["w0", "w1"]


@pytest.mark.parametrize(
    "other,merged",
    [
        ("Shape(x)", True),
        ("Shape<start=1>(x)", False),
        ("Shape<start=0>(x)", True),
        ("Shape(z)", False),
    ],
)
def test_duplicated_shapes(other, merged):
    model = parse(
        f"""
        agraph (float[N,M] x, float[N,M] z) => (int64[K] y)
        {{ a = Shape(x) b = {other} y = Concat<axis=0>(a, b) }}
        """
    )
    builder = GraphBuilder(model)
    assert builder.remove_duplicated_shape_nodes() == int(merged)
    builder.store.check()
    assert op_types(builder.to_onnx(optimize=False)).count("Shape") == 2 - merged


def test_two_small_parameters_stay_two():
    """An equal constant becomes the parameter, a small parameter never becomes another one."""
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 3))
    ones = np.ones(3, dtype=np.float32)
    for name in ("constant", "first", "second"):
        parameter = None if name == "constant" else name
        g.make_initializer(name, ones.copy(), parameter_name=parameter)
    g.op.Sum("x", "first", "second", "constant", outputs=["y"])
    g.make_tensor_output("y")
    assert g.remove_duplicated_initializers() == 1
    assert sorted(g.initializers_dict) == ["first", "second"]
    assert list(g.nodes[0].input) == ["x", "first", "second", "first"]


def with_parameters(*values: np.ndarray) -> list[str]:
    """Names of the parameters that are left."""
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 1))
    names = [f"p{i}" for i in range(len(values))]
    for name, value in zip(names, values, strict=True):
        g.make_initializer(name, value, parameter_name=name)
    g.op.Sum("x", *names, outputs=["y"])
    g.make_tensor_output("y")
    g.remove_duplicated_initializers()
    g.store.check()
    assert set(g.nodes[0].input) == {"x", *g.initializers_dict}
    return list(g.initializers_dict)


BIG = np.arange(300, dtype=np.float32)
CHANGED = np.where(np.arange(300) == 150, np.float32(-1), BIG)


@pytest.mark.parametrize(
    "values,left",
    [
        ((BIG, BIG.copy()), ["p0"]),
        ((BIG, CHANGED, BIG.copy()), ["p0", "p1"]),
        ((BIG, BIG[::-1].copy()[::-1]), ["p0"]),
        ((BIG[:3], BIG[:3]), ["p0"]),
        ((BIG[:3], BIG[:3].copy()), ["p0", "p1"]),
        ((BIG[:3], BIG[:3].copy(), BIG[:3]), ["p0", "p1"]),
    ],
    ids=["equal", "the middle differs", "other strides", "one memory", "small", "small and shared"],
)
def test_parameters(values: tuple[np.ndarray, ...], left: list[str]):
    assert with_parameters(*values) == left


def test_parameters_beyond_the_budget_stay(monkeypatch):
    monkeypatch.setattr(duplicates, "_HASHED", 3 * BIG.nbytes)
    rows = [BIG.copy() for _ in range(5)]
    assert with_parameters(*rows) == ["p0", "p3", "p4"]
    assert with_parameters(BIG, BIG, BIG, BIG, BIG) == ["p0"], "one memory is not hashed"


def test_equal_weights_are_dequantized_once():
    """Dequantizing nodes are not folded: they are merged once their weights are."""
    model = parse(
        """
        agraph (float[n, 200] x) => (float[n, 200] y)
            <float scale = {0.5}, int8 zero = {0}>
        {
            a = DequantizeLinear(q, scale, zero)
            b = DequantizeLinear(r, scale, zero)
            n = Neg(x)
            u = Mul(n, a)
            e = Exp(x)
            v = Mul(e, b)
            y = Add(u, v)
        }
        """
    )
    weight = np.arange(-100, 100, dtype=np.int8)
    model.graph.initializer.extend([from_array(weight, "q"), from_array(weight, "r")])
    builder = GraphBuilder(model)
    assert duplicates.remove_duplicated_initializer(builder.graph) == 2
    assert [n.op_type for n in builder.nodes].count("DequantizeLinear") == 1
    assert sorted(builder.initializers_dict) == ["q", "scale", "zero"]
    builder.store.check()
    assert duplicates.remove_duplicated_initializer(builder.graph) == 0
