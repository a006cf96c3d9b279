"""Formats of models: what is written can be read back, what cannot be kept is refused."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.numpy_helper as onh
import onnx.parser
import pytest

from xbuilder.errors import InvalidModelError, OptionError
from xbuilder.files.model_container import ModelContainer, save_model
from xbuilder.files.model_files import load_model
from xbuilder.files.model_formats import EXTENSIONS, format_of, serialize

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 4] x) => (float[N, 4] y) { [n0] a = Add(x, w)  y = LeakyRelu<alpha = 0.1>(a) }
"""
LOSSLESS = sorted(e for e, name in EXTENSIONS.items() if name != "onnxtxt")


def make_model(size: int = 4) -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT)
    weight = np.array([np.nan, -0.0, 1 / 3, np.inf], dtype=np.float32).repeat(size // 4)
    model.graph.initializer.append(onh.from_array(weight, "w"))
    model.graph.node[0].name = "é/\n\"'{"
    return model


@pytest.mark.parametrize(
    "path,expected",
    [
        ("m.onnx", "binary"),
        ("m", "binary"),
        ("m.txt", "binary"),
        ("json", "binary"),
        ("m.JSON", "json"),
        ("m.onnxjson", "json"),
        ("a.json/m.onnx", "binary"),
        ("m.onnx.pbtxt", "textproto"),
        ("m.onnxtext", "onnxtxt"),
    ],
)
def test_format_of(path: str, expected: str) -> None:
    assert format_of(path) == expected


@pytest.mark.parametrize("extension", LOSSLESS)
def test_what_is_written_is_what_onnx_reads(tmp_path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    save_model(make_model(), path)
    assert onnx.load(path).SerializeToString() == make_model().SerializeToString()
    assert load_model(path).proto.SerializeToString() == make_model().SerializeToString()


@pytest.mark.parametrize("extension", LOSSLESS)
def test_external_data(tmp_path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    names = ModelContainer(make_model(4096)).save(path)
    assert [n.removeprefix(str(tmp_path)) for n in names] == [
        f"/m{extension}.data",
        f"/m{extension}",
    ]
    assert path.stat().st_size < 4096
    again = ModelContainer.load(path)
    expected = onh.to_array(make_model(4096).graph.initializer[0])
    assert again.array(again.proto.graph.initializer[0]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("extension", [".onnxtxt", ".ONNXTEXT"])
def test_the_onnx_text_format_is_only_read(tmp_path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    for save in (ModelContainer(make_model()).save, lambda p: save_model(make_model(), p)):
        with pytest.raises(OptionError, match="models are only read from it"):
            save(path)
    assert not path.exists()
    path.write_text(TEXT.replace("w)", "x)"))
    assert len(load_model(path).proto.graph.node) == 2


BAD = {
    "empty object": ("m.json", "{}", "no graph"),
    "not json": ("m.json", "hello", "m.json' is not a model in JSON"),
    "other json": ("m.json", '[{"pattern": 1}]', "not a model in JSON"),
    "unknown field": ("m.json", '{"pattern": 1}', "pattern"),
    "wrong type": ("m.json", '{"graph": 3}', "not a model in JSON"),
    "wrong bytes": ("m.json", '{"graph": {"initializer": [{"rawData": 3}]}}', "not a model"),
    "truncated json": ("m.json", serialize(make_model(), "m.json")[:-50].decode(), "JSON"),
    "deep json": ("m.json", '{"graph":' * 100_000, "nested|JSON"),
    "deep list": ("m.json", "[" * 100_000, "nested|JSON"),
    "not textproto": ("m.textproto", "hello", "text format of protobuf"),
    "truncated textproto": (
        "m.textproto",
        serialize(make_model(), "m.textproto")[:-9].decode(),
        "text format of protobuf",
    ),
    "deep textproto": ("m.pbtxt", "graph { node { attribute { g {" + "node { attribute { g {" * 5000, "nested"),
    "empty textproto": ("m.pbtxt", "# nothing", "no graph"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_content(tmp_path, case: str) -> None:
    name, text, message = BAD[case]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidModelError, match=message) as e:
        load_model(path)
    assert name in str(e.value) and "\n" not in str(e.value)


def test_binary_content(tmp_path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b"\x08\xff")
    with pytest.raises(InvalidModelError, match="expected to be text"):
        load_model(path)


def test_json_is_json(tmp_path) -> None:
    assert json.loads(serialize(make_model(), "m.json"))["graph"]["name"] == "g"
