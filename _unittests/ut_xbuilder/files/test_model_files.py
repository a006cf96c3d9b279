"""Tests of xbuilder.files.model_files."""

from __future__ import annotations

import io
import os
import pickle
import stat
import zipfile

import numpy as np
import onnx
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

from xbuilder.errors import ExternalDataError, InvalidModelError
from xbuilder.files import model_files
from xbuilder.files.model_files import FileTransaction, load_model, write_all, write_file

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
agraph (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
    # a comment with brackets ((((( and "quotes
    y = Add(x, w)
}
"""


def make_model():
    return onnx.parser.parse_model(TEXT)


def make_external_model(location="w.bin", size=12):
    model = make_model()
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(TensorProto(name="w", dims=[3], data_type=TensorProto.FLOAT))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return model


def temporary_files(folder):
    return [n for n in os.listdir(folder) if n.endswith(".tmp")]


def test_load_model(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    path.write_bytes(make_model().SerializeToString())
    loaded = load_model(path)
    assert loaded.proto == make_model()
    assert (loaded.path, loaded.base_dir) == (str(path), str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load_model("m.onnx").base_dir == str(tmp_path), "never an empty folder"


def test_load_model_text(tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_text(TEXT)
    assert load_model(path).proto == make_model()


@pytest.mark.parametrize(
    "text, message",
    [
        ("hello", "not a model in ONNX text format"),
        ('<ir_version: 8, opset_import: ["" : 18]> g (float x) =>', "ONNX text format"),
        ('<ir_version: 8, opset_import: ["" : 18]> g (float x) => () {}', "no output"),
        ("{" * 200_000, "nested"),
        ("<ir_version: 8> g () => (float y) { y = If <g = x () => (float z) " * 3000, "nested"),
        ('"}}}}" => ' + '{ "}}}" => # }}}\n' * 200_000, "nested"),
    ],
)
def test_load_model_wrong_text(tmp_path, text, message):
    path = tmp_path / "m.onnxtxt"
    path.write_text(text)
    with pytest.raises(InvalidModelError, match=message) as e:
        load_model(path)
    assert "m.onnxtxt" in str(e.value)


def test_binary_model_named_as_text(tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidModelError, match="expected to be text"):
        load_model(path)


def make_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        z.writestr("data.pkl", "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty"),
        (b"hello world, this is no model\n" * 10, "text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
        (make_zip(), "zip archive"),
        (pickle.dumps({"a": 1}), "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00" + b'{"a":{}}', "safetensors"),
        (b"\x18\x00\x00\x00ORTM" + bytes(30), "onnxruntime"),
        (b"\x08\x07", "no graph"),
        (onh.from_array(np.zeros(5), "t").SerializeToString(), "is not one or is truncated"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_load_model_not_a_model(tmp_path, content, message):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=message) as e:
        load_model(path)
    assert "m.onnx" in str(e.value)


def test_load_model_bad_paths(tmp_path):
    with pytest.raises(InvalidModelError, match="cannot find.*nothing.onnx"):
        load_model(tmp_path / "nothing.onnx")
    (tmp_path / "here.onnx").write_bytes(b"x")
    with pytest.raises(InvalidModelError, match=r"is a folder; did you mean here\.onnx"):
        load_model(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidModelError, match="not a regular file"):
        load_model(tmp_path / "fifo")
    with pytest.raises(InvalidModelError, match="cannot find"):
        load_model(str(tmp_path / "a\0b"))
    with pytest.raises(InvalidModelError, match="cannot be read"):
        (tmp_path / "here.onnx").chmod(0)
        if os.geteuid() == 0:  # root reads everything
            raise InvalidModelError("cannot be read")
        load_model(tmp_path / "here.onnx")


def test_load_model_random_bytes(tmp_path):
    path = tmp_path / "m.onnx"
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 5, 8, 20, 100, 1000):
        for _ in range(50):
            path.write_bytes(rng.integers(0, 256, size, dtype=np.uint8).tobytes())
            with pytest.raises(InvalidModelError):
                load_model(path)


def test_load_model_truncated_anywhere(tmp_path):
    path = tmp_path / "m.onnx"
    content = make_model().SerializeToString()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(InvalidModelError):
            load_model(path)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.ClearField("graph"), "no graph"),
        (lambda m: m.ClearField("ir_version"), "ir_version"),
        (lambda m: setattr(m, "ir_version", -1), "ir_version"),
        (lambda m: m.ClearField("opset_import"), "no opset"),
        (lambda m: setattr(m.opset_import[0], "version", 0), "version 0"),
        (lambda m: m.graph.ClearField("output"), "no output"),
        (lambda m: setattr(m.graph.output[0], "name", ""), "no name"),
        (lambda m: setattr(m.graph.node[0], "op_type", ""), "no op_type"),
    ],
)
def test_load_model_implausible(tmp_path, change, message):
    model = make_model()
    change(model)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidModelError, match=message):
        load_model(path)


def test_load_model_invalid_utf8(tmp_path):
    model = make_model()
    model.graph.node[0].input[0] = "xxx"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString().replace(b"xxx", b"\xff\xfe\xff"))
    with pytest.raises(InvalidModelError, match="UTF-8"):
        load_model(path)


def test_load_model_accepts_what_is_unusual_but_valid(tmp_path):
    old = ModelProto(ir_version=1)
    old.graph.output.add(name="y")
    old.graph.node.add(op_type="Whatever", domain="unknown", output=["y"])
    path = tmp_path / "m.onnx"
    path.write_bytes(old.SerializeToString())
    assert load_model(path).proto == old


def test_load_model_external_data(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(make_external_model().SerializeToString())
    with pytest.raises(ExternalDataError, match=r"w\.bin"):
        load_model(path)
    assert load_model(path, check_data=False).proto == make_external_model()
    (tmp_path / "w.bin").write_bytes(bytes(12))
    loaded = load_model(path)
    assert not loaded.proto.graph.initializer[0].HasField("raw_data")


def test_load_model_with_huge_external_data(tmp_path):
    model = make_external_model()
    tensor = model.graph.initializer[0]
    tensor.dims[:] = [2**30]
    tensor.external_data[2].value = str(2**32)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", 2**32)  # sparse: takes no place on the disk
    assert load_model(tmp_path / "m.onnx").proto == model
    with pytest.raises(InvalidModelError, match="data file"):
        load_model(tmp_path / "w.bin")


def test_load_model_hugging_face(tmp_path):
    snapshot = tmp_path / "models--a--b" / "snapshots" / "rev"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "1").write_bytes(make_external_model().SerializeToString())
    (blobs / "2").write_bytes(bytes(12))
    (snapshot / "m.onnx").symlink_to("../../blobs/1")
    (snapshot / "w.bin").symlink_to("../../blobs/2")
    assert load_model(snapshot / "m.onnx").base_dir == str(snapshot)


def test_load_model_allowed_roots(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "m.onnx").write_bytes(make_external_model().SerializeToString())
    (tmp_path / "b" / "w.bin").write_bytes(bytes(12))
    (tmp_path / "a" / "w.bin").symlink_to("../b/w.bin")
    with pytest.raises(ExternalDataError, match="allowed_roots"):
        load_model(tmp_path / "a" / "m.onnx")
    loaded = load_model(tmp_path / "a" / "m.onnx", [tmp_path / "b"])
    assert loaded.allowed_roots == (str(tmp_path / "b"),)
    assert load_model(tmp_path / "a" / "m.onnx", str(tmp_path / "b")) == loaded


def test_write_file_replaces_and_keeps_the_mode(tmp_path):
    path = tmp_path / "m.onnx"
    umask = os.umask(0o022)
    try:
        assert write_file(path, b"abc") == str(path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o640)
    write_file(path, b"")
    assert path.read_bytes() == b"" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_write_file_replaces_a_link_not_its_target(tmp_path):
    (tmp_path / "blob").write_bytes(b"keep")
    (tmp_path / "m.onnx").symlink_to("blob")
    write_file(tmp_path / "m.onnx", b"new")
    assert (tmp_path / "blob").read_bytes() == b"keep"
    assert (tmp_path / "m.onnx").read_bytes() == b"new"


def test_transaction_bad_targets(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        write_file(tmp_path / "file" / "no" / "m.onnx", b"")
    (tmp_path / "file").unlink()
    (tmp_path / "dir").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "dir", b"")
    with FileTransaction(tmp_path) as files:
        for name in ("../x", "a/b", "..", ""):
            with pytest.raises(ValueError):
                files.create(name)
    assert os.listdir(tmp_path) == ["dir"]


def write_two(folder, content):
    with FileTransaction(folder) as files:
        write_all(files.create("a"), content)
        write_all(files.create("b"), content)


def fail_at(monkeypatch, name, call):
    """Makes a function of os fail at its n-th call, as a full disk does."""
    original = getattr(os, name)
    count = [0]

    def fails(*args, **kwargs):
        count[0] += 1
        if count[0] == call:
            raise OSError(28, "No space left on device")
        return original(*args, **kwargs)

    monkeypatch.setattr(model_files.os, name, fails)
    return count


@pytest.mark.parametrize("existing", [("a", "b"), ("a",), ("b",), ()])
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize(
    "name, call", [("fsync", 1), ("fsync", 2), *(("replace", i) for i in range(1, 5))]
)
def test_transaction_failure_leaves_everything_as_it_was(
    tmp_path, monkeypatch, existing, links, name, call
):
    for n in existing:
        (tmp_path / n).write_bytes(b"old " + n.encode())
    if not links:

        def no_link(*args, **kwargs):
            raise PermissionError

        monkeypatch.setattr(model_files.os, "link", no_link)
    with monkeypatch.context() as patch:
        calls = fail_at(patch, name, call)
        try:
            write_two(tmp_path, b"new")
            assert calls[0] < call, "the failure was swallowed"
            expected = dict.fromkeys("ab", b"new")
        except OSError:
            expected = {n: b"old " + n.encode() for n in existing}
    assert {n: (tmp_path / n).read_bytes() for n in os.listdir(tmp_path)} == expected


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_transaction_interrupted(tmp_path, error):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error), FileTransaction(tmp_path) as files:
        write_all(files.create("a"), b"new")
        raise error
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"old"


def test_write_all_with_short_writes():
    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data[:3]))

    file = Slow()
    write_all(file, b"0123456789", chunk=4)
    write_all(file, np.arange(4, dtype=np.uint8))
    write_all(file, b"")
    assert file.getvalue() == b"0123456789\0\1\2\3"
