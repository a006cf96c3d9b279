"""Containers as models of onnx_ir."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator

from xbuilder import GraphBuilder
from xbuilder.files import ir_models
from xbuilder.files.model_container import ModelContainer

ir = pytest.importorskip("onnx_ir")


def builder_with(weight: np.ndarray) -> GraphBuilder:
    """y = x + w."""
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", builder.get_type(builder.make_initializer("w", weight)), (4,))
    builder.op.Add("x", "w", outputs=["y"])
    builder.make_tensor_output("y")
    return builder


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_large_initializers(dtype: type) -> None:
    weight = np.arange(4).astype(dtype)
    container = builder_with(weight).to_onnx(large_model=True, external_threshold=1)
    model = container.to_ir()
    value = model.graph.initializers["w"]
    assert value.const_value.shape == (4,) and value.const_value.name == "w"
    np.testing.assert_array_equal(value.const_value.numpy(), weight)
    proto = ir.to_proto(model)
    (got,) = ReferenceEvaluator(proto).run(None, {"x": weight})
    np.testing.assert_array_equal(got, weight + weight)
    again = GraphBuilder(model).to_onnx()
    assert [n.op_type for n in again.graph.node] == ["Add"]
    assert container.proto.graph.initializer[0].data_location == TensorProto.EXTERNAL


def test_large_initializers_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(tensor: TensorProto, source: object) -> None:
        raise AssertionError(f"{tensor.name} is copied")

    builder = builder_with(np.arange(4, dtype=np.float32))
    for i in range(20):
        builder.make_initializer(f"w{i}", np.full(4, i, dtype=np.float32))
    container = builder.to_onnx(large_model=True, external_threshold=1)
    monkeypatch.setattr(ir_models, "embed", never)
    model = container.to_ir()
    np.testing.assert_array_equal(
        model.graph.initializers["w"].const_value.numpy(), np.arange(4, dtype=np.float32)
    )


def test_tensors_of_attributes_are_embedded() -> None:
    node = onnx.helper.make_node("Constant", [], ["y"], value=from_array(np.zeros(2, np.float32)))
    graph = onnx.helper.make_graph(
        [node], "g", [], [onnx.helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    container = ModelContainer(model)
    content = np.array([1, 2], dtype=np.float32)
    container.set_source(model.graph.node[0].attribute[0].t, content)
    (got,) = ReferenceEvaluator(ir.to_proto(container.to_ir())).run(None, {})
    np.testing.assert_array_equal(got, content)


def test_files_stay_where_they_are(tmp_path: Path) -> None:
    weight = np.arange(4, dtype=np.float32)
    path = tmp_path / "m.onnx"
    builder_with(weight).to_onnx(large_model=True, external_threshold=1).save(path)
    container = GraphBuilder(path).to_onnx(large_model=True, external_threshold=1)
    np.testing.assert_array_equal(
        container.to_ir().graph.initializers["w"].const_value.numpy(), weight
    )
