"""Copies of models, with the content of their tensors or without it."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import ModelProto, TensorProto

from xbuilder.files import model_copies
from xbuilder.files.model_copies import content_size, copy_model


def _model() -> ModelProto:
    """Tensors everywhere: initializers, attributes, a body, a function, what trains it."""
    weight = onh.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    typed = oh.make_tensor("t", TensorProto.INT64, [2], [1, 2])
    value = oh.make_node("Constant", [], ["c"], value=weight)
    body = oh.make_graph([value], "body", [], [oh.make_tensor_value_info("c", 1, [2, 3])])
    branches = {"then_branch": body, "else_branch": body}
    nodes = [oh.make_node("If", ["b"], ["i"], **branches), oh.make_node("Add", ["i", "w"], ["y"])]
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("b", TensorProto.BOOL, [])],
        [oh.make_tensor_value_info("y", 1, [2, "n"])],
        [weight, typed],
        doc_string="a graph",
    )
    opset = oh.make_opsetid("", 18)
    function = oh.make_function("d", "f", [], ["c"], [value], [opset], ["p"])
    model = oh.make_model(graph, opset_imports=[opset], functions=[function], ir_version=9)
    oh.set_model_props(model, {"key": "value"})
    training = model.training_info.add()
    training.algorithm.CopyFrom(body)
    training.initialization_binding.add(key="w", value="c")
    return model


def test_a_small_model_is_copied_with_its_content() -> None:
    model = _model()
    copy = copy_model(model)
    assert copy == model and copy is not model


def test_the_content_of_a_large_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_copies, "_COPY_WITH_CONTENT", 0)
    model = _model()
    kept = model.SerializeToString()
    copy = copy_model(model)
    assert model.SerializeToString() == kept, "the model is left as it is"
    assert not copy.graph.initializer[0].raw_data
    assert list(copy.graph.initializer[1].int64_data) == [1, 2]
    bodies = [a.g for a in copy.graph.node[0].attribute]
    nodes = [*(n for b in bodies for n in b.node), copy.functions[0].node[0]]
    nodes.append(copy.training_info[0].algorithm.node[0])
    assert len(nodes) == 4 and not any(n.attribute[0].t.raw_data for n in nodes)
    # the rest is the same
    tensors = [copy.graph.initializer[0], *(n.attribute[0].t for n in nodes)]
    for tensor in tensors:
        tensor.raw_data = model.graph.initializer[0].raw_data
    assert copy == model


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        (onh.from_array(np.zeros((2, 3), np.float32)), 24),
        (TensorProto(dims=[2], data_type=99, raw_data=b"abc"), 3),
    ],
)
def test_content_size(tensor: TensorProto, size: int) -> None:
    assert content_size(tensor) == size
