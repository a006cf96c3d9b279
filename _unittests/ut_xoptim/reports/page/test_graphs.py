"""The graphs of a page: what is new, what is replaced, and by what."""

from __future__ import annotations

import onnx.parser
import pytest

from xoptim.reports.drawing.shapes import ShapeTexts
from xoptim.reports.page import graphs
from xoptim.reports.page.graphs import page_graphs

pytest.importorskip("igraph", reason="it places the vertices")
HEAD = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)'
BEFORE = onnx.parser.parse_model(f"{HEAD} {{ a = Neg(x) b = Neg(a) y = Abs(b) }}")
AFTER = onnx.parser.parse_model(f"{HEAD} {{ b = Identity(x) y = Abs(b) }}")


def origin(result):
    return (("NegNeg",), ("a", "b")) if result == "b" else None


def found():
    return page_graphs(BEFORE, AFTER, (ShapeTexts(), ShapeTexts()), origin)


def test_origins():
    made = found()
    before, after = (g.svg for g in made.graphs)
    assert [(g.id, g.side, g.title, g.parent) for g in made.graphs] == [
        ("b0", "before", "g", ""),
        ("a0", "after", "g", ""),
    ]
    assert made.places == {"b": "a0-1", "y": "a0-2"}
    assert '<g class="v f-layout new" id="a0-1" data-from="b0-1 b0-2"' in after
    assert "written by NegNeg" in after and 'id="a0-2" transform' in after
    assert '<g class="v f-elementwise gone" id="b0-1" data-from="a0-1"' in before
    assert '<g class="v f-elementwise gone" id="b0-2" data-from="a0-1"' in before, (
        "b is another node"
    )
    assert '<g class="v f-elementwise" id="b0-3"' in before


def test_a_large_graph_is_not_drawn(monkeypatch):
    monkeypatch.setattr(graphs, "MOST_VERTICES", 4)
    made = found()
    assert [g.side for g in made.graphs] == ["after"] and made.too_large == ["g, before"]
