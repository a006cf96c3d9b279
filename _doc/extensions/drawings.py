"""The drawings of :mod:`xoptim.reports.drawing`, as wide as a page."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from onnx import ModelProto

from xbuilder import GraphBuilder
from xbuilder.errors import XoptimError
from xoptim.reports.drawing.drawing import Drawing, draw_model
from xoptim.reports.drawing.layout import place
from xoptim.reports.drawing.shapes import ShapeTexts, shape_texts
from xoptim.reports.drawing.svg import drawing_style, drawing_svg, drawings_svg


def drawings_of(model: ModelProto, shapes: bool = True) -> list[Drawing]:
    """The graph of a model, its bodies and its functions.

    :param model: a small model
    :param shapes: with the shapes of the results, where the model can be read
    """
    texts = None
    if shapes:
        try:
            texts = shape_texts(GraphBuilder(model, infer_shapes_options=True).graph)
        except XoptimError:
            texts = ShapeTexts()
    return draw_model(model, texts)


def draw(model: ModelProto, shapes: bool = True) -> str:
    """Draws a model for a page.

    :param model: a small model
    :param shapes: writes the shapes of the results beside the edges
    :return: HTML, one `<svg>` for the graph, then one for each body with its title
    """
    main, *inner = drawings_of(model, shapes)
    parts = [fitted(drawing_svg(place(main)))]
    for drawing in inner:
        parts.append(f"<p>{escape(drawing.title)}</p>{fitted(drawing_svg(place(drawing)))}")
    return "".join(parts)


def fitted(svg: str) -> str:
    """A drawing that shrinks to fit its column, as long as its text can be read.

    :param svg: an element with a size
    """
    size = re.compile(r' width="(\d+)" height="\d+">')

    def style(found: re.Match[str]) -> str:
        width = int(found.group(1))
        return f' style="width: {width}px; min-width: {width * 3 // 4}px" role="img">'

    return size.sub(style, svg, count=1)


def standalone(model: ModelProto, title: str) -> str:
    """Draws a model as a file, on white.

    :param model: a small model
    :param title: written above its graph
    """
    main, *inner = drawings_of(model)
    drawn = drawings_svg([replace(main, title=title), *inner])
    return drawn.replace("<style>", "<style>svg{background:#fff}")


def picture(before: ModelProto, after: ModelProto) -> str:
    """Two models side by side as a file, for pages that are not on this site.

    :param before: a model
    :param after: what it becomes
    """
    svgs = [drawing_svg(place(drawings_of(model)[0])) for model in (before, after)]
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', svg) for svg in svgs]
    (a, b), (c, d) = ([int(n) for n in size.groups()] for size in sizes if size)
    width, height = a + c + 60, max(b, d)
    arrow = (
        f'<path d="M{a + 10} {height // 2} h36 m-8 -6 l8 6 l-8 6" fill="none" stroke="#e0762f"/>'
    )
    moved = [
        svg.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1)
        for svg, x, y in zip(svgs, (0, a + 60), ((height - b) // 2, (height - d) // 2), strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
        f"<style>svg{{background:#fff}}\n{drawing_style()}</style>{''.join(moved)}{arrow}</svg>\n"
    )
