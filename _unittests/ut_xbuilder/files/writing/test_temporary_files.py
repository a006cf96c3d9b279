"""Temporary files a killed process leaves, and their removal."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

from xbuilder.files import model_files
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import FileTransaction, write_all, write_file
from xbuilder.files.writing.temporary_files import TemporaryFiles, temporary_folder, temporary_name

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the test forks")

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[100] x) => (float[100] y) { a = Add(x, w) y = Mul(a, v) }
"""


def container(version: int) -> ModelContainer:
    """A model that tells the version of its weights."""
    model = onnx.parser.parse_model(MODEL)
    model.model_version = version
    weights = {n: np.full(100, version, np.float32) for n in "wv"}
    for name, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return ModelContainer(model)


def save(folder, version: int, one_file: bool = True) -> None:
    container(version).save(folder / "m.onnx", one_file, size_threshold=0)


def check_pair(folder) -> int:
    """The weights are those of the model: returns their version."""
    found = ModelContainer.load(folder / "m.onnx")
    for tensor in found.proto.graph.initializer:
        assert found.array(tensor).tolist() == [found.proto.model_version] * 100
    return found.proto.model_version


def killed(function, names, call: int) -> bool:
    """Runs a function in a process killed before its n-th call of some functions of os."""
    child = os.fork()
    if child == 0:
        count = [0]

        def deadly(original):
            def wrapper(*args, **kwargs):
                count[0] += 1
                if count[0] == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*args, **kwargs)

            return wrapper

        try:
            for name in names:
                setattr(os, name, deadly(getattr(os, name)))
            function()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("one_file", [True, False])
def test_killed_anywhere_the_model_has_its_data(tmp_path, one_file):
    """Killed before every change of the folder, between the data and the model among others."""
    versions, call = [], 0
    clean = {"m.onnx", "m.onnx.data"} if one_file else {"m.onnx", "m.onnx.w.data", "m.onnx.v.data"}
    while True:
        call += 1
        save(tmp_path, 1, one_file)
        assert set(os.listdir(tmp_path)) == clean, "what was left was not removed"
        if not killed(
            lambda: save(tmp_path, 2, one_file), ["replace", "link", "unlink", "fsync"], call
        ):
            break
        versions.append(check_pair(tmp_path))
    assert call > 8 and versions == sorted(versions) and set(versions) == {1, 2}
    assert check_pair(tmp_path) == 2 and set(os.listdir(tmp_path)) == clean


def test_temporary_files_of_living_processes_stay(tmp_path):
    orphans = [tmp_path / temporary_name(n) for n in ("m.onnx", "m.onnx", "other")]
    for path in orphans:
        path.write_bytes(b"x")
    with FileTransaction(tmp_path) as files:
        write_all(files.create("m.onnx"), b"first")
        assert not orphans[0].exists() and not orphans[1].exists()
        write_file(tmp_path / "m.onnx", b"second")
    assert (tmp_path / "m.onnx").read_bytes() == b"first"
    assert set(os.listdir(tmp_path)) == {"m.onnx", orphans[2].name}


def test_what_the_model_needs_stays(tmp_path):
    needed, other = temporary_name("m.data"), temporary_name("m.data")
    for name in (needed, other):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "m.onnx").write_bytes(b"..." + needed.encode() + b"...")
    TemporaryFiles(str(tmp_path)).remove("m.data", "m.onnx")
    assert set(os.listdir(tmp_path)) == {"m.onnx", needed}


def test_temporary_folders(tmp_path):
    left = tmp_path / temporary_name("m.onnx")
    left.mkdir()
    (left / "after.onnx").write_bytes(b"x")
    with temporary_folder(str(tmp_path), "m.onnx") as first:
        assert not left.exists()
        with temporary_folder(str(tmp_path), "m.onnx") as second:
            assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (first, second)))
    assert not os.listdir(tmp_path)


def test_the_folder_is_made(tmp_path):
    """It stays if something is written in it."""
    folder = tmp_path / "one" / "two"
    with temporary_folder(str(folder), "m.onnx") as work:
        assert os.path.dirname(work) == str(folder)
    assert not os.listdir(tmp_path)
    with temporary_folder(str(folder), "m.onnx"):
        write_file(folder / "m.onnx", b"x")
    assert os.listdir(folder) == ["m.onnx"]


@pytest.mark.parametrize("call", [1, 2])
def test_no_space_left_names_the_file_and_the_size(tmp_path, monkeypatch, call):
    """The disk is full when the data is written, or later, when it is flushed."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == 1:
        monkeypatch.setattr("xbuilder.files.data_writer.write_all", full)
    else:
        monkeypatch.setattr(model_files.os, "fsync", full)
    message = r"No space left on device, 800 bytes are needed, \d+ are free: '.*/m\.onnx'"
    with pytest.raises(OSError, match=message) as e, FileTransaction(tmp_path, "report.html") as t:
        t.create("report.html").write(b"x")
        save(tmp_path, 1)
    assert e.value.errno == errno.ENOSPC and not os.listdir(tmp_path)
    monkeypatch.setattr(model_files.os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "t.csv"))) as e:
        write_file(tmp_path / "t.csv", b"12345")
    assert "5 bytes are needed" in str(e.value)
