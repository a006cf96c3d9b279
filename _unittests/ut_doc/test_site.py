"""The extensions of the documentation: drawings, inventories, reasons of refusal, first table."""

from __future__ import annotations

import importlib
import itertools
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


def two_ways() -> onnx.ModelProto:
    """A result is read at once and three layers below."""
    return onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[batch, 4] x) => (float[batch, 4] y) <float one = {1}> {
            a = Exp (x)
            b = Add (a, one)
            c = Neg (b)
            y = Mul (c, x)
        }
    """)


def test_boxes_do_not_overlap() -> None:
    drawings = extension("drawings", "igraph")
    boxes, edges = drawings.boxes_and_edges(two_ways())
    assert [box.lines[0] for box in boxes if box.kind == "node"] == ["Exp", "Add", "Neg", "Mul"]
    ways = drawings.place(boxes, edges)
    assert sorted(map(len, ways)) == [2, 2, 2, 2, 2, 5]
    for way in ways:
        assert all(a.y + a.height < b.y for a, b in itertools.pairwise(way))
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = abs(a.x - b.x) >= (a.width + b.width) / 2
            assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y


def test_a_drawing_says_names_shapes_and_weights() -> None:
    drawings = extension("drawings", "igraph")
    svg = drawings.draw(two_ways(), "a < b")
    for text in ("batch x 4", "one = 1", ">Exp<", "a &lt; b"):
        assert text in svg
    assert "batch x 4" not in drawings.draw(two_ways(), shapes=False)
    assert "<style>" in drawings.standalone(svg)


def test_the_picture_of_the_readme_is_the_one_of_the_index() -> None:
    drawings = extension("drawings", "igraph")
    page = (DOC / "index.rst").read_text(encoding="utf-8")
    text = re.search(r"before-after::\n.*?\n\n(.*?)\n\n\S", page, re.S)
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


def test_reasons_of_refusal() -> None:
    reasons_of = extension("refusals").reasons_of
    (pattern,) = xoptim.get_pattern_list("TransposeTranspose")
    assert "the permutations are not known" in reasons_of(pattern)
    everything = xoptim.get_pattern_list("default+onnxruntime")
    assert sum(map(bool, map(reasons_of, everything))) > 0.8 * len(everything)
