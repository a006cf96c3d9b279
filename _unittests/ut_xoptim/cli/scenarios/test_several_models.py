"""``xoptim optimize`` with several models, or with an output that is another model."""

from __future__ import annotations

import json

import onnx
import pytest
from ut_xoptim.cli.command_line import files, ops, parse, run

ONE = '<ir_version: 8, opset_import: ["" : 18]> g (float[n] x) => (float[n] y) { y = Exp(x) }'
OTHER = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n] x) => (float[n] z) { t = Identity(x) z = Log(t) }"""


@pytest.fixture
def two(tmp_path):
    """A folder of two models."""
    folder = tmp_path / "two"
    folder.mkdir()
    for name, text in (("a", ONE), ("b", OTHER)):
        onnx.save(parse(text), folder / f"{name}.onnx")
    return folder


def test_another_model_is_not_replaced(two):
    """A shell writes `two/*.onnx` as both files."""
    before = (two / "b.onnx").read_bytes()
    message = run(two / "a.onnx", two / "b.onnx", code=2).stderr
    assert "is another model" in message and "--force" in message and "--output-dir" in message
    assert (two / "b.onnx").read_bytes() == before
    run(two / "a.onnx", two / "b.onnx", "--force")
    assert ops(two / "b.onnx") == ["Exp"]


@pytest.mark.parametrize("command", [("extract", "--to", "y"), ("check", "--fix")])
def test_other_commands_replace_no_other_model(two, command):
    """What they write may have other inputs or outputs than what is there."""
    name, *options = command
    arguments = [name, two / "a.onnx", *options, two / "b.onnx"]
    if name == "extract":
        arguments = [name, two / "a.onnx", two / "b.onnx", *options]
    before = (two / "b.onnx").read_bytes()
    message = run(*arguments, code=2).stderr
    assert "is another model" in message and "--force" in message
    assert (two / "b.onnx").read_bytes() == before
    run(*arguments, "--force")
    assert (two / "b.onnx").read_bytes() != before
    run(*arguments)


@pytest.mark.parametrize(
    "text", [OTHER.replace("z)", "y)").replace("z =", "y =").replace("n] x", "n, 2] x"), ONE]
)
def test_types_and_names(two, text):
    """Another shape is another model; the same signature may be an earlier output."""
    onnx.save(parse(text), two / "b.onnx")
    run(two / "a.onnx", two / "b.onnx", code=0 if text == ONE else 2)


def test_what_is_no_model_is_replaced(two):
    (two / "old.onnx").write_text("no model")
    run(two / "a.onnx", two / "old.onnx")
    assert ops(two / "old.onnx") == ["Exp"]


def test_the_input_may_be_the_output(two):
    run(two / "b.onnx", two / "b.onnx")
    assert ops(two / "b.onnx") == ["Log"]


def test_batch(two, tmp_path):
    """The folder is made."""
    out = tmp_path / "new" / "out"
    run(*sorted(two.glob("*.onnx")), "--output-dir", out, "--dry-run")
    assert not out.parent.exists()
    run(*sorted(two.glob("*.onnx")), "--output-dir", out)
    assert files(out) == {"a.onnx", "b.onnx"} and ops(out / "b.onnx") == ["Log"]


def test_batch_without_output(two, tmp_path):
    run(*sorted(two.glob("*.onnx")), "--output-dir", tmp_path, "--dry-run")
    assert files(tmp_path) == {"two/a.onnx", "two/b.onnx"} or files(tmp_path) == {"two"}


def test_batch_goes_on_after_a_failure(two, tmp_path):
    (two / "aa.onnx").write_text("no model")
    models = sorted(two.glob("*.onnx"))
    result = run(*models, "--output-dir", tmp_path, code=1)
    assert "1 of 3 models failed" in result.stderr and "aa.onnx" in result.stderr
    assert ops(tmp_path / "b.onnx") == ["Log"]
    found = json.loads(run(*models, "--output-dir", tmp_path, "--json", code=1).stdout)
    assert not found["ok"] and [row["ok"] for row in found["models"]] == [True, False, True]


def test_two_models_of_one_name(two, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    onnx.save(parse(ONE), other / "a.onnx")
    message = run(two / "a.onnx", other / "a.onnx", "--output-dir", tmp_path, code=2).stderr
    assert "written twice" in message


def test_dry_run_with_an_output(two):
    """Nothing is written: the option is added to a command that writes."""
    run(two / "b.onnx", two / "new.onnx", "--dry-run")
    assert not (two / "new.onnx").exists()
    run(two / "a.onnx", two / "b.onnx", "--dry-run")
