"""Tests of xbuilder.files.tensor_sources."""

from __future__ import annotations

import errno
import os

import ml_dtypes
import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto
from ut_xbuilder.container_models import (
    assert_contents,
    make_arrays,
    make_model,
    save_arrays,
)

from xbuilder.errors import ExternalDataError, InvalidModelError
from xbuilder.files import tensor_sources
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.tensor_sites import iter_external_tensors
from xbuilder.files.tensor_sources import copy_bytes


def make_kinds():
    """Sources of every kind but torch, and the arrays they stand for."""
    rng = np.random.default_rng(1)
    base = rng.random((40, 30), dtype=np.float32)
    int4 = rng.integers(-8, 8, (3, 5)).astype(ml_dtypes.int4)
    bf16 = base.astype(ml_dtypes.bfloat16)
    arrays = {
        "transposed": base.T,
        "sliced": base[::2, 1::3],
        "fortran": np.asfortranarray(base),
        "expanded": np.broadcast_to(np.float32(3), (20, 30)),
        "scalar": np.array(5, dtype=np.int64),
        "bool": base > 0.5,
        "complex": (base + 1j).astype(np.complex64),
        "big_endian": np.arange(5, dtype=">i4"),
        "int4": int4,
        "int4_T": int4.T,
        "bf16": bf16,
        "proto_raw": onh.from_array(base),
        "proto_typed": oh.make_tensor("t", TensorProto.INT64, [2], [5, 6]),
        "proto_typed_int4": oh.make_tensor("t", TensorProto.INT4, [3], [1, -2, 3]),
        "proto_typed_bf16": oh.make_tensor("t", TensorProto.BFLOAT16, [2], [1.5, -2.0]),
    }
    expected = {
        **{k: v for k, v in arrays.items() if isinstance(v, np.ndarray)},
        "big_endian": np.arange(5, dtype=np.int32),
        "proto_raw": base,
        "proto_typed": np.array([5, 6]),
        "proto_typed_int4": np.array([1, -2, 3], dtype=ml_dtypes.int4),
        "proto_typed_bf16": np.array([1.5, -2.0], dtype=ml_dtypes.bfloat16),
    }
    return arrays, {name: expected[name] for name in arrays}


def make_torch_kinds():
    """Tensors of torch, and the arrays they stand for."""
    torch = pytest.importorskip("torch")
    base = np.random.default_rng(1).random((40, 30), dtype=np.float32)
    bf16 = base.astype(ml_dtypes.bfloat16)
    arrays = {
        "f32": torch.from_numpy(base),
        "T": torch.from_numpy(base).T,
        "grad": torch.nn.Parameter(torch.from_numpy(base + 1)),
        "bf16": torch.from_numpy(base).to(torch.bfloat16),
        "bf16_T": torch.from_numpy(base).to(torch.bfloat16).T,
        "f8": torch.from_numpy(base).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(3.0, dtype=torch.bfloat16),
        "conj": torch.tensor([1 + 2j, 3 - 1j]).conj(),
    }
    expected = {
        "f32": base,
        "T": base.T,
        "grad": base + 1,
        "bf16": bf16,
        "bf16_T": bf16.T,
        "f8": base.astype(ml_dtypes.float8_e4m3fn),
        "scalar": np.array(3, dtype=ml_dtypes.bfloat16),
        "conj": np.array([1 - 2j, 3 + 1j], dtype=np.complex64),
    }
    return arrays, expected


@pytest.mark.parametrize("make", [make_kinds, make_torch_kinds])
def test_sources_of_all_kinds(tmp_path, make):
    arrays, expected = make()
    model = make_model({})
    model.graph.output[0].name = "x"
    for name in arrays:
        model.graph.initializer.add(name=name)
    container = ModelContainer(model, arrays)
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(container.array(tensor), expected[tensor.name])
    container.save(tmp_path / "m.onnx", size_threshold=0)
    assert_contents(tmp_path / "m.onnx", expected)
    whole = container.to_model_proto()
    assert not list(iter_external_tensors(whole))
    for tensor in whole.graph.initializer:
        assert onh.to_array(tensor).tobytes() == expected[tensor.name].tobytes(), tensor.name


def test_non_contiguous_arrays_are_written_by_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tensor_sources, "CHUNK", 100)
    array = np.arange(64 * 33, dtype=np.float64).reshape(64, 33).T
    ModelContainer(make_model({"a": array[:, :0], "b": array}), {"b": array}).save(
        tmp_path / "m.onnx"
    )
    assert_contents(tmp_path / "m.onnx", {"a": array[:, :0], "b": array})


def test_wrong_sources():
    arrays = make_arrays(1)
    for value, message in (
        (np.zeros(600, np.float64), "expected to have type"),
        (np.zeros((600, 1), np.float32), "expected to have type"),
        ("text", "Expected a numpy array"),
        (np.array(["a"]), "No ONNX element type"),
        (np.array([object()]), "No ONNX element type"),
    ):
        with pytest.raises(InvalidModelError, match=message):
            ModelContainer(make_model(arrays), {"w0": value})
    with pytest.raises(InvalidModelError, match="no initializer"):
        ModelContainer(make_model(arrays), {"other": arrays["w0"]})


def test_content_shorter_than_its_dimensions(tmp_path):
    model = make_model(make_arrays(1))
    model.graph.initializer[0].dims[:] = [2**40]
    with pytest.raises(InvalidModelError, match="'w0' has 2400 bytes"):
        ModelContainer(model).save(tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == []
    with pytest.raises(InvalidModelError):
        ModelContainer(model).to_model_proto()


def test_torch_tensor_without_content(tmp_path):
    torch = pytest.importorskip("torch")
    container = ModelContainer(make_model(make_arrays(1)), {"w0": torch.empty(600, device="meta")})
    with pytest.raises(InvalidModelError, match="no content"):
        container.save(tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == []


def test_copy_goes_from_file_to_file(tmp_path, monkeypatch):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)

    def fails(*args):
        raise AssertionError("an external tensor is not loaded to be copied")

    for module in ("tensor_sources.FileSource.array", "external_data.ExternalSource.map_bytes"):
        monkeypatch.setattr(f"xbuilder.files.{module}", fails)
    ModelContainer.load(path).save(tmp_path / "n.onnx")
    monkeypatch.undo()
    assert_contents(tmp_path / "n.onnx", arrays)


@pytest.mark.parametrize("how", ["missing", "unsupported", "zero", "partial"])
def test_copy_without_help_from_the_system(tmp_path, monkeypatch, how):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)
    original = os.copy_file_range

    def copy(source, target, size, offset):
        if how == "unsupported":
            raise OSError(errno.EXDEV, "no")
        return original(source, target, min(size, 11), offset) if how == "partial" else 0

    monkeypatch.setattr(tensor_sources, "CHUNK", 1000)
    if how == "missing":
        monkeypatch.delattr(tensor_sources.os, "copy_file_range")
    else:
        monkeypatch.setattr(tensor_sources.os, "copy_file_range", copy)
    ModelContainer.load(path).save(tmp_path / "n.onnx")
    assert_contents(tmp_path / "n.onnx", arrays)


def test_copy_bytes_of_a_file_too_short(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    source = os.open(tmp_path / "a", os.O_RDONLY)
    with (
        open(tmp_path / "b", "wb", buffering=0) as target,
        pytest.raises(ExternalDataError, match="shorter"),
    ):
        copy_bytes(source, 1, target, 5)
    os.close(source)
    assert (tmp_path / "b").read_bytes() == b"bc"
