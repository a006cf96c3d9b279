"""The command on models whose weights are in other files: formats, security, what is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

from xbuilder.files.external_data import ExternalSource
from xbuilder.files.writing.temporary_files import temporary_name
from xoptim.cli.options import saving as cli_saving

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 64] x) => (float[batch, 64] y) {
    a = MatMul(x, w)
    b = Add(a, zeros)
    r = Relu(b)
    c = Mul(r, v)
    y = Identity(c)
}
"""
W = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
V = np.arange(64, dtype=np.float32)
ZEROS = np.zeros(1, dtype=np.float32)


def proto() -> onnx.ModelProto:
    model = onnx.parser.parse_model(MODEL)
    for name, value in (("w", W), ("v", V), ("zeros", ZEROS)):
        model.graph.initializer.append(onh.from_array(value, name))
    return model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model in ``source``: every weight is in ``m.bin``."""
    folder = tmp_path / "source"
    folder.mkdir()
    save = {"save_as_external_data": True, "location": "m.bin", "size_threshold": 0}
    onnx.save(proto(), folder / "m.onnx", **save)
    return folder / "m.onnx"


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def locations(path: Path) -> dict[str, str]:
    """Name of a weight -> its file, an empty string if it is in the model."""
    graph = onnx.load(path, load_external_data=False).graph
    return {
        i.name: next((e.value for e in i.external_data if e.key == "location"), "")
        for i in graph.initializer
    }


def check_weights(path: Path) -> None:
    found = {i.name: onh.to_array(i) for i in onnx.load(path).graph.initializer}
    np.testing.assert_array_equal(found["w"], W)
    np.testing.assert_array_equal(found["v"], V)
    onnx.checker.check_model(path)


def rewrite(path: Path, weight: str, **entries: str) -> None:
    """Changes where a model says that a weight is."""
    model = onnx.load(path, load_external_data=False)
    tensor = next(i for i in model.graph.initializer if i.name == weight)
    known = {e.key: e.value for e in tensor.external_data} | entries
    del tensor.external_data[:]
    for key, value in known.items():
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    "options,data",
    [
        ([], {"w": "o.onnx.data", "v": ""}),
        (["--external", "one-file"], {"w": "o.onnx.data", "v": ""}),
        (["--external-threshold", "256"], {"w": "o.onnx.data", "v": "o.onnx.data"}),
        (["--external-threshold", "257"], {"w": "o.onnx.data", "v": ""}),
        (["--external-threshold", "20000"], {"w": "", "v": ""}),
        (
            ["--external", "per-tensor", "--external-threshold", "100"],
            {"w": "o.onnx.w.data", "v": "o.onnx.v.data"},
        ),
        (["--external", "embed"], {"w": "", "v": ""}),
    ],
    ids=str,
)
def test_formats(model, tmp_path, options, data):
    target = tmp_path / "target"
    target.mkdir()
    before = contents(model.parent)
    result = run("optimize", model, "-o", target / "o.onnx", "--verify", "--json", *options)
    assert locations(target / "o.onnx") == data
    assert files(target) == {"o.onnx", *filter(None, data.values())}
    check_weights(target / "o.onnx")
    assert contents(model.parent) == before
    info = json.loads(result.stdout)
    written = {Path(row["path"]).name: row["bytes"] for row in info["files"]}
    assert written == {p.name: p.stat().st_size for p in target.iterdir()}
    assert info["bytes_written"] == sum(written.values())
    assert info["weight_bytes_before"] == W.nbytes + V.nbytes + ZEROS.nbytes
    assert info["weight_bytes_after"] == W.nbytes + V.nbytes
    assert info["verification"]["ok"] is True


@pytest.mark.parametrize("external,names", [("auto", {"o.onnx"}), ("one-file", None)])
def test_a_model_in_one_file(tmp_path, external, names):
    onnx.save(proto(), tmp_path / "m.onnx")
    run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--external", external)
    assert files(tmp_path) - {"m.onnx"} == (names or {"o.onnx", "o.onnx.data"})
    check_weights(tmp_path / "o.onnx")


def test_auto_leaves_the_model_when_it_is_too_big(tmp_path, monkeypatch):
    """The limit of protobuf is 2 GB, a lower one shows the same."""
    onnx.save(proto(), tmp_path / "m.onnx")
    limited = cli_saving.SavingFormat

    def smaller(*args: object):
        return limited(*args, max_proto_bytes=W.nbytes)

    monkeypatch.setattr(cli_saving, "SavingFormat", smaller)
    args = ["optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx"]
    stderr = run(*args, "--external", "embed", code=1).stderr
    assert f"cannot exceed {W.nbytes}" in stderr and "--external embed" in stderr
    assert files(tmp_path) == {"m.onnx"}
    run(*args)
    assert files(tmp_path) == {"m.onnx", "o.onnx", "o.onnx.data"}
    check_weights(tmp_path / "o.onnx")


def test_text_report_tells_the_files(model, tmp_path):
    lines = run("optimize", model, "-o", tmp_path / "o.onnx").output.splitlines()
    assert any("16.0 KB" in line and line.endswith("o.onnx.data") for line in lines)


def test_refer_to_source(model):
    before = contents(model.parent)
    output = model.with_name("o.onnx")
    run("optimize", model, "-o", output, "--refer-to-source", "--verify")
    assert locations(output) == {"w": "m.bin", "v": ""}
    assert files(model.parent) == {"m.onnx", "m.bin", "o.onnx"}
    check_weights(output)
    assert before.items() <= contents(model.parent).items()


def test_refer_to_source_from_another_folder(model, tmp_path):
    """A model reads below its folder only: it can be above the data, not beside."""
    target = tmp_path / "target"
    target.mkdir()
    result = run("optimize", model, "-o", target / "o.onnx", "--refer-to-source", code=1)
    assert "m.bin" in result.stderr and "in the folder of the data" in result.stderr
    assert files(target) == set()
    run("optimize", model, "-o", tmp_path / "o.onnx", "--refer-to-source", "--verify")
    assert locations(tmp_path / "o.onnx") == {"w": "source/m.bin", "v": ""}
    check_weights(tmp_path / "o.onnx")


@pytest.mark.parametrize("option", [["--external-threshold", "1"], ["--refer-to-source"]])
def test_options_without_effect(model, tmp_path, option):
    args = ["-o", tmp_path / "o.onnx", "--external", "embed", *option]
    result = run("optimize", model, *args, code=2)
    assert "has no effect with --external embed" in " ".join(result.stderr.split())


def test_only_what_a_rewrite_needs_is_read(model, tmp_path, monkeypatch):
    """Operands of Add and Mul may be neutral, the large weight is copied from file to file."""
    read = []
    kept = ExternalSource.map_bytes

    def map_bytes(source: ExternalSource) -> np.ndarray:
        read.append(source.nbytes)
        return kept(source)

    monkeypatch.setattr(ExternalSource, "map_bytes", map_bytes)
    run("optimize", model, "-o", tmp_path / "o.onnx", "--external-threshold", "1")
    assert set(read) == {ZEROS.nbytes, V.nbytes}
    check_weights(tmp_path / "o.onnx")
    assert "Add" not in [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node]


def traversal(path: Path) -> None:
    (path.parents[1] / "secret.bin").write_bytes(b"s" * W.nbytes)
    rewrite(path, "w", location="../secret.bin", offset="0")


def absolute(path: Path) -> None:
    rewrite(path, "w", location=str(path.with_name("m.bin")))


def link(path: Path) -> None:
    outside = path.parents[1] / "outside.bin"
    path.with_name("m.bin").rename(outside)
    path.with_name("m.bin").symlink_to(outside)


def truncated(path: Path) -> None:
    os.truncate(path.with_name("m.bin"), 100)


def missing(path: Path) -> None:
    path.with_name("m.bin").unlink()


def offset(path: Path) -> None:
    rewrite(path, "w", offset="1000000")


def length(path: Path) -> None:
    rewrite(path, "w", length="12")


BROKEN = {
    traversal: "secret.bin",
    absolute: "m.bin",
    link: "m.bin",
    truncated: "m.bin",
    missing: "m.bin",
    offset: "'w'",
    length: "'w'",
}


@pytest.mark.parametrize("external", ["auto", "embed", "per-tensor"])
@pytest.mark.parametrize("damage", BROKEN, ids=lambda f: f.__name__)
def test_data_that_cannot_be_trusted(model, tmp_path, damage, external):
    damage(model)
    before = contents(model.parent)
    target = tmp_path / "target"
    target.mkdir()
    args = ["optimize", model, "-o", target / "o.onnx", "--external", external]
    result = run(*args, code=1)
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert BROKEN[damage] in result.stderr
    assert files(target) == set()
    assert contents(model.parent) == before
    told = json.loads(run(*args, "--json", code=1).stdout)
    assert told["ok"] is False and BROKEN[damage] in told["error"]


def test_data_root_with_bisect(model, tmp_path):
    link(model)
    assert "--data-root" in run("bisect", model, code=1).stderr
    done = run("bisect", model, "--data-root", tmp_path)
    assert "every rewrite is right" in done.stdout


def test_data_root_with_verify(model, tmp_path):
    """onnxruntime does not follow the link, the command does once the folder is trusted."""
    link(model)
    run("optimize", model, "-o", tmp_path / "o.onnx", "--data-root", tmp_path, "--verify")
    check_weights(tmp_path / "o.onnx")
    assert files(tmp_path) == {"source", "outside.bin", "o.onnx", "o.onnx.data"}


@pytest.mark.parametrize("output", ["m.onnx", "link.onnx"])
@pytest.mark.parametrize("external", ["auto", "per-tensor", "embed"])
@pytest.mark.parametrize("location", ["m.bin", "m.onnx.data"])
def test_in_place(tmp_path, output, external, location):
    """The input is replaced, even when its data file has the name of the new one."""
    save = {"save_as_external_data": True, "location": location, "size_threshold": 0}
    onnx.save(proto(), tmp_path / "m.onnx", **save)
    (tmp_path / "link.onnx").symlink_to("m.onnx")
    args = ["optimize", tmp_path / "m.onnx", "-o", tmp_path / output, "--external", external]
    run(*args, "--verify", "--external-threshold" if external != "embed" else "--seed", 0)
    assert (tmp_path / "link.onnx").is_symlink() and not (tmp_path / "m.onnx").is_symlink()
    assert [n.op_type for n in onnx.load(tmp_path / "m.onnx").graph.node] == [
        "MatMul",
        "Relu",
        "Mul",
    ]
    check_weights(tmp_path / "m.onnx")
    run(*args)
    check_weights(tmp_path / "m.onnx")


def test_in_place_with_the_data_of_the_source(model):
    before = contents(model.parent)
    run("optimize", model, "-o", model, "--refer-to-source", "--external-threshold", 0, "--verify")
    check_weights(model)
    assert set(locations(model).values()) == {"m.bin"}
    assert contents(model.parent)["m.bin"] == before["m.bin"]


def test_a_link_to_another_folder(model, tmp_path):
    """The data file would be beside the target, where nobody looks for it from the link."""
    other = tmp_path / "other"
    other.mkdir()
    output = other / "o.onnx"
    output.symlink_to(tmp_path / "real.onnx")
    result = run("optimize", model, "-o", output, code=2)
    assert "in another folder" in result.stderr and "--external embed" in result.stderr
    assert files(tmp_path) == {"source", "other"} and files(other) == {"o.onnx"}
    run("optimize", model, "-o", output, "--external", "embed")
    check_weights(tmp_path / "real.onnx")
    assert output.is_symlink() and files(other) == {"o.onnx"}


@pytest.mark.parametrize("exists", [False, True])
def test_the_data_of_the_input_is_not_overwritten(tmp_path, exists):
    """The data file of the input has the name the output would choose."""
    save = {"save_as_external_data": True, "location": "o.onnx.data"}
    onnx.save(proto(), tmp_path / "m.onnx", **save)
    if exists:
        onnx.save(proto(), tmp_path / "o.onnx")
    before = contents(tmp_path)
    run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--verify")
    check_weights(tmp_path / "o.onnx")
    after = contents(tmp_path)
    assert {n: after[n] for n in ("m.onnx", "o.onnx.data")} == {
        n: before[n] for n in ("m.onnx", "o.onnx.data")
    }
    assert files(tmp_path) == {"m.onnx", "o.onnx.data", "o.onnx", "o.onnx.1.data"}


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize("external", ["one-file", "embed"])
def test_the_data_file_is_refused_as_output(model, option, external):
    before = contents(model.parent)
    data = model.with_name("m.bin")
    args = [option, data, "--external", external]
    if option == "--report":  # the page is a link to the data
        args[1] = model.with_name("page.html")
        args[1].symlink_to(data)
        args.append("--dry-run")
        before = contents(model.parent)
    stderr = " ".join(run("optimize", model, *args, code=2).stderr.replace("│", "").split())
    assert "the input model or its data" in stderr
    assert contents(model.parent) == before


def test_data_the_result_does_not_need_is_not_overwritten(tmp_path):
    """Only the zeros are outside: the optimized model has no link with their file any more."""
    model = onnx.load_from_string(proto().SerializeToString())
    zeros = next(i for i in model.graph.initializer if i.name == "zeros")
    onnx.external_data_helper.set_external_data(zeros, "o.onnx.data", 0, ZEROS.nbytes)
    zeros.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "o.onnx.data").write_bytes(ZEROS.tobytes())
    run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--verify")
    assert (tmp_path / "o.onnx.data").read_bytes() == ZEROS.tobytes()
    assert locations(tmp_path / "o.onnx") == {"w": "o.onnx.1.data", "v": ""}
    check_weights(tmp_path / "o.onnx")


def test_full_disk_leaves_nothing(model, tmp_path, monkeypatch):
    """The data is written, the model cannot be."""
    before = contents(model.parent)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("xbuilder.files.model_container.write_all", fail)
    result = run("optimize", model, "-o", tmp_path / "o.onnx", code=1)
    assert "No space left" in result.stderr
    assert files(tmp_path) == {"source"}
    assert contents(model.parent) == before


def test_what_a_killed_run_left_is_removed_by_the_next_one(model, tmp_path):
    out = tmp_path / "o.onnx"
    for name in ("o.onnx", "o.onnx.data", "s.csv"):
        (tmp_path / temporary_name(name)).write_bytes(b"killed")
    verification = tmp_path / temporary_name("o.onnx")
    verification.mkdir()
    (verification / "after.onnx").write_bytes(b"killed")
    args = ["--verify", "--external-threshold", "0", "--stats", tmp_path / "s.csv"]
    run("optimize", model, "-o", out, *args)
    assert files(tmp_path) == {"source", "o.onnx", "o.onnx.data", "s.csv"}
    check_weights(out)
