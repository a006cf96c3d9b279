"""Places and SVG: nothing overlaps, edges go down, names are escaped."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import onnx.helper as oh
import onnx.parser
import pytest

from xoptim.reports.drawing.drawing import Drawing, draw_model
from xoptim.reports.drawing.layout import (
    WIDTH,
    MissingLayoutError,
    height_of,
    layers_of,
    place,
)
from xoptim.reports.drawing.svg import drawing_style, drawing_svg, drawings_svg, printable

pytest.importorskip("igraph", reason="it places the vertices")
MARKUP = "a<b>\"&'</svg>\x00\u202e"
SPACE = "{http://www.w3.org/2000/svg}"


def chain(length, jump=7):
    """A chain whose nodes also read one that is far behind."""
    nodes = [
        oh.make_node("Add", [f"r{i}", f"r{max(0, i - jump)}"], [f"r{i + 1}"]) for i in range(length)
    ]
    value = oh.make_tensor_value_info
    graph = oh.make_graph(nodes, "g", [value("r0", 1, [2])], [value(f"r{length}", 1, [2])])
    return oh.make_model(graph)


def wide(count):
    """Many branches of several lengths, summed."""
    nodes = []
    for i in range(count):
        for j in range(1 + i % 4):
            source = f"b{i}_{j - 1}" if j else "x"
            nodes.append(oh.make_node("Relu", [source], [f"b{i}_{j}"]))
    nodes.append(oh.make_node("Sum", [f"b{i}_{i % 4}" for i in range(count)], ["y"]))
    value = oh.make_tensor_value_info
    return oh.make_model(oh.make_graph(nodes, "g", [value("x", 1, [2])], [value("y", 1, [2])]))


@pytest.mark.parametrize(
    "model", [chain(30), chain(90, 60), wide(17)], ids=["chain", "far", "wide"]
)
def test_places(model):
    (drawing,) = draw_model(model)
    placed = place(drawing)
    boxes = [
        (placed.x[i], placed.y[i], placed.x[i] + WIDTH, placed.y[i] + height_of(drawing, i))
        for i in range(len(drawing.vertices))
    ]
    for i, a in enumerate(boxes):
        assert a[0] >= 0 and a[1] >= 0 and a[2] <= placed.width and a[3] <= placed.height
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    assert len(placed.paths) + len(placed.far) == len(drawing.edges)
    for edge, points in placed.paths:
        assert [y for _, y in points] == sorted(y for _, y in points)
        assert points[0][1] == boxes[edge.source][3] and points[-1][1] == boxes[edge.target][1]


def test_long_edges_have_two_ends():
    (drawing,) = draw_model(chain(90, 60))
    placed = place(drawing)
    assert placed.far and all(e.target - e.source >= 40 for e in placed.far)
    assert f'data-to="{drawing.identifier}-{placed.far[0].source}"' in drawing_svg(placed)


def test_layers():
    (drawing,) = draw_model(chain(5, 2))
    assert layers_of(drawing) == [0, 1, 2, 3, 4, 5, 6]
    text = "g (float[2] x, float[2] z) => (float[2] y) { a = Relu(x) b = Neg(a) y = Add(b, z) }"
    (drawing,) = draw_model(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    )
    names = [v.title for v in drawing.vertices]
    assert layers_of(drawing)[names.index("z")] == 2, "beside the first node that reads it"


def test_a_circle_is_drawn():
    nodes = [oh.make_node("Add", ["x", "b"], ["a"]), oh.make_node("Neg", ["a"], ["b"])]
    value = oh.make_tensor_value_info
    graph = oh.make_graph(nodes, "g", [value("x", 1, [2])], [value("b", 1, [2])])
    (drawing,) = draw_model(oh.make_model(graph))
    assert "Neg" in drawing_svg(place(drawing))


def test_an_empty_graph():
    placed = place(Drawing("nothing"))
    assert (placed.width, placed.height, placed.paths) == (0, 0, [])
    ET.fromstring(drawing_svg(placed))


def test_markup_is_escaped():
    value = oh.make_tensor_value_info
    node = oh.make_node("Mine", ["x"], [MARKUP], name=MARKUP, domain=MARKUP, text=MARKUP)
    graph = oh.make_graph([node], MARKUP, [value("x", 1, [MARKUP])], [value(MARKUP, 1, None)])
    text = drawings_svg(draw_model(oh.make_model(graph)))
    root = ET.fromstring(text)
    assert printable(MARKUP) == "a&lt;b&gt;&quot;&amp;&#x27;&lt;/svg&gt;\\x00\\u202e"
    assert {e.tag.removeprefix(SPACE) for e in root.iter()} == {
        "svg", "style", "g", "path", "title", "text", "rect",
    }  # fmt: skip
    shown = MARKUP.replace("\x00", "\\x00").replace("\u202e", "\\u202e")
    assert any(shown in (e.text or "") for e in root.iter(f"{SPACE}title"))


def test_bodies_and_styles():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (u) { u = Neg(x) }, else_branch = e () => (v) { v = Abs(x) }>
        }""")
    drawings = draw_model(model)
    text = drawings_svg(drawings)
    assert "▸ then_branch, 1 node" in text and f'data-open="{drawings[1].identifier}"' in text
    assert "then_branch of y" in text and text.count("<svg") == 1
    assert "light-dark" not in text and "light-dark" in drawing_style(dark=True)
    assert ".f-product rect" in text


def test_without_igraph(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(MissingLayoutError, match=r"pip install 'xoptim\[report\]'"):
        place(Drawing("nothing"))
