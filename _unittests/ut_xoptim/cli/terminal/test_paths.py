"""Files given on the command line: links, pipes, folders, rights, odd names, formats."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

from xbuilder.files.model_files import load_model

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, M] x) => (float[N, M] y) {
    a = Transpose(x)  b = Transpose(a)  c = Identity(b)  y = Abs(c) }
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def told(result) -> str:
    return " ".join(result.stderr.split())


def ops(path: Path) -> list[str]:
    return [n.op_type for n in load_model(path).proto.graph.node]


def snapshot(folder: Path) -> dict[str, object]:
    """The content of a folder; links and special files are not followed."""
    return {
        p.name: p.read_bytes() if p.is_file() and not p.is_symlink() else os.lstat(p).st_ino
        for p in folder.iterdir()
    }


def make_socket(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.bind(path.name)  # relative: the length of the path of a socket is limited


def read_only(path: Path) -> None:
    path.write_bytes(b"precious")
    path.chmod(0o444)


#: what is at the place of the output -> how to make it, words of the message
BAD_OUTPUTS = {
    "pipe": (lambda p: os.mkfifo(p), "named pipe"),
    "socket": (make_socket, "a socket"),
    "link to a pipe": (lambda p: (os.mkfifo("fifo"), p.symlink_to("fifo")), "named pipe"),
    "folder": (lambda p: p.mkdir(), "is a folder"),
    "link to a folder": (lambda p: (Path("f").mkdir(), p.symlink_to("f")), "is a folder"),
    "loop": (lambda p: p.symlink_to(p.name), "leads nowhere"),
    "link to no folder": (lambda p: p.symlink_to("no/where.onnx"), "does not exist"),
    "read-only": (read_only, "read-only"),
}
COMMANDS = {
    "optimize": (["optimize", "m.onnx", "-o"], "out.onnx"),
    "json": (["optimize", "m.onnx", "--json", "-o"], "out.json"),
    "stats": (["optimize", "m.onnx", "--dry-run", "--stats"], "out.csv"),
    "profile": (["optimize", "m.onnx", "--dry-run", "--profile-output"], "out.svg"),
    "html": (["optimize", "m.onnx", "--dry-run", "--report"], "out.html"),
    "print": (["print", "m.onnx", "-o"], "out.txt"),
    "dot": (["dot", "m.onnx", "-o"], "out.dot"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", BAD_OUTPUTS)
def test_bad_output(command, case, model, tmp_path, monkeypatch):
    args, name = COMMANDS[command]
    make, message = BAD_OUTPUTS[case]
    make(tmp_path / name)
    if case == "read-only" and os.geteuid() == 0:  # root may write everything
        monkeypatch.setattr("xoptim.cli.terminal.paths.os.access", lambda p, mode: mode != os.W_OK)
    before = snapshot(tmp_path)
    result = run(*args, name, code=2)
    assert message in told(result) and name in told(result)
    assert snapshot(tmp_path) == before
    if command == "json":
        assert json.loads(result.stdout)["ok"] is False


@pytest.mark.parametrize(
    "output,message",
    [
        ("-", "standard output"),
        ("", "is a folder"),
        (".", "is a folder"),
        ("new/", "is a folder"),
        ("m.onnx/out.onnx", "folder of 'm.onnx/out.onnx' cannot be made, 'm.onnx' is a file"),
        ("m.onnx/no/out.onnx", "'m.onnx' is a file"),
        ("out.txt", "'out.txt' is no name of a model: expected .onnx, .json or .textproto"),
        ("out.PNG", "is no name of a model"),
        ("out.onnxtxt", "onnxtxt': the ONNX text format does not keep"),
        ("out.onnxtext", "models are only read from it"),
        ("out.ort", "out.ort': .ort is a format of onnxruntime"),
    ],
)
def test_bad_name_of_output(output, message, model, tmp_path):
    before = snapshot(tmp_path)
    assert message in told(run("optimize", model, "-o", output, code=2))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("output", ["one/two/out.onnx", "out.v2", "out", "out.bin"])
def test_new_folder_and_other_extensions(output, model, tmp_path):
    """The folder is made with the file, not when the command fails before."""
    run("optimize", model, output, "-p", "Unknown", code=2)
    assert not (tmp_path / "one").exists()
    run("optimize", model, output, "--verify")
    assert (tmp_path / output).is_file()
    run("optimize", model, "--dry-run", "--report", "reports/page.html")
    assert (tmp_path / "reports/page.html").is_file()


def test_folder_without_rights(model, tmp_path, monkeypatch):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.geteuid() == 0:
        monkeypatch.setattr(
            "xoptim.cli.terminal.paths.os.access", lambda p, mode: Path(p) != folder
        )
    result = run("optimize", model, "-o", folder / "o.onnx", code=2)
    assert "is not writable" in told(result) and "locked" in told(result)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_is_followed(command, exists, model, tmp_path):
    """The link stays, the file it leads to is written, new or not."""
    args, name = COMMANDS[command]
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    if exists:
        target.write_bytes(b"former")
    (tmp_path / name).symlink_to("real/file")
    run(*args, name)
    assert (tmp_path / name).is_symlink() and not target.is_symlink()
    assert target.stat().st_size > 6
    assert [p.name for p in target.parent.iterdir()] == ["file"]


def test_a_link_to_the_input(model, tmp_path):
    (tmp_path / "page.html").symlink_to("m.onnx")
    before = snapshot(tmp_path)
    result = run("optimize", model, "--dry-run", "--report", "page.html", code=2)
    assert "is the input model" in told(result)
    assert snapshot(tmp_path) == before


def test_two_names_of_one_file(model, tmp_path):
    (tmp_path / "a.html").symlink_to("out.onnx")
    result = run("optimize", model, "-o", "out.onnx", "--report", "a.html", code=2)
    assert "written twice" in told(result)


def test_in_place(model, tmp_path):
    model.chmod(0o640)
    run("optimize", model, "-o", model, "--verify")
    assert ops(model) == ["Abs"]
    assert model.stat().st_mode & 0o777 == 0o640
    assert set(snapshot(tmp_path)) == {"m.onnx"}


def test_in_place_and_a_failure(model, tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    before = snapshot(tmp_path)
    assert "No space" in run("optimize", model, "-o", model, code=1).stderr
    assert snapshot(tmp_path) == before


def test_interrupted(model, tmp_path, monkeypatch):
    """Ctrl-C while the file is written leaves nothing, the exit code says it failed."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = snapshot(tmp_path)
    monkeypatch.setattr("xbuilder.files.model_files.os.fsync", interrupt)
    run("optimize", model, "-o", "out.onnx", "--stats", "s.csv", "--report", "r.html", code=1)
    assert snapshot(tmp_path) == before


