"""Constants: by reference, lazy, never an overridable initializer."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import parse

from xbuilder import FactError, GraphBuilder
from xbuilder.constants import table
from xbuilder.constants.table import CACHED_BYTES, COMPUTED_BYTES
from xbuilder.files.blocks.block_sources import ArrayBlocks, FileBlocks
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.files.tensor_sources import FileSource
from xbuilder.inference.graph_inference import infer_and_note


def new():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 3))
    return builder


def test_values():
    builder = new()
    builder.make_initializer("w", np.array([1, 2, 3], dtype=np.float32))
    builder.op.Neg("w", outputs=["n"])
    builder.op.Exp("n", outputs=["e"])
    builder.op.Add("x", "e", outputs=["y"])
    assert [builder.is_constant(n) for n in ("w", "n", "e", "x", "y", "")] == [True] * 3 + [
        False
    ] * 3
    assert builder.get_constant("w").tolist() == [1, 2, 3]
    with pytest.raises(FactError, match="no constant value"):
        builder.get_constant("e")
    assert builder.get_constant("e", exc=False) is None
    np.testing.assert_allclose(
        builder.get_constant("e", computed_value=True), np.exp([-1, -2, -3]), rtol=1e-6
    )
    with pytest.raises(FactError):
        builder.get_constant("y")
    assert set(builder.constants_) == {"w", "n", "e"}
    assert builder.constants_["n"].op_type == "Neg" and builder.constants_["w"] is None


def test_as_shape_and_known_content():
    builder = new()
    builder.make_initializer("s", np.array([2, 3], dtype=np.int64))
    assert builder.get_constant("s", as_shape=True) == (2, 3)
    assert builder.value_as_shape("s") == (2, 3)
    builder.op.Shape("x", outputs=["shape"])
    assert builder.value_as_shape("shape") == ("batch", 3)
    assert not builder.is_constant("shape")
    builder.op.Shape("x", start=1, outputs=["last"])
    assert builder.is_constant("last") and builder.get_constant("last").tolist() == [3]


def test_tracked_integers_are_not_computed(monkeypatch):
    """Those of a node, and those a node that is computed reads."""
    builder = new()
    builder.make_initializer("s", np.array([2, 3], dtype=np.int64))
    builder.op.Add("s", "s", outputs=["twice"])
    builder.op.Cast("twice", to=TensorProto.FLOAT, outputs=["floats"])
    computed = []
    run = table.evaluate_node
    monkeypatch.setattr(
        table, "evaluate_node", lambda node, *a: computed.append(node.op_type) or run(node, *a)
    )
    value = builder.get_constant("floats", computed_value=True)
    assert value.tolist() == [4, 6] and computed == ["Cast"]
    value = builder.get_constant("twice", computed_value=True)
    assert value.tolist() == [4, 6] and value.dtype == np.int64 and computed == ["Cast"]


def test_a_long_chain_is_computed_without_recursion():
    builder = new()
    builder.make_initializer("w", np.array([1.0], dtype=np.float32))
    name = "w"
    for _ in range(3000):
        name = builder.make_node("Identity", [name])
    assert builder.get_constant(name, computed_value=True).tolist() == [1.0]


def test_big_results_are_not_computed():
    builder = new()
    builder.make_initializer("s", np.array([COMPUTED_BYTES], dtype=np.int64))
    builder.op.ConstantOfShape("s", outputs=["c"])
    assert builder.is_constant("c")
    assert builder.get_constant("c", exc=False, computed_value=True) is None


def test_protos_are_read_once_and_small_ones_only_are_kept():
    builder = new()
    small = from_array(np.arange(3, dtype=np.float32), name="a")
    big = from_array(np.zeros(1 << 19, dtype=np.float32), name="b")
    builder.make_initializer("a", small)
    builder.make_initializer("b", big)
    assert builder.get_constant("a") is builder.get_constant("a")
    assert builder.get_constant("b") is not builder.get_constant("b")


def test_cheap_constants(tmp_path):
    """A constant computed by blocks from the model is in the model, one from a file is not."""
    value = np.zeros((4, 3), np.float32)
    tensor = TensorProto(name="w", data_type=1, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(value.tobytes())
    stored = FileBlocks(FileSource(tensor, tmp_path / "w.bin"))
    builder = new()
    held = {
        "array": value,
        "blocks": BlockTensor(ScaledBlocks(ArrayBlocks(value, 1), np.float64(2))),
        "big": np.zeros(CACHED_BYTES // 4 + 1, np.float32),
        "file": BlockTensor(ScaledBlocks(stored, np.float64(2))),
    }
    for name, constant in held.items():
        builder.make_initializer(name, constant)
    constants = builder.graph.constants
    assert [name for name in (*held, "x") if constants.is_cheap(name)] == ["array", "blocks"]


def test_external_without_folder():
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    graph = oh.make_graph(
        [oh.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [oh.make_tensor_value_info("x", 1, [2])],
        [oh.make_tensor_value_info("y", 1, [2])],
        [tensor],
    )
    builder = GraphBuilder(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)]))
    assert builder.get_shape("w") == (2,)
    assert builder.get_constant("w", exc=False) is None


def test_overridable():
    model = parse(
        "agraph (float[N] x, float[1] w) => (float[N] y) <float[1] w = {3.0}> "
        "{ n = Neg(w) y = Add(x, n) }"
    )
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert not builder.is_constant("w") and not builder.is_constant("n")
    assert builder.get_constant("w", exc=False) is None
    assert "w" not in builder.constants_ and "w" in builder.initializers_dict


def test_constants_without_inference():
    """Nothing is inferred, but what is constant is known."""
    model = parse(
        "agraph (float[N,2] x) => (float[N,2] y) <float[2,1] w = {3.0, 4.0}> "
        "{ n = Transpose(w) y = Add(x, n) }"
    )
    builder = GraphBuilder(model)
    assert builder.get_shape("n") == (1, 2)
    assert builder.get_constant("n", computed_value=True).tolist() == [[3, 4]]


def test_references_of_functions_are_not_constants():
    model = parse(
        '<ir_version: 10, opset_import: ["": 18, "f": 1]> agraph (float[2] x) => (float[2] y) '
        '{ y = f.g<v=0.5>(x) } <opset_import: ["": 18], domain: "f"> '
        "g <v> (u) => (w) { c = Constant<value_float: float = @v>() w = Add(u, c) }"
    )
    builder = GraphBuilder(model.functions[0], infer_shapes_options=True)
    assert not builder.is_constant("c")


UNIFORM = {
    "zeros": (np.zeros((2, 3), np.float32), 0.0),
    "ones": (np.ones(1 << 18, np.int8), 1),
    "true": (np.array(True), True),
    "mixed": (np.array([1, 2, 1]), None),
    "nan": (np.array([np.nan, np.nan], np.float32), None),
    "empty": (np.zeros((0, 3), np.float32), None),
    "big": (np.zeros((1 << 18) + 1, np.int8), None),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_value(name: str):
    value, expected = UNIFORM[name]
    g = GraphBuilder(18)
    g.make_initializer(name, value, allow_empty=True)
    for _ in range(2):
        found = g.constants.uniform_value(name)
        assert found is None if expected is None else found == expected


def test_uniform_value_of_results():
    """A result that depends on the inputs has none; the answer follows the initializer."""
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, (3,))
    g.make_initializer("zeros", np.zeros(3, np.float32))
    g.make_node("Neg", ["zeros"], ["n"])
    g.make_node("Add", ["x", "zeros"], ["y"])
    table = g.constants
    assert table.uniform_value("n") == 0 and table.uniform_value("zeros") == 0
    assert table.uniform_value("y") is None and table.uniform_value("unknown") is None
    table.remove_initializer("zeros")
    assert table.uniform_value("zeros") is None
    table.add_initializer("zeros", np.array([1, 2, 3], np.float32))
    assert table.uniform_value("zeros") is None


def test_what_was_computed_goes_with_its_node():
    """Another node gives the result: its value is another one until it is noted."""
    builder = GraphBuilder(18)
    builder.make_initializer("w", np.full(2, 3, dtype=np.float32))
    builder.make_tensor_input("x", TensorProto.FLOAT, (2,))
    builder.op.Neg("w", outputs=["a"])
    table, store = builder.constants, builder.store
    assert table.uniform_value("a") == -3 and table.is_constant("a")
    (record,) = store.replace([store.producers["a"]], [oh.make_node("Neg", ["x"], ["a"])])
    assert not table.is_constant("a") and table.value("a") is None
    assert table.uniform_value("a") is None and builder.get_shape("a") == (2,)
    store.replace([record], [oh.make_node("Abs", ["w"], ["a"])])
    infer_and_note(builder.graph, store.producers["a"], infer=False)
    assert table.uniform_value("a") == 3


def test_what_was_computed_follows_its_result():
    builder = GraphBuilder(18)
    builder.make_initializer("w", np.full(2, 3, dtype=np.float32))
    builder.op.Neg("w", outputs=["a"])
    table = builder.constants
    assert table.uniform_value("a") == -3
    builder.store.rename_result("a", "b")
    assert not table.is_constant("a") and "a" not in table.cached_names
    assert table.is_constant("b") and "b" in table.cached_names
    assert table.value("b").tolist() == [-3, -3] and builder.get_shape("b") == (2,)


def test_a_removed_initializer_is_not_shared():
    builder = GraphBuilder(18)
    value = np.ones(2, dtype=np.float32)
    name = builder.make_initializer("", value)
    builder.constants.change_initializer(name, np.zeros(3, dtype=np.float32))
    assert builder.get_shape(name) == (3,) and builder.constants.uniform_value(name) == 0
    other = builder.make_initializer("", value)
    assert other != name and builder.make_initializer("", value.copy()) == other
    builder.constants.remove_initializer(other)
    assert builder.make_initializer("", value) not in (name, other)


def test_a_constant_of_the_outer_graph_is_remembered_there():
    """The subgraph keeps nothing of it: it may go without the subgraph being told."""
    outer = GraphBuilder(18)
    outer.make_initializer("w", np.full(2, 3, dtype=np.float32))
    inner = outer.child()
    assert inner.constants.uniform_value("w") == 3
    assert outer.constants.cached_names == {"w"} and not inner.constants.cached_names
