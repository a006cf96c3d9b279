"""Queries and statements about results."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from xbuilder import FactError, GraphBuilder


def new():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 3))
    builder.make_tensor_input("u", None, None)
    return builder


@pytest.mark.parametrize(
    "query", ["get_type", "get_shape", "get_rank", "get_device", "get_sequence", "get_constant"]
)
@pytest.mark.parametrize("name", ["u", "unknown"])
def test_what_is_not_known_raises(query, name):
    with pytest.raises(FactError, match=f"'{name}'"):
        getattr(new(), query)(name)


@pytest.mark.parametrize(
    "query",
    [
        "has_type",
        "has_shape",
        "has_rank",
        "has_device",
        "is_sequence",
        "has_sequence",
        "is_constant",
    ],
)
def test_not_knowing_is_normal(query):
    assert getattr(new(), query)("unknown") is False


def test_types_shapes_ranks():
    builder = new()
    assert builder.get_type("x") == TensorProto.FLOAT
    assert builder.has_shape("x") and not builder.has_shape("x", full=True)
    assert builder.get_rank("x") == 2
    builder.set_type("u", TensorProto.INT64)
    builder.set_rank("u", 2)
    assert builder.has_rank("u") and not builder.has_shape("u")
    builder.set_shape("u", (None, "2*batch"))
    first, second = builder.get_shape("u")
    assert builder.is_generated(first) and second == "2*batch"
    builder.set_shape("u", (5, "batch*2"))
    assert builder.get_shape("u") == (5, "2*batch")
    assert not builder.has_shape("u", full=True)
    builder.set_shape("y", (1, 2))
    assert builder.has_shape("y", full=True)
    with pytest.raises(FactError):
        builder.set_rank("y", 3)


def test_values():
    builder = new()
    builder.make_node("Shape", ["x"], ["s"])
    assert builder.value_as_shape("s") == ("batch", 3)
    assert builder.value_as_shape("x") is None
    builder.set_value_shape("u", ("batch", 1))
    assert builder.value_as_shape("u") == ("batch", 1)


def test_sequences_and_devices():
    builder = new()
    builder.set_sequence("seq", TensorProto.FLOAT, ("n", 3))
    assert (
        builder.is_sequence("seq")
        and builder.has_sequence("seq")
        and builder.get_sequence("seq").shape == ("n", 3)
    )
    builder.set_device("x", -1)
    assert builder.get_device("x") == -1


def test_generated_dimensions():
    builder = new()
    a, b = builder.new_dimension("nz"), builder.new_dimension("nz")
    assert a != b
    assert builder.is_generated(a) and builder.is_generated(f"{a}+1")
    assert not builder.is_generated("batch") and not builder.is_generated(3)
    assert builder.unique_dimension_name("batch") != "batch"
    assert builder.unique_dimension_name("free") == "free"


def test_dynamic_objects():
    builder = new()
    builder.make_tensor_input("z", TensorProto.FLOAT, ("seq+1", "batch"))
    assert builder.dynamic_objects == {"batch": "x[0]", "seq": "z[0]"}


def test_clean_shape():
    builder = new()
    shape = builder.clean_shape([np.int64(3), "1+seq", None])
    assert shape[:2] == (3, "seq+1") and isinstance(shape[0], int)
