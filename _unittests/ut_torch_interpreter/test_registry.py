"""The registry of converters, the types, the symbols."""

from __future__ import annotations

import pytest
import torch
from onnx import TensorProto

from torch_interpreter.registry import OutputFacts, aten, find_converter, registered_names
from torch_interpreter.types import (
    default_float,
    is_float,
    is_integer,
    promote,
    to_numpy_type,
    to_onnx_type,
    to_torch_type,
)


def test_duplicates_are_refused():
    with pytest.raises(ValueError, match=r"'aten.add.Tensor' already has the converter"):
        aten("aten.add.Tensor")(lambda g, sts, outputs: None)


def test_names():
    names = registered_names()
    assert len(names) > 300 and names == sorted(names)
    assert find_converter("aten.add.Tensor") is not None
    assert find_converter("aten.unknown.default") is None


def test_registered_aten_operators_exist():
    """A typo in a name would hide a converter."""
    unknown = []
    for name in registered_names():
        namespace, *rest = name.split(".")
        if namespace not in ("aten", "prims"):
            continue
        packet = getattr(getattr(torch.ops, namespace), rest[0], None)
        if packet is None or rest[1] not in packet.overloads():
            unknown.append(name)
    assert not unknown


def test_output_facts():
    facts = OutputFacts([1, 7], [(2, "a"), None])
    assert facts and facts.type == 1 and facts.shape == (2, "a")
    assert OutputFacts().type == 0 and OutputFacts().shape is None


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.bool, torch.uint8, torch.complex64]
)
def test_types_go_both_ways(dtype):
    assert to_torch_type(to_onnx_type(dtype)) is dtype


def test_python_types():
    assert to_onnx_type(int) == TensorProto.INT64
    assert to_onnx_type(float) == TensorProto.FLOAT == default_float()
    assert to_onnx_type(bool) == TensorProto.BOOL
    assert to_numpy_type(TensorProto.BFLOAT16).name == "bfloat16"
    with pytest.raises(TypeError, match="ONNX has no element type"):
        to_onnx_type(torch.quint8)


def test_kinds():
    assert is_float(TensorProto.FLOAT16) and not is_float(TensorProto.INT64)
    assert is_integer(TensorProto.UINT8) and not is_integer(TensorProto.BOOL)
    assert not is_integer(TensorProto.COMPLEX64)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        (((TensorProto.INT64, 2), 1.5), TensorProto.FLOAT),
        (((TensorProto.FLOAT16, 2), 1.5), TensorProto.FLOAT16),
        (((TensorProto.FLOAT16, 2), (TensorProto.FLOAT, 0)), TensorProto.FLOAT16),
        (((TensorProto.FLOAT16, 1), (TensorProto.FLOAT, 1)), TensorProto.FLOAT),
        (((TensorProto.BOOL, 1), 1), TensorProto.INT64),
        (((TensorProto.INT32, 1), (TensorProto.INT64, 0)), TensorProto.INT32),
        ((1, 2.5), TensorProto.FLOAT),
        ((True,), TensorProto.BOOL),
        (((TensorProto.DOUBLE, 3),), TensorProto.DOUBLE),
    ],
)
def test_promotion(operands, expected):
    assert promote(*operands) == expected
