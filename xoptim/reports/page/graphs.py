"""The graphs of a page: before and after, with the origin of each new node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from onnx import ModelProto

from ..drawing.drawing import Drawing, Vertex, draw_model
from ..drawing.layout import place
from ..drawing.shapes import ShapeTexts
from ..drawing.svg import drawing_svg

#: a larger graph is not drawn: the page would be slow
MOST_VERTICES = 20_000
#: rewrites that wrote a result, and the results they replace; None if no rewrite wrote it
Origins = Callable[[str], tuple[Sequence[str], Sequence[str]] | None]


@dataclass
class PageGraph:
    """One graph of a page.

    :param id: its identifier
    :param side: `before` or `after`
    :param title: its name
    :param parent: identifier of the graph that has its node
    :param svg: its drawing
    """

    id: str
    side: str
    title: str
    parent: str
    svg: str


@dataclass
class PageGraphs:
    """The graphs of a page, and the places of their results.

    :param graphs: the graphs, before then after
    :param places: place of each result of the optimized model, `identifier-number`
    :param too_large: titles of the graphs that are not drawn
    """

    graphs: list[PageGraph]
    places: dict[str, str]
    too_large: list[str]


def page_graphs(
    before: ModelProto,
    after: ModelProto,
    shapes: tuple[ShapeTexts, ShapeTexts],
    origins: Origins,
) -> PageGraphs:
    """Draws both models. New nodes are marked and know the nodes they stand for.

    :param before: the model
    :param after: the optimized model
    :param shapes: types and shapes of the results of both
    :param origins: gives the origin of a result of the optimized model
    :raises MissingLayoutError: igraph is not installed

    ::

        shapes = model_shapes(before), model_shapes(after)
        graphs = page_graphs(before, after, shapes, origins)
    """
    old, new = draw_model(before, shapes[0], "b"), draw_model(after, shapes[1], "a")
    old_places, new_places = _places(old), _places(new)
    replaced: dict[str, list[str]] = {}
    for number, drawing, vertex in _nodes(new):
        origin = next((o for name in vertex.results if (o := origins(name))), None)
        if origin is None:
            continue
        rewrites, sources = origin
        vertex.mark = "new"
        vertex.details += f"\nwritten by {', '.join(rewrites)}"
        vertex.sources = [old_places[name] for name in sources if name in old_places]
        for source in vertex.sources:
            replaced.setdefault(source, []).append(f"{drawing.identifier}-{number}")
    kept = {(vertex.title, name) for _, _, vertex in _nodes(new) for name in vertex.results}
    for number, drawing, vertex in _nodes(old):
        if not any((vertex.title, name) in kept for name in vertex.results):
            vertex.mark = "gone"
        vertex.sources = replaced.get(f"{drawing.identifier}-{number}", [])
    found = PageGraphs([], new_places, [])
    for side, drawings in (("before", old), ("after", new)):
        for drawing in drawings:
            if len(drawing.vertices) > MOST_VERTICES:
                found.too_large.append(f"{drawing.title}, {side}")
                continue
            parent = drawing.parent.identifier if drawing.parent is not None else ""
            svg = drawing_svg(place(drawing))
            found.graphs.append(PageGraph(drawing.identifier, side, drawing.title, parent, svg))
    return found


def _nodes(drawings: Sequence[Drawing]) -> Iterator[tuple[int, Drawing, Vertex]]:
    """The vertices that are nodes, with their numbers."""
    for drawing in drawings:
        for number, vertex in enumerate(drawing.vertices):
            if vertex.family.name != "end":
                yield number, drawing, vertex


def _places(drawings: Sequence[Drawing]) -> dict[str, str]:
    """The place of each result of some drawings."""
    return {
        name: f"{drawing.identifier}-{number}"
        for number, drawing, vertex in _nodes(drawings)
        for name in vertex.results
    }
