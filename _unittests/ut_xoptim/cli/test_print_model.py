"""``xoptim print``, ``xoptim dot`` and ``xoptim patterns``."""

from __future__ import annotations

import json
import shutil
import sys

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

import xoptim.cli.print_model as cli_print

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 4] x) => (float[batch, 4] y) { a = Relu(x)  y = Neg(a) }
"""


def test_print(model):
    text = run("print", model).output
    assert "Relu(x)" in text and "Neg(a)" in text and "batch" in text


def test_print_onnx_syntax_can_be_parsed(model, tmp_path):
    target = tmp_path / "m.txt"
    run("print", model, "--syntax", "onnx", "-o", target)
    again = onnx.parser.parse_model(target.read_text(encoding="utf-8"))
    assert [n.op_type for n in again.graph.node] == ["Relu", "Neg"]


def test_shapes_of_results(model, tmp_path):
    text = run("print", model).output
    assert "a = Relu(x)  # float[batch, 4]" in text and "y = Neg(a)  # float[batch, 4]" in text
    assert "#" not in run("print", model, "--no-shapes").output
    info = json.loads(run("print", model, "--json").stdout)
    assert info["results"] == {"a": "float[batch, 4]", "y": "float[batch, 4]"}
    body = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n, 4] x, bool c) => (y) { y = If(c) <then_branch = a () => (o) { o = Neg(x) },
    else_branch = b () => (p) {
        v, w = Split<num_outputs = 2, axis = 1>(x) p = Concat<axis = 1>(w, v) }> }"""
    model.write_bytes(onnx.parser.parse_model(body).SerializeToString())
    text = run("print", model).output
    assert "o = Neg(x)  # float[n, 4]" in text
    assert "v, w = Split(x, num_outputs=2, axis=1)  # float[n, 2], float[n, 2]" in text


def test_shapes_of_a_model_that_is_not_valid(model):
    proto = onnx.load(model)
    proto.graph.node[0].input[0] = "nothing"
    model.write_bytes(proto.SerializeToString())
    assert "a = Relu(nothing)" in run("print", model).output


def test_print_json(model):
    info = json.loads(run("print", model, "--json").stdout)
    assert info["op_types"] == {"Relu": 1, "Neg": 1}
    assert info["inputs"] == ["x"] and info["outputs"] == ["y"]
    assert info["opsets"] == {"ai.onnx": 18}


def test_print_refuses_to_overwrite_the_model(model):
    content = model.read_bytes()
    assert "is the input model" in run("print", model, "-o", model, code=2).stderr
    assert model.read_bytes() == content


def test_print_bad_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x80\x04 pickled")
    assert "pickle" in run("print", path, code=1).stderr


def test_print_what_onnx_refuses(model):
    proto = onnx.load(model)
    proto.graph.initializer.add(name="w", data_type=1, dims=[3], raw_data=b"1234567")
    model.write_bytes(proto.SerializeToString())
    assert (
        "--syntax pretty prints any model" in run("print", model, "--syntax", "onnx", code=1).stderr
    )
    assert "w: float[3] = not readable" in run("print", model).output


def test_dot(model, tmp_path):
    assert 'label="Relu"' in run("dot", model).output
    target = tmp_path / "m.dot"
    run("dot", model, "-o", target)
    assert target.read_text(encoding="utf-8").startswith("digraph")
    assert "digraph" in json.loads(run("dot", model, "--json").stdout)["dot"]


def test_dot_needs_graphviz_for_an_image(model, tmp_path, monkeypatch):
    monkeypatch.setattr(cli_print.shutil, "which", lambda _: None)
    result = run("dot", model, "-o", tmp_path / "m.png", code=1)
    assert "graphviz" in result.stderr and ".svg" in result.stderr
    assert not (tmp_path / "m.png").exists()


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_dot_draws(model, tmp_path):
    run("dot", model, "-o", tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


def test_dot_draws_without_graphviz(model, tmp_path, monkeypatch):
    pytest.importorskip("igraph", reason="it places the nodes")
    monkeypatch.setattr(cli_print.shutil, "which", lambda _: None)
    run("dot", model, "-o", tmp_path / "m.svg")
    text = (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg") and ">Relu</text>" in text
    monkeypatch.setitem(sys.modules, "igraph", None)
    result = run("dot", model, "-o", tmp_path / "n.svg", code=1)
    assert "xoptim[report]" in result.stderr and not (tmp_path / "n.svg").exists()


def test_draw_reports_what_graphviz_says(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho wrong graph >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(cli_print.shutil, "which", lambda _: str(program))
    with pytest.raises(cli_print.XoptimError, match="wrong graph"):
        cli_print.draw("digraph{", tmp_path / "m.png")
    assert {p.name for p in tmp_path.iterdir()} == {"dot"}


def test_patterns():
    text = run("patterns").output
    assert "TransposeTranspose" in text and "onnxruntime" in text
    one = run("patterns", "TransposeTranspose").output
    assert "TransposeTranspose" in one and "CastCast" not in one


def test_patterns_json():
    rows = json.loads(run("patterns", "default", "--json").stdout)
    by_name = {row["name"]: row for row in rows}
    row = by_name["TransposeTranspose"]
    assert row["roots"] == ["Transpose"] and "default" in row["sets"]
    assert all(row["summary"] for row in rows)


def test_patterns_unknown():
    assert "TransposeTranspose" in run("patterns", "TransposTranspose", code=2).stderr
