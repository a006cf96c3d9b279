"""Reports of an optimization."""

from __future__ import annotations

import json

import onnx
import onnx.parser
from ut_xoptim.cli.command_line import (
    TRANSPOSES,
    functions,
    parse,
    run,
)

MODEL = TRANSPOSES


def test_moved_constants_are_no_gain(tmp_path):
    path = tmp_path / "m.onnx"
    constant = "k = Constant<value_floats: floats = [1.5, 2.5, 3.5, 4.5]>()\n    y = Mul(c, k)"
    onnx.save(parse(MODEL.replace("y = Neg(c)", constant)), path)
    lines = run("optimize", path, "--dry-run").output.splitlines()
    assert lines[0] == "nodes:   4 -> 1 (-75.0%)"
    assert lines[1].split(",")[0].strip() == "1 Constant node became an initializer"
    table = lines[lines.index("rewrites") :]
    assert not [line for line in lines[2:] if "Constant" in line]
    removed = [line.split() for line in table[3:] if line.strip()]
    assert ["TransposeTranspose", "2"] in [[words[0], words[4]] for words in removed]
    assert not [line for line in table if "clean_after" in line or "_" in line]


def test_html_report(model, tmp_path):
    page = tmp_path / "report.html"
    run("optimize", model, "--dry-run", "--verify", "--report", page)
    text = page.read_text(encoding="utf-8")
    assert "<html" in text and "TransposeTranspose" in text and "-75.0%" in text


def test_json_counts_constants_apart(tmp_path):
    """A Constant that becomes an initializer is no gain."""
    path = tmp_path / "constant.onnx"
    constant = "k = Constant<value_floats: floats = [1.5, 2.5, 3.5, 4.5]>()"
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 9, opset_import: ["" : 18]>'
            f"g (float[a, 4] x) => (float[a, 4] y) {{ {constant} y = Mul(x, k) }}"
        ),
        path,
    )
    info = json.loads(run("optimize", path, "--dry-run", "--json").stdout)
    assert (info["nodes_before"], info["nodes_after"]) == (1, 1)
    assert (info["constant_nodes_before"], info["constant_nodes_after"]) == (1, 0)


def test_a_table_of_many_types_is_cut(tmp_path):
    path = tmp_path / "many.onnx"
    onnx.save(functions(60, 1), path)
    printed = run("optimize", path, tmp_path / "out.onnx").stdout
    assert len(printed.splitlines()) < 60
    assert "and 20 other types" in printed
