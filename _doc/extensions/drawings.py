"""Models as drawings: SVG, layers of nodes from top to bottom, placed by igraph.

Colours come from the style sheet of the site, so that a drawing is readable on a dark page as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import igraph
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from xbuilder import GraphBuilder
from xbuilder.errors import XoptimError
from xbuilder.protos.pretty import pretty_attribute, pretty_initializer, pretty_value_info

CHAR, LINE, PAD, GAP, LAYER = 6.6, 15, 8, 18, 34
LONGEST = 34
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass
class Box:
    """A node, an input or an output of a drawing.

    :param kind: `node`, `input` or `output`
    :param lines: the text inside, the first one is the title
    :param x: horizontal place of the centre
    :param y: vertical place of the top
    """

    kind: str
    lines: list[str]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """The width the text needs."""
        return max(len(line) for line in self.lines) * CHAR + 2 * PAD

    @property
    def height(self) -> float:
        """The height the text needs."""
        return len(self.lines) * LINE + PAD


def shapes_of(model: ModelProto) -> dict[str, str]:
    """The shapes of the results, as text; empty if the model cannot be read.

    :param model: any model
    :return: name of a result -> `batch x 4`
    """
    try:
        builder = GraphBuilder(model, infer_shapes_options=True)
    except XoptimError:
        return {}
    names = {name for node in model.graph.node for name in node.output if name}
    shapes = {name: builder.get_shape(name) for name in names if builder.has_shape(name)}
    return {name: " x ".join(map(str, shape)) for name, shape in shapes.items() if shape}


def boxes_and_edges(model: ModelProto) -> tuple[list[Box], list[tuple[int, int, str]]]:
    """What a drawing of the main graph shows.

    :param model: the model; its weights are lines of the nodes that read them
    :return: boxes, then edges: place of a box, place of another one, name of the result
    """
    graph = model.graph
    weights = {w.name: _weight(w) for w in graph.initializer}
    boxes, producer, edges = [], {}, []
    for info in graph.input:
        if info.name not in weights:
            producer[info.name] = len(boxes)
            boxes.append(Box("input", [_short(pretty_value_info(info))]))
    for node in graph.node:
        inner = [weights[name] for name in node.input if name in weights]
        for name in dict.fromkeys(node.input):
            if name in producer:
                edges.append((producer[name], len(boxes), name))
        producer.update((name, len(boxes)) for name in node.output if name)
        boxes.append(Box("node", [_title(node), *_attributes(node), *inner]))
    for info in graph.output:
        if info.name in producer:
            edges.append((producer[info.name], len(boxes), info.name))
        boxes.append(Box("output", [_short(pretty_value_info(info))]))
    return boxes, edges


def layers_of(boxes: list[Box], edges: list[tuple[int, int, str]]) -> list[int]:
    """The layer of each box: below all it reads, and right above its first reader for an input.

    :param boxes: the boxes, those that are read come first
    :param edges: what they read
    :return: a number for each box, 0 is the top
    """
    layers = [0] * len(boxes)
    for start, end, _ in sorted(edges, key=lambda edge: edge[1]):
        layers[end] = max(layers[end], layers[start] + 1)
    for i, box in enumerate(boxes):
        if box.kind == "input":
            readers = [layers[end] for start, end, _ in edges if start == i]
            layers[i] = min(readers, default=1) - 1
    return layers


def place(boxes: list[Box], edges: list[tuple[int, int, str]]) -> list[list[Box]]:
    """Gives each box its place, layer by layer.

    :param boxes: the boxes, they are moved; the bends of the long edges are added
    :param edges: what they read
    :return: the boxes each edge goes through, its ends included
    """
    layers = layers_of(boxes, edges)
    ways = []
    for start, end, _ in edges:
        between = range(layers[start] + 1, layers[end])
        ways.append([start, *range(len(boxes), len(boxes) + len(between)), end])
        boxes += [Box("bend", [""]) for _ in between]
        layers += between
    steps = [step for way in ways for step in pairwise(way)]
    graph = igraph.Graph(len(boxes), steps, directed=True)
    spots = graph.layout_sugiyama(layers=layers).coords
    rows: dict[int, list[tuple[float, Box]]] = {}
    for layer, (x, _), box in zip(layers, spots, boxes, strict=True):
        rows.setdefault(layer, []).append((x, box))
    _spread([[box for _, box in sorted(rows[i], key=lambda p: p[0])] for i in sorted(rows)])
    return [[boxes[i] for i in way] for way in ways]


def _spread(rows: list[list[Box]]) -> None:
    """Gives their coordinates to the boxes of the layers, in their order."""
    width = max((sum(b.width + GAP for b in row) for row in rows), default=0.0) - GAP
    top = 2.0
    for row in rows:
        left = (width - sum(b.width + GAP for b in row) + GAP) / 2
        for box in row:
            box.x, box.y = left + box.width / 2 + 2, top
            left += box.width + GAP
        top += max(box.height for box in row) + LAYER


def draw(model: ModelProto, title: str = "", shapes: bool = True) -> str:
    """Draws the main graph of a model.

    :param model: a small model
    :param title: what a screen reader says
    :param shapes: writes the shapes of the results beside the edges
    :return: an element `<svg>`
    """
    boxes, edges = boxes_and_edges(model)
    known = shapes_of(model) if shapes else {}
    ways = place(boxes, edges)
    right = max((len(text) for text in known.values()), default=0) * CHAR
    width = max((box.x + max(box.width / 2, right) for box in boxes), default=0) + 8
    height = max((box.y + box.height for box in boxes), default=0) + 2
    body = [_way(way, known.get(name, "")) for way, (*_, name) in zip(ways, edges, strict=True)]
    body += [_box(box) for box in boxes if box.kind != "bend"]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="model" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" style="max-width: {width:.0f}px" role="img">'
        f"<title>{escape(title or model.graph.name)}</title>{''.join(body)}</svg>"
    )


def standalone(drawing: str) -> str:
    """A drawing that is a file, with its own colours.

    :param drawing: what :func:`draw` returned
    :return: the same with a style
    """
    style = (
        "text{font:11px monospace;text-anchor:middle;fill:#222}.edge text{text-anchor:start;"
        "fill:#777}.title{font-weight:bold}rect{fill:#eef1f7;stroke:#8892a6}.input rect{fill:"
        "#d9ecd9}.output rect{fill:#d7e3f4}.edge path{fill:none;stroke:#8892a6}"
    )
    return drawing.replace("<title>", f"<style>{style}</style><title>", 1)


def picture(before: ModelProto, after: ModelProto) -> str:
    """Both models side by side, a file for pages that are not on this site.

    :param before: a model
    :param after: what it becomes
    :return: an element `<svg>` with its own colours, on white
    """
    left, right = standalone(draw(before, "before")), standalone(draw(after, "after"))
    boxes = [re.search(r'viewBox="0 0 (\d+) (\d+)"', svg) for svg in (left, right)]
    sizes = [[int(size) for size in box.groups()] for box in boxes if box]
    (a, b), (c, d) = sizes
    width, height = a + c + 80, max(b, d) + 20
    parts = [
        f'<svg x="{x}" y="{y}" width="{w}" height="{h}"{svg[4:]}'
        for svg, x, y, w, h in ((left, 10, 10, a, b), (right, a + 70, (height - d) / 2, c, d))
    ]
    arrow = f'<path d="M{a + 15} {height / 2} h40 m-8 -6 l8 6 l-8 6" fill="none" stroke="#e0762f"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
        '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>'
        f"{''.join(parts)}{arrow}</svg>\n"
    )


def _title(node: NodeProto) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _attributes(node: NodeProto) -> list[str]:
    lines = [_short(pretty_attribute(a)) for a in node.attribute if a.type not in _GRAPHS]
    for att in node.attribute:
        if att.type == AttributeProto.GRAPH:
            inner = ", ".join(_title(n) for n in att.g.node) or "no node"
            lines.append(_short(f"{att.name}: {inner}"))
    return lines


def _weight(tensor: TensorProto) -> str:
    """A scalar without its type, which the edges tell."""
    text = pretty_initializer(tensor.name, tensor)
    return _short(text if tensor.dims else re.sub(r": \w+\[\]", "", text))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _way(way: list[Box], label: str) -> str:
    path = f"M{way[0].x:.1f} {way[0].y + way[0].height:.1f}"
    for start, end in pairwise(way):
        x, y, u, v = start.x, start.y + start.height, end.x, end.y
        bend = (v - y) / 2
        path += f" C{x:.1f} {y + bend:.1f} {u:.1f} {v - bend:.1f} {u:.1f} {v:.1f}"
        path += f" v{end.height:.1f}" if end.kind == "bend" else ""
    arrow = f"M{u - 4:.1f} {v - 6:.1f} l4 6 l4 -6"
    text = f'<text x="{(x + u) / 2 + 6:.1f}" y="{(y + v) / 2 + 4:.1f}">{escape(label)}</text>'
    return f'<g class="edge"><path d="{path} {arrow}"/>{text if label else ""}</g>'


def _box(box: Box) -> str:
    left, body = box.x - box.width / 2, []
    for i, line in enumerate(box.lines):
        weight = ' class="title"' if i == 0 and box.kind == "node" else ""
        y = box.y + PAD / 2 + LINE * i + 11
        body.append(f'<text x="{box.x:.1f}" y="{y:.1f}"{weight}>{escape(line)}</text>')
    return (
        f'<g class="{box.kind}"><rect x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="4"/>{"".join(body)}</g>'
    )
