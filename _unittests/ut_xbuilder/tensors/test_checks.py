"""Tensors whose content has not the size of their type and dimensions."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError
from xbuilder.files.model_files import load_model
from xbuilder.nodes.tensors import tensor_array
from xbuilder.tensors.checks import check_content, content_problem


def tensor(data_type: str | int, dims: list[int], **fields: object) -> TensorProto:
    proto = TensorProto(name="w", dims=dims)
    proto.data_type = data_type if isinstance(data_type, int) else getattr(TensorProto, data_type)
    for name, value in fields.items():
        if isinstance(value, bytes):
            setattr(proto, name, value)
        else:
            getattr(proto, name).extend(value)
    return proto


BAD = {
    "no whole element": (tensor("FLOAT", [4], raw_data=b"1234567"), "7 bytes.*FLOAT.*need 16"),
    "short": (tensor("FLOAT", [2, 2], raw_data=bytes(8)), r"8 bytes.*\(2, 2\) need 16"),
    "long": (tensor("FLOAT", [4], raw_data=bytes(32)), "32 bytes.*need 16"),
    "short integers": (tensor("INT64", [4], raw_data=bytes(8)), "8 bytes.*INT64.*need 32"),
    "packed": (tensor("INT4", [3], raw_data=b"1"), "1 bytes.*INT4.*need 2"),
    "few floats": (tensor("FLOAT", [4], float_data=[1, 2]), "float_data has 2 values.*need 4"),
    "other field": (tensor("FLOAT", [1], int64_data=[1]), "float_data has 0 values.*need 1"),
    "empty": (tensor("DOUBLE", [4]), "double_data has 0 values.*need 4"),
    "empty raw data": (tensor("FLOAT", [4], raw_data=b""), "0 bytes.*need 16"),
    "half": (tensor("FLOAT16", [2], int32_data=[1]), "int32_data has 1 values.*FLOAT16.*need 2"),
    "packed values": (tensor("UINT4", [4], int32_data=[1]), "int32_data has 1.*need 2"),
    "complex": (tensor("COMPLEX64", [2], float_data=[1, 2]), "float_data has 2 values.*need 4"),
    "strings": (tensor("STRING", [2], string_data=[b"a"]), "string_data has 1 values.*need 2"),
    "no type": (tensor(0, [1], raw_data=b"1"), "no element type"),
    "raw strings": (tensor("STRING", [1], raw_data=b"a"), "string_data has 0 values.*need 1"),
}
NEGATIVE = tensor("FLOAT", [-1], raw_data=bytes(4))
GOOD = [
    np.zeros((2, 0), dtype=np.float32),
    np.array(1, dtype=np.int64),
    np.array([1 + 2j], dtype=np.complex64),
    np.array([1 + 2j], dtype=np.complex128),
    np.array([True, False]),
    np.array(["a", "b", "c"], dtype=object),
    *(np.ones(3, dtype=t) for t in "bBhHiIlLefd"),
]


def model(weight: TensorProto, as_attribute: bool) -> onnx.ModelProto:
    nodes = [oh.make_node("Add", ["x", "w"], ["y"])]
    if as_attribute:
        nodes.insert(0, oh.make_node("Constant", [], ["w"], name="here", value=weight))
    x, y = (oh.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xy")
    graph = oh.make_graph(nodes, "g", [x], [y], [] if as_attribute else [weight])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("case", BAD)
def test_damaged(case: str, tmp_path) -> None:
    proto, message = BAD[case]
    message = f"The content of tensor 'w'.* is damaged: .*{message}"
    with pytest.raises(InvalidModelError, match=message):
        check_content(proto, " of somebody")
    with pytest.raises(InvalidModelError, match=message):
        tensor_array(proto)
    for as_attribute in (False, True):
        path = tmp_path / "m.onnx"
        path.write_bytes(model(proto, as_attribute).SerializeToString())
        with pytest.raises(InvalidModelError, match=message) as e:
            load_model(path)
        assert ("of node 'here' (Constant)" in str(e.value)) is as_attribute
        with pytest.raises(InvalidModelError, match=message):
            GraphBuilder(path)
        # looking at the structure is allowed
        assert load_model(path, check_data=False).proto == model(proto, as_attribute)


def test_negative_dimension(tmp_path) -> None:
    assert "non-negative" in content_problem(NEGATIVE)
    path = tmp_path / "m.onnx"
    path.write_bytes(model(NEGATIVE, False).SerializeToString())
    with pytest.raises(InvalidModelError, match="'w'.*non-negative"):
        load_model(path)


def test_a_model_in_memory_is_checked_when_it_is_read() -> None:
    builder = GraphBuilder(model(BAD["short"][0], False))
    with pytest.raises(InvalidModelError, match="tensor 'w' is damaged: its content has 8 bytes"):
        builder.constants.value("w")


@pytest.mark.parametrize("value", GOOD, ids=lambda v: f"{v.dtype}{v.shape}")
def test_right_content(value: np.ndarray) -> None:
    proto = onh.from_array(value, "w")
    assert content_problem(proto) == ""
    np.testing.assert_array_equal(tensor_array(proto), value)
    if value.dtype.kind != "O":
        kind = proto.data_type
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            listed = oh.make_tensor("w", kind, value.shape, value.ravel().tolist())
        assert content_problem(listed) == ""


@pytest.mark.parametrize("kind", ["BFLOAT16", "FLOAT8E4M3FN", "INT4", "UINT4", "FLOAT4E2M1"])
def test_types_without_numpy_equivalent(kind: str) -> None:
    for raw in (False, True):
        values = [1, 0, 1]
        proto = oh.make_tensor("w", getattr(TensorProto, kind), [3], values)
        if raw:
            proto = onh.from_array(onh.to_array(proto), "w")
        assert content_problem(proto) == ""


def test_nothing_to_check() -> None:
    assert content_problem(TensorProto()) == "", "an attribute that holds nothing"
    external = tensor("FLOAT", [4])
    external.data_location = TensorProto.EXTERNAL
    assert content_problem(external) == ""


def test_a_type_of_the_future(tmp_path) -> None:
    """Nothing is known of its content: the tensor goes through as it is."""
    future = tensor(99, [4], raw_data=b"123")
    assert content_problem(future) == ""
    with pytest.raises(InvalidModelError, match="'w' .type 99.* cannot be read by this version"):
        tensor_array(future)
    path = tmp_path / "m.onnx"
    path.write_bytes(model(future, False).SerializeToString())
    builder = GraphBuilder(path)
    assert builder.constants.value("w") is None
    builder.optimize()
    assert builder.to_onnx().graph.initializer[0] == future
