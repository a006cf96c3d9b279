"""The places of the vertices of a drawing: layers from top to bottom, few crossings."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xbuilder.errors import XoptimError

from .drawing import Drawing, Edge, shown_lines

#: pixels
WIDTH, TITLE, LINE, _ACROSS, _DOWN = 200, 22, 14, 24, 46
#: an edge over more layers than this is drawn as two ends, a line would hide the rest
_FAR = 40
#: columns between an edge that goes down and its neighbour
_BEND = 0.6
#: sweeps of the reduction of crossings; more of them cost much and change little
_SWEEPS = 12


class MissingLayoutError(XoptimError):
    """The library that places the vertices is not installed."""


@dataclass
class Placed:
    """A drawing with the places of its vertices.

    :param drawing: the drawing
    :param x: left side of each vertex
    :param y: top of each vertex
    :param paths: the points of each edge from its source to its target
    :param far: edges that are drawn as two ends
    :param width: width of the whole
    :param height: its height
    """

    drawing: Drawing
    x: list[int] = field(default_factory=list)
    y: list[int] = field(default_factory=list)
    paths: list[tuple[Edge, list[tuple[int, int]]]] = field(default_factory=list)
    far: list[Edge] = field(default_factory=list)
    width: int = 0
    height: int = 0


def height_of(drawing: Drawing, number: int) -> int:
    """The height of a vertex.

    :param drawing: the drawing
    :param number: number of the vertex
    """
    vertex = drawing.vertices[number]
    lines = len(shown_lines(vertex)) + len(vertex.bodies)
    return TITLE + LINE * lines + (6 if lines else 0)


def place(drawing: Drawing) -> Placed:
    """Places the vertices of a drawing in layers, an edge goes down.

    The crossings are reduced by igraph. Cost: about a second for 10,000 vertices.

    :return: the places
    :raises MissingLayoutError: igraph is not installed
    """
    try:
        import igraph
    except ImportError as e:
        raise MissingLayoutError(
            "Graphs are drawn with igraph, which is not installed: pip install 'xoptim[report]'."
        ) from e
    placed = Placed(drawing)
    if not drawing.vertices:
        return placed
    layers = layers_of(drawing)
    near = [e for e in drawing.edges if layers[e.target] - layers[e.source] <= _FAR]
    placed.far = [e for e in drawing.edges if layers[e.target] - layers[e.source] > _FAR]
    levels, arcs, chains = _with_bends(layers, near)
    graph = igraph.Graph(len(levels), arcs, directed=True)
    found = graph.layout_sugiyama(layers=levels, hgap=1, vgap=1, maxiter=_SWEEPS)
    columns = _apart([p[0] for p in found.coords[: len(levels)]], levels, len(layers))
    least = min(columns)
    lefts = [round((c - least) * (WIDTH + _ACROSS)) + _ACROSS for c in columns]
    tops, bottoms = _rows(drawing, layers)
    n = len(layers)
    placed.x, placed.y = lefts[:n], [tops[layer] for layer in layers]
    placed.width = max(lefts) + WIDTH + _ACROSS
    placed.height = bottoms[-1] + _DOWN // 2
    for edge, bends in zip(near, chains, strict=True):
        placed.paths.append((edge, _points(placed, edge, bends, lefts, levels, tops, bottoms)))
    return placed


def _apart(columns: Sequence[float], levels: Sequence[int], count: int) -> list[float]:
    """The columns of the vertices, far enough from each other in a layer: the layout is an average
    of four, which may be closer. A bend needs less room than one of the *count* vertices."""
    moved = list(columns)
    last: dict[int, int] = {}
    for i in sorted(range(len(moved)), key=lambda i: (levels[i], columns[i])):
        before = last.get(levels[i])
        if before is not None:
            room = 1.0 if max(i, before) < count else _BEND
            moved[i] = max(moved[i], moved[before] + room)
        last[levels[i]] = i
    return moved


def layers_of(drawing: Drawing) -> list[int]:
    """The layer of each vertex: the longest path to it, or just above its readers if it has as many
    of them as inputs, so that what is computed early stays beside what needs it.

    The edges of a circle, in a model that is not valid, may go up.
    """
    n = len(drawing.vertices)
    readers: list[dict[int, None]] = [{} for _ in range(n)]
    inputs: list[dict[int, None]] = [{} for _ in range(n)]
    for edge in drawing.edges:
        readers[edge.source][edge.target] = None
        inputs[edge.target][edge.source] = None
    layers = [0] * n
    order = _sorted(readers, [len(sources) for sources in inputs])
    place = {number: i for i, number in enumerate(order)}
    for number in order:
        for reader in readers[number]:
            if place[reader] > place[number]:
                layers[reader] = max(layers[reader], layers[number] + 1)
    for number in reversed(order):
        below = [layers[r] for r in readers[number] if place[r] > place[number]]
        if below and len(readers[number]) >= len(inputs[number]):
            layers[number] = max(layers[number], min(below) - 1)
    return layers


def _sorted(readers: Sequence[Iterable[int]], waiting: list[int]) -> list[int]:
    """The vertices in topological order; a circle is cut at its first vertex.

    :param readers: those of each vertex
    :param waiting: number of inputs of each vertex
    """
    order: list[int] = []
    ready = deque(i for i, count in enumerate(waiting) if not count)
    left = dict.fromkeys(range(len(waiting)))
    while left:
        number = ready.popleft() if ready else next(iter(left))
        if number not in left:
            continue
        del left[number]
        order.append(number)
        for reader in readers[number]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return order


def _with_bends(
    layers: Sequence[int], edges: Sequence[Edge]
) -> tuple[list[int], list[tuple[int, int]], list[list[int]]]:
    """Adds a vertex where an edge crosses a layer: layers, arcs, added vertices of each edge. The
    edges between two vertices share their bends."""
    levels = list(layers)
    arcs: list[tuple[int, int]] = []
    chains: dict[tuple[int, int], list[int]] = {}
    for edge in edges:
        key = edge.source, edge.target
        if key in chains:
            continue
        chain = [len(levels) + i for i in range(layers[edge.target] - layers[edge.source] - 1)]
        levels.extend(range(layers[edge.source] + 1, layers[edge.target]))
        path = [edge.source, *chain, edge.target]
        arcs.extend(itertools.pairwise(path))
        chains[key] = chain
    return levels, arcs, [chains[e.source, e.target] for e in edges]


def _rows(drawing: Drawing, layers: Sequence[int]) -> tuple[list[int], list[int]]:
    """The top and the bottom of each layer."""
    heights = [TITLE] * (max(layers) + 1)
    for i, layer in enumerate(layers):
        heights[layer] = max(heights[layer], height_of(drawing, i))
    tops, bottoms, y = [], [], _DOWN // 2
    for height in heights:
        tops.append(y)
        bottoms.append(y + height)
        y += height + _DOWN
    return tops, bottoms


def _points(
    placed: Placed,
    edge: Edge,
    bends: Sequence[int],
    lefts: Sequence[int],
    levels: Sequence[int],
    tops: Sequence[int],
    bottoms: Sequence[int],
) -> list[tuple[int, int]]:
    """The points of an edge: the middle of the bottom of its source, two points where it crosses a
    layer, the middle of the top of its target."""
    half = WIDTH // 2
    source = placed.y[edge.source] + height_of(placed.drawing, edge.source)
    points = [(placed.x[edge.source] + half, source)]
    for bend in bends:
        x = lefts[bend] + half
        points += [(x, tops[levels[bend]]), (x, bottoms[levels[bend]])]
    return [*points, (placed.x[edge.target] + half, placed.y[edge.target])]
