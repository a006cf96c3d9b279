"""The extensions of the documentation: drawings, inventories, reasons of refusal, first table."""

from __future__ import annotations

import importlib
import re
import zlib
from pathlib import Path
from typing import Any

import onnx
import pytest

import xoptim

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "_doc"


@pytest.fixture(autouse=True)
def _extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (DOC, DOC / "extensions", DOC / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))


def extension(name: str, needs: str = "sphinx") -> Any:
    pytest.importorskip(needs, reason="the documentation is built with it")
    return importlib.import_module(name)


def looped() -> onnx.ModelProto:
    return onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[batch, 4] x, bool c) => (float[batch, 4] y) <float one = {1}> {
            a = Add (x, one)
            y = If (c) <
                then_branch = t () => (float[batch, 4] u) { u = Relu (a) },
                else_branch = e () => (float[batch, 4] v) { v = Exp (a) }
            >
        }
    """)


def test_a_drawing_fits_and_has_its_bodies() -> None:
    drawings = extension("drawings", "igraph")
    html = drawings.draw(looped())
    assert html.count("<svg") == 3 and html.count("min-width") == 3
    for text in ("float[batch, 4]", "Relu", "Exp", "then_branch"):
        assert text in html
    edges = re.findall(r"</path><text[^>]*>([^<]*)<", html)
    assert edges and not re.findall(r"</path><text", drawings.draw(looped(), shapes=False))
    assert "background:#fff" in drawings.standalone(looped())


def test_the_picture_of_the_readme_is_the_one_of_the_index() -> None:
    drawings = extension("drawings", "igraph")
    page = (DOC / "index.rst").read_text(encoding="utf-8")
    text = re.search(r"before-after::\n.*?\n\n(.*?)\n\n +\.\. grid", page, re.S)
    assert text
    model = onnx.parser.parse_model(text.group(1))
    after = xoptim.optimize(model, patterns="default+onnxruntime").model
    assert [node.op_type for node in after.graph.node] == ["Gelu"]
    expected = drawings.picture(model, after)
    assert (DOC / "_static" / "before_after.svg").read_text(encoding="utf-8") == expected


def test_the_table_of_the_first_page_is_the_one_of_the_readme() -> None:
    table = extension("collect").peers_table()
    assert (DOC / "benchmarks" / "data" / "peers.txt").read_text(encoding="utf-8") == table
    assert table in (ROOT / "README.rst").read_text(encoding="utf-8")
    assert len(re.findall(r"^xoptim|^OnnxSlim|^onnx", table, re.M)) >= 6


def test_inventories() -> None:
    inventories = extension("inventories")
    content = inventories.inventory("numpy", inventories.PROJECTS["numpy"][1])
    head, body = content.split(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n")
    line = "numpy.ndarray py:class 1 reference/generated/numpy.ndarray.html#numpy.ndarray -"
    assert line in zlib.decompress(body).decode().splitlines()
    _, body = inventories.inventory("onnx", inventories.PROJECTS["onnx"][1]).split(b"zlib.\n")
    home = f"{onnx.ModelProto.__module__}.ModelProto"
    assert f"{home} py:class 1 api/classes.html#onnx.ModelProto -" in zlib.decompress(body).decode()


def test_reasons_of_refusal() -> None:
    reasons_of = extension("refusals").reasons_of
    (pattern,) = xoptim.get_pattern_list("TransposeTranspose")
    assert "the permutations are not known" in reasons_of(pattern)
    everything = xoptim.get_pattern_list("default+onnxruntime")
    assert sum(map(bool, map(reasons_of, everything))) > 0.8 * len(everything)
