"""Tests of xoptim.repeated_optim."""

from __future__ import annotations

import pytest

from xbuilder.errors import OptionError
from xoptim.repeated_optim import find_largest_repeated_pattern, node_type_frequency
from xoptim.testing import model_from_text


def _layers(n: int) -> str:
    rows, name = [], "X"
    for i in range(n):
        rows += [
            f"M{i} = MatMul({name}, W)",
            f"A{i} = Add(M{i}, B)",
            f"S{i} = Sigmoid(A{i})",
            f"P{i} = Mul(A{i}, S{i})",
        ]
        name = f"P{i}"
    body = "\n".join([*rows, f"Y = Exp({name})"])
    return "agraph (float[a, 4] X, float[4, 4] W, float[4] B) => (float[a, 4] Y) {\n" + body + "\n}"


def test_frequency_counts_types() -> None:
    model = model_from_text(_layers(3))
    assert node_type_frequency(model) == {
        ("", "MatMul"): 3,
        ("", "Add"): 3,
        ("", "Sigmoid"): 3,
        ("", "Mul"): 3,
    }
    assert node_type_frequency(model, min_freq=4) == {}
    assert node_type_frequency(model.graph, min_freq=1)[("", "Exp")] == 1


def test_layers_are_found() -> None:
    found = find_largest_repeated_pattern(model_from_text(_layers(4)))
    assert found is not None
    assert (found.n_instances, found.n_nodes) == (4, 4)
    types = [[n.op_type for n in instance] for instance in found.instances]
    assert all(sorted(t) == ["Add", "MatMul", "Mul", "Sigmoid"] for t in types)
    names = [id(n) for instance in found.instances for n in instance]
    assert len(set(names)) == 16


def test_nothing_is_repeated() -> None:
    text = "agraph (float[a] X) => (float[a] Y) { T = Exp(X)\n Y = Relu(T) }"
    assert find_largest_repeated_pattern(model_from_text(text)) is None


def test_attributes_make_a_difference() -> None:
    text = """agraph (float[a, b] X) => (float[a, b] Y) {
        T = Transpose<perm=[1, 0]>(X)
        U = Relu(T)
        V = Transpose<perm=[0, 1]>(U)
        W = Relu(V)
        Y = Identity(W)
    }"""
    found = find_largest_repeated_pattern(model_from_text(text))
    assert found is None


@pytest.mark.parametrize("onx", [None, "model.onnx", 3])
def test_nothing_to_count(onx) -> None:
    with pytest.raises(OptionError, match="onx expects ModelProto or GraphProto or FunctionProto"):
        node_type_frequency(onx)
