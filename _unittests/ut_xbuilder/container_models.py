"""Models with large tensors, and the expected content of the files they are saved in."""

from __future__ import annotations

import os

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
from onnx import TensorProto

from xbuilder.files.external_data import external_array
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.files.tensor_sites import iter_external_tensors


def make_model(arrays, **more):
    """A model which adds initializers to its input, one after the other."""
    nodes, last = [], "x"
    for i, name in enumerate(arrays):
        nodes.append(oh.make_node("Add", [last, name], [f"y{i}"]))
        last = f"y{i}"
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])],
        [oh.make_tensor_value_info(last, TensorProto.FLOAT, ["N", "M"])],
        [onh.from_array(a, n) for n, a in arrays.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8, **more)


def make_arrays(n=3, size=600):
    rng = np.random.default_rng(0)
    return {f"w{i}": rng.random(size, dtype=np.float32) for i in range(n)}


def make_placeholders(arrays):
    """The same model without the content of its initializers."""
    model = make_model(arrays)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
    return model


def contents(path):
    """Everything in a saved model, read by onnx and by this project, which have to agree."""
    loaded = load_model(path)
    expected = onnx.load(str(path))
    found = {}
    for mine, theirs in zip(
        loaded.proto.graph.initializer, expected.graph.initializer, strict=True
    ):
        array = onh.to_array(theirs)
        if mine.data_location == TensorProto.EXTERNAL:
            np.testing.assert_array_equal(external_array(mine, loaded.base_dir), array)
        found[mine.name] = array
    return found


def assert_contents(path, arrays):
    found = contents(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes(), name


def files_of(folder):
    return {n: (folder / n).read_bytes() for n in os.listdir(folder)}


def references(path):
    return {
        t.name: {e.key: e.value for e in t.external_data}
        for t in iter_external_tensors(load_model(path).proto)
    }


def save_arrays(folder, arrays, name="m.onnx", **options):
    ModelContainer(make_model(arrays)).save(folder / name, **options)
    return folder / name
