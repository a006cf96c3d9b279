"""Models in files, folders, globs and addresses."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnx.numpy_helper as onh
import pytest

from xbuilder.errors import OptionError
from xbuilder.files.model_files import write_file
from xoptim.tasks.many.places import Output, Source, file_system, find_sources, local_file

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { y = Neg(x) }"""


@pytest.fixture
def models(tmp_path):
    """A folder of three models, one of them in a folder, and another file."""
    folder = tmp_path / "models"
    for name in ("a.onnx", "b.onnx", "deep/a.onnx"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(MODEL), path)
    (folder / "read.me").write_text("no model")
    return folder


@pytest.fixture
def memory():
    """The memory of fsspec, empty at the end."""
    pytest.importorskip("fsspec")
    system, _ = file_system("memory://")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def names(*texts, output=""):
    return [source.name for source in find_sources(texts, output)]


def test_files_folders_and_globs(models):
    assert names(models / "a.onnx") == ["a.onnx"]
    assert names(models) == ["a.onnx", "b.onnx", "deep/a.onnx"]
    assert names(f"{models}/*.onnx") == ["a.onnx", "b.onnx"]
    assert names(f"{models}/**/*.onnx") == names(models)
    assert names(f"{models}/d*/*.onnx") == ["deep/a.onnx"]
    assert names(models, models / "b.onnx") == names(models), "a model named twice is one"


def test_a_glob_of_the_current_folder(models, monkeypatch):
    monkeypatch.chdir(models)
    assert names("*.onnx") == ["a.onnx", "b.onnx"] and names(".") == names(models)


def test_the_output_is_no_source(models):
    assert names(models, output=models / "deep") == ["a.onnx", "b.onnx"]


def test_no_file():
    with pytest.raises(OptionError, match="'nowhere.onnx' does not exist"):
        find_sources(["nowhere.onnx"])


@pytest.mark.parametrize("text", ["{0}/none*.onnx", "{0}/*.ort", "{0}/read*/x"])
def test_no_model(models, text):
    with pytest.raises(OptionError, match="has no model: a file, a folder"):
        find_sources([text.format(models)])


def test_two_models_of_one_name(models):
    with pytest.raises(OptionError, match=r"would both be written in 'a\.onnx'"):
        find_sources([models / "a.onnx", models / "deep" / "a.onnx"], "out")
    assert names(models / "a.onnx", models / "deep" / "a.onnx") == ["a.onnx", "a.onnx"]


def test_addresses(memory):
    for name in ("/zoo/a.onnx", "/zoo/deep/b.onnx", "/zoo/c.txt"):
        memory.pipe_file(name, b"content")
    assert names("memory://zoo") == ["a.onnx", "deep/b.onnx"]
    assert names("memory://zoo/a.onnx") == ["a.onnx"]
    assert names("memory://zoo/*.onnx") == ["a.onnx"]
    assert str(find_sources(["memory://zoo/a.onnx"])[0]) == "memory:///zoo/a.onnx"
    with pytest.raises(OptionError, match="has no model"):
        find_sources(["memory://nowhere"])


def test_an_unknown_driver():
    pytest.importorskip("fsspec")
    with pytest.raises(OptionError, match="nothing://x' cannot be read: .*nothing"):
        find_sources(["nothing://x"])


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(OptionError, match="pip install fsspec"):
        find_sources(["s3://bucket/models"])


def weights(location):
    """A model whose weight is in another file."""
    proto = onnx.parser.parse_model(MODEL.replace("Neg(x)", "Add(x, w)"))
    tensor = onh.from_array(np.ones(4, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    proto.graph.initializer.append(tensor)
    return proto.SerializeToString()


def test_weights_come_with_the_model(memory, tmp_path):
    memory.pipe_file("/zoo/a.onnx", weights("deep/w.bin"))
    memory.pipe_file("/zoo/deep/w.bin", np.ones(4, np.float32).tobytes())
    path = local_file(find_sources(["memory://zoo/a.onnx"])[0], tmp_path)
    assert path == tmp_path / "a.onnx" and (tmp_path / "deep" / "w.bin").stat().st_size == 16


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd"])
def test_weights_out_of_the_folder(memory, tmp_path, location):
    memory.pipe_file("/zoo/a.onnx", weights(location))
    with pytest.raises(OptionError, match="out of its folder"):
        local_file(Source("/zoo/a.onnx", "a.onnx", "memory://zoo"), tmp_path)


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_output(where, memory, tmp_path):
    """A result goes to a folder or to an address, and is found there."""
    output = Output("memory://out" if where == "memory" else str(tmp_path / "out"))
    assert output.size("deep/a") == -1 and output.read("deep/a") == b""
    path = output.place("deep/a", tmp_path / "work")
    write_file(path, b"result")
    output.send([path], tmp_path / "work")
    assert output.size("deep/a") == 6 and output.read("deep/a") == b"result"
    output.write("notes/b", b"note")
    assert output.read("notes/b") == b"note"
    assert output.shown("deep/a").endswith("out/deep/a")
