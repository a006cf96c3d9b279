"""Tests of xbuilder.files.data_writer."""

from __future__ import annotations

import os

import numpy as np
import onnx.numpy_helper as onh
import pytest
from ut_xbuilder.container_models import (
    assert_contents,
    make_arrays,
    make_model,
    references,
    save_arrays,
)

from xbuilder.errors import ExternalDataError, OptionError
from xbuilder.files.data_writer import safe_name
from xbuilder.files.external_data import external_array
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.files.writing.write_back import NewFile


def test_alignment(tmp_path, monkeypatch):
    monkeypatch.setattr("xbuilder.files.data_writer._BIG", 4000)
    arrays = {f"w{i}": np.arange(n, dtype=np.float32) for i, n in enumerate([3, 5, 1000, 7])}
    ModelContainer(make_model(arrays)).save(tmp_path / "m.onnx", size_threshold=0)
    offsets = [int(r["offset"]) for r in references(tmp_path / "m.onnx").values()]
    assert offsets == [0, 64, 4096, 8128]
    assert_contents(tmp_path / "m.onnx", arrays)


def test_the_room_of_big_tensors_is_reserved(tmp_path, monkeypatch):
    reserved = []
    monkeypatch.setattr("xbuilder.files.data_writer._BIG", 4000)
    monkeypatch.setattr(NewFile, "reserve", lambda f, size: reserved.append((f.tell(), size)))
    arrays = {f"w{i}": np.arange(n, dtype=np.float32) for i, n in enumerate([3, 1000, 7, 2000])}
    ModelContainer(make_model(arrays)).save(tmp_path / "m.onnx", size_threshold=0)
    assert reserved == [(4096, 4000), (8192, 8000)]
    assert_contents(tmp_path / "m.onnx", arrays)


def test_tied_tensors_are_written_once(tmp_path):
    array = np.arange(600, dtype=np.float32)
    sources = {
        "a": array,
        "same_object": array,
        "same_memory": array[:],
        "other_shape": array.reshape(20, 30),
        "reversed": array[::-1],
        "copy": array.copy(),
    }
    offsets = offsets_written_twice(tmp_path, sources)
    assert offsets["a"] == offsets["same_object"] == offsets["same_memory"]
    assert offsets["a"] == offsets["other_shape"]
    assert len({offsets[k] for k in ("a", "reversed", "copy")}) == 3


def test_tied_tensors_of_torch_are_written_once(tmp_path):
    torch = pytest.importorskip("torch")
    parameter = torch.arange(600.0)
    sources = {
        "a": np.arange(600, dtype=np.float32),
        "t": parameter,
        "same_memory": parameter.view(600),
        "reshaped": parameter.view(20, 30),
    }
    offsets = offsets_written_twice(tmp_path, sources)
    assert offsets["t"] == offsets["same_memory"] != offsets["a"]


def offsets_written_twice(folder, sources):
    """The place of each source in the data; ties survive a copy, with one file per tensor as well."""
    arrays = {k: np.asarray(v) for k, v in sources.items()}
    container = ModelContainer(make_model(arrays), sources)
    container.save(folder / "m.onnx")
    assert_contents(folder / "m.onnx", arrays)
    offsets = {k: r["offset"] for k, r in references(folder / "m.onnx").items()}
    again = ModelContainer.load(folder / "m.onnx")
    written = again.save(folder / "n.onnx", all_tensors_to_one_file=False)
    assert len(written) - 1 == len(set(offsets.values()))
    assert_contents(folder / "n.onnx", arrays)
    return offsets


def test_another_model_keeps_its_data(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays, location="n.onnx.data")
    ModelContainer.load(path).save(tmp_path / "n.onnx")
    assert_contents(path, arrays)
    assert_contents(tmp_path / "n.onnx", arrays)
    assert "n.onnx.1.data" in os.listdir(tmp_path)
    with pytest.raises(OptionError, match=r"n\.onnx\.data"):
        ModelContainer.load(path).save(tmp_path / "o.onnx", location="n.onnx.data")


def test_refer_to_source_in_another_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    arrays = make_arrays()
    path = save_arrays(tmp_path / "sub", arrays)
    container = ModelContainer.load(path)
    container.save(tmp_path / "m.onnx", refer_to_source=True)
    assert {r["location"] for r in references(tmp_path / "m.onnx").values()} == {"sub/m.onnx.data"}
    assert_contents(tmp_path / "m.onnx", arrays)
    (tmp_path / "other").mkdir()
    with pytest.raises(ExternalDataError, match="refer_to_source=False"):
        container.save(tmp_path / "other" / "m.onnx", refer_to_source=True)
    with pytest.raises(ExternalDataError, match="another name"):
        container.save(tmp_path / "sub" / "m.onnx.data", refer_to_source=True)
    assert os.listdir(tmp_path / "other") == []
    assert_contents(path, arrays)


NAMES = [
    "../../etc/passwd",
    "..",
    ".hidden",
    "/abs/olute",
    "C:\\x",
    "a/b",
    "a:b",
    "a_b",
    "A_B",
    "",
    "CON",
    "x" * 1000,
    "x" * 1001,
    "poids\u00e9",
    "poidse\u0301",
    "\u6743" * 200,
    "new\nline",
    "0\0",
    "-rf",
    "m.onnx",
]


def test_one_file_per_tensor_with_any_name(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    model = make_model({})
    model.graph.output[0].name = "x"
    arrays = [np.full(300, i, np.float32) for i in range(len(NAMES))]
    for name, array in zip(NAMES, arrays, strict=True):
        model.graph.initializer.append(onh.from_array(array, name))
    written = ModelContainer(model).save(folder / "m.onnx", all_tensors_to_one_file=False)
    assert len({w.casefold() for w in written}) == len(NAMES) + 1
    assert os.listdir(tmp_path) == ["folder"]
    assert sorted(os.path.basename(w) for w in written) == sorted(os.listdir(folder))
    assert {os.path.dirname(w) for w in written} == {str(folder)}
    loaded = load_model(folder / "m.onnx")
    for tensor, array in zip(loaded.proto.graph.initializer, arrays, strict=True):
        np.testing.assert_array_equal(external_array(tensor, folder), array)


def test_safe_name():
    assert safe_name("a/b\\c:d*e?") == "a_b_c_d_e_"
    assert safe_name("layer.0-weight_1") == "layer.0-weight_1"
    assert safe_name("...") == "_" and safe_name("") == "tensor"
    assert len(safe_name("\u6743" * 200).encode()) <= 80


@pytest.mark.parametrize(
    "location", ["../x", "/x", "a/b", "a\\b", "..", "", "m.onnx", "M.ONNX", "C:x"]
)
def test_location_must_be_a_name(tmp_path, location):
    with pytest.raises(OptionError, match="Wrong name for the data file"):
        save_arrays(tmp_path, make_arrays(), location=location)
    assert os.listdir(tmp_path) == []


def test_location(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays, location="weights.bin")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "weights.bin"]
    assert_contents(path, arrays)
    with pytest.raises(OptionError, match="one file"):
        save_arrays(tmp_path, arrays, location="w.bin", all_tensors_to_one_file=False)


def test_model_name_with_odd_characters(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays, name="a\\..\\b:c.onnx")
    assert {r["location"] for r in references(path).values()} == {"a___b_c.onnx.data"}
    assert_contents(path, arrays)
