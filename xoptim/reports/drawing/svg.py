"""Writes a placed drawing in SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from xbuilder.support.notebook import shortened

from .drawing import Drawing, Edge, Vertex, shown_lines
from .families import FAMILIES
from .layout import LINE, TITLE, WIDTH, Placed, height_of, place

#: letters that fit in a vertex, in its title, and beside an edge
_LETTERS, _TITLE_LETTERS, _EDGE_LETTERS = 29, 24, 34
#: letters of a dimension beside an edge, if there is no room for all of them
_DIM_LETTERS = 7

_STYLE = """
.drawing { font: 11px system-ui, sans-serif; }
.drawing .v rect { stroke-width: 1; }
.drawing .v .t { font-weight: 600; font-size: 12px; }
.drawing .v .b { text-decoration: underline; cursor: pointer; }
.drawing .v.new rect { stroke-width: 2.5; }
.drawing .v.gone rect { stroke-dasharray: 5 3; }
.drawing .v.outer rect { stroke-dasharray: 2 3; }
.drawing .v.undefined rect { stroke: #c00000; stroke-dasharray: 2 3; }
.drawing .e path { fill: none; stroke-width: 1.2; }
.drawing .e text { font-size: 10px; }
.drawing .e .far { text-anchor: middle; cursor: pointer; text-decoration: underline; }
"""


def drawing_style(dark: bool = False) -> str:
    """The style sheet of drawings.

    :param dark: the page chooses between light and dark colors
    """

    def colour(light: str, night: str) -> str:
        return f"light-dark({light}, {night})" if dark else light

    rows = [
        f".drawing .f-{f.name} rect {{ fill: {colour(f.light[0], f.dark[0])}; "
        f"stroke: {colour(f.light[1], f.dark[1])}; }}"
        for f in FAMILIES.values()
    ]
    rows += [
        f".drawing text {{ fill: {colour('#1b1b1b', '#ececec')}; }}",
        f".drawing .e path {{ stroke: {colour('#9aa0a6', '#777d86')}; }}",
        f".drawing .e text {{ fill: {colour('#5f6670', '#a7adb6')}; }}",
    ]
    return "\n".join([_STYLE.strip(), *rows, ""])


def printable(text: str) -> str:
    """A text for a page or a drawing: markup is escaped, control characters are shown.

    :param text: any text, such as the name of a result

    >>> printable("a<b>" + chr(0))
    'a&lt;b&gt;\\\\x00'
    """
    shown = (c if c.isprintable() or c == "\n" else _hidden(c) for c in text)
    return escape("".join(shown))


def _hidden(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def drawing_svg(placed: Placed) -> str:
    """Writes a drawing in SVG, for a page whose style sheet is :func:`drawing_style`.

    :param placed: the drawing and its places
    :return: one element; the details of a vertex or an edge show under the mouse
    """
    width, height = max(_width(placed), 1), max(placed.height, 1)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">'
    )
    return "".join([head, *_content(placed), "</svg>"])


def _content(placed: Placed) -> Iterator[str]:
    """The edges, then the vertices."""
    yield '<g class="e">'
    yield from _edges(placed)
    yield "</g>"
    yield from (_vertex(placed, i) for i in range(len(placed.drawing.vertices)))


def short_shape(text: str) -> str:
    """A type and a shape in a few characters: long dimensions are cut first.

    :param text: `float[batch, 4]`

    >>> short_shape("float[a_very_long_dimension, 3, 640, one_more_long_name]")
    'float[a_very…, 3, 640, one_mo…]'
    """
    if len(text) > _EDGE_LETTERS and text.endswith("]"):
        kind, _, dims = text[:-1].partition("[")
        text = f"{kind}[{', '.join(shortened(dim, _DIM_LETTERS) for dim in dims.split(', '))}]"
    return shortened(text, _EDGE_LETTERS)


def _label(points: list[tuple[int, int]]) -> tuple[int, int]:
    """The place of the text of an edge: near its source, on the right."""
    (x0, y0), (x1, y1) = points[:2]
    return (2 * x0 + x1) // 3 + 6, (y0 + y1) // 2 + 3


def _width(placed: Placed) -> int:
    """The width of a drawing, texts beside edges included."""
    ends = [
        _label(points)[0] + 6 * len(short_shape(edge.text))
        for edge, points in placed.paths
        if edge.text
    ]
    return max([placed.width, *ends])


def _edges(placed: Placed) -> Iterator[str]:
    """The edges; the shape of a result is written once, at its first edge."""
    seen: set[tuple[int, str]] = set()
    for edge, points in placed.paths:
        yield f'<path d="{_curve(points)}"><title>{printable(_said(edge))}</title></path>'
        if edge.text and (edge.source, edge.result) not in seen:
            seen.add((edge.source, edge.result))
            x, y = _label(points)
            text = printable(short_shape(edge.text))
            yield f'<text x="{x}" y="{y}">{text}</text>'
    for edge in placed.far:
        yield from _ends(placed, edge)


def _said(edge: Edge) -> str:
    return f"{edge.result}: {edge.text}" if edge.text else edge.result


def _ends(placed: Placed, edge: Edge) -> Iterator[str]:
    """The two ends of an edge that is too long to be drawn."""
    x, y = placed.x[edge.target] + WIDTH // 2, placed.y[edge.target]
    yield f'<path d="M{x} {y - 10}L{x} {y}"><title>{printable(_said(edge))}</title></path>'
    text = printable(shortened(f"↑ {edge.result}", _EDGE_LETTERS))
    identifier = f"{placed.drawing.identifier}-{edge.source}"
    yield f'<text class="far" data-to="{identifier}" x="{x}" y="{y - 13}">{text}</text>'


def _curve(points: list[tuple[int, int]]) -> str:
    """The path of an edge: vertical in a layer, a curve between two layers."""
    x, y = points[0]
    path = [f"M{x} {y}"]
    for i, (right, down) in enumerate(points[1:]):
        if right == x or i % 2:
            path.append(f"L{right} {down}")
        else:
            middle = (y + down) // 2
            path.append(f"C{x} {middle} {right} {middle} {right} {down}")
        x, y = right, down
    return "".join(path)


def _vertex(placed: Placed, number: int) -> str:
    """One vertex."""
    drawing = placed.drawing
    vertex = drawing.vertices[number]
    height = height_of(drawing, number)
    classes = " ".join(filter(None, ("v", f"f-{vertex.family.name}", vertex.mark)))
    sources = f' data-from="{" ".join(vertex.sources)}"' if vertex.sources else ""
    said = "\n\n".join(filter(None, (vertex.details, vertex.metadata)))
    rows = [
        f'<g class="{classes}" id="{drawing.identifier}-{number}"{sources} '
        f'transform="translate({placed.x[number]} {placed.y[number]})">',
        f"<title>{printable(said)}</title>" if said else "",
        f'<rect width="{WIDTH}" height="{height}" rx="5"/>',
        f'<text class="t" x="8" y="15">{printable(shortened(vertex.title, _TITLE_LETTERS))}</text>',
        *_lines(vertex),
        "</g>",
    ]
    return "".join(rows)


def _lines(vertex: Vertex) -> Iterator[str]:
    """The lines of a vertex: attributes, constants, then its bodies."""
    y = TITLE + LINE - 6
    for line in shown_lines(vertex):
        yield f'<text x="8" y="{y}">{printable(shortened(line, _LETTERS))}</text>'
        y += LINE
    for body in vertex.bodies:
        nodes = "1 node" if body.nodes == 1 else f"{body.nodes} nodes"
        text = printable(shortened(f"▸ {body.title.partition(' of ')[0]}, {nodes}", _LETTERS))
        link = f'class="b" role="button" tabindex="0" data-open="{body.identifier}"'
        yield f'<text {link} x="8" y="{y}">{text}</text>'
        y += LINE


def drawings_svg(drawings: list[Drawing]) -> str:
    """One SVG file with drawings one below the other, in light colors.

    :param drawings: those of :func:`xoptim.reports.drawing.drawing.draw_model`
    :raises MissingLayoutError: igraph is not installed

    ::

        Path("model.svg").write_text(drawings_svg(draw_model(model)), encoding="utf-8")
    """
    placed = [place(drawing) for drawing in drawings]
    width = max(map(_width, placed), default=1)
    rows, top = [], 0
    for one in placed:
        title = printable(one.drawing.title)
        rows.append(f'<text x="10" y="{top + 16}" font-weight="bold">{title}</text>')
        rows.append(f'<g transform="translate(0 {top + 20})">')
        rows.extend(_content(one))
        rows.append("</g>")
        top += 20 + one.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" width="{width}" height="{top}" '
        f'viewBox="0 0 {width} {top}">'
    )
    return "\n".join([head, f"<style>{drawing_style()}</style>", *rows, "</svg>", ""])