def test_in_place_for_a_text(model, tmp_path):
    """The output would not be a model, so the input would be lost."""
    before = snapshot(tmp_path)
    assert "is the input model" in told(run("print", model, "-o", model, code=2))
    assert snapshot(tmp_path) == before


BAD_INPUTS = {
    "nothing": (lambda p: None, "does not exist"),
    "folder": (lambda p: p.mkdir(), "is a folder"),
    "pipe": (lambda p: os.mkfifo(p), "named pipe"),
    "socket": (make_socket, "a socket"),
    "dangling link": (lambda p: p.symlink_to("nowhere"), "does not exist"),
    "loop": (lambda p: p.symlink_to(p.name), "does not exist"),
}


@pytest.mark.parametrize("command", ["optimize", "print", "dot", "bisect"])
@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input(command, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, message = BAD_INPUTS[case]
    make(tmp_path / "in.onnx")
    more = ["-o", "out.onnx"] if command == "optimize" else []
    result = run(command, "in.onnx", *more, code=2)
    assert message in told(result) and "in.onnx" in told(result)


def test_standard_input(model):
    assert "standard input" in told(run("optimize", "-", "--dry-run", code=2))


@pytest.mark.parametrize(
    "name", ["a b.onnx", "é日本.onnx", "-o.onnx", 'it\'s "q".onnx', "n\nl.onnx"]
)
def test_odd_names(name, model, tmp_path):
    folder = tmp_path / f"folder {name}"
    folder.mkdir()
    source = folder / name
    source.write_bytes(model.read_bytes())
    out = folder / f"out {name}"
    run("optimize", "-o", out, "--verify", "--", source)
    assert ops(out) == ["Abs"]
    info = json.loads(run("optimize", "--json", "-o", out, "--", source).stdout)
    assert info["output"] == str(out) and info["files"][0]["path"] == str(out)
    run("print", source)
    run("dot", source, "-o", folder / "d.dot")


@pytest.mark.parametrize("external", ["embed", "one-file"])
@pytest.mark.parametrize("name", ["o.json", "o.ONNXJSON", "o.textproto", "o.pbtxt", "o.pb", "o"])
def test_formats(name, external, model, tmp_path):
    """A format is chosen by the extension; every command reads it again."""
    run("optimize", model, "-o", name, "--external", external, "--verify")
    assert ops(tmp_path / name) == ["Abs"]
    binary = name in ("o", "o.pb")
    assert (tmp_path / name).read_bytes().startswith(b"\x08") is binary
    run("optimize", name, "-o", "again.onnx", "--verify")
    assert ops(tmp_path / "again.onnx") == ["Abs"]
    assert "Abs(x)" in run("print", name).output


def test_text_is_read(model, tmp_path):
    run("print", model, "--syntax", "onnx", "-o", "m.onnxtxt")
    run("optimize", "m.onnxtxt", "-o", "o.onnx", "--verify")
    assert ops(tmp_path / "o.onnx") == ["Abs"]


@pytest.mark.parametrize("name", ["o.jpg", "o.onnx", "o.json", "o"])
def test_a_drawing_has_a_known_format(name, model, tmp_path):
    before = snapshot(tmp_path)
    assert ".dot, .gv, .txt, .svg, .png, .pdf" in told(run("dot", model, "-o", name, code=2))
    assert snapshot(tmp_path) == before
