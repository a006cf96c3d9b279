"""The vertices and the edges of the drawing of a graph."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import onnx.defs
import onnx.helper
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from xbuilder.nodes.functions import FunctionKey
from xbuilder.operators.domains import main_domain
from xbuilder.protos.pretty import (
    pretty_attribute,
    pretty_initializer,
    pretty_node,
    pretty_value_info,
)

from .families import FAMILIES, Family, family_of
from .shapes import ShapeTexts

#: lines of a vertex for its attributes and its constants
_MOST_LINES = 6


@dataclass
class Vertex:
    """A box of a drawing: an input, an output, a node.

    :param title: its first line
    :param family: gives its color
    :param lines: its other lines: type of an input, domain and attributes of a node
    :param constants: lines for the constants a node reads, shown first
    :param results: results it gives, empty for an output
    :param details: text for a reader who asks for more
    :param metadata: text of the metadata of a node
    :param bodies: drawings of its bodies, or of the function it calls
    :param mark: a class of the style sheet
    :param sources: places in other drawings, `identifier-number`
    """

    title: str
    family: Family
    lines: list[str] = field(default_factory=list)
    results: Sequence[str] = ()
    details: str = ""
    metadata: str = ""
    constants: list[str] = field(default_factory=list)
    bodies: list[Drawing] = field(default_factory=list)
    mark: str = ""
    sources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Edge:
    """A result that goes from a vertex to another one.

    :param source: number of the vertex that gives it
    :param target: number of the vertex that reads it
    :param result: its name
    :param text: its type and shape, empty if they are not known
    """

    source: int
    target: int
    result: str
    text: str


@dataclass
class Drawing:
    """The vertices and the edges of one graph.

    :param title: `then_branch of y`
    :param identifier: names it in a page
    :param vertices: its vertices, in topological order if the model is valid
    :param edges: its edges, one for each reader
    :param parent: the drawing that has the node, None for a graph or a function
    :param nodes: number of nodes of the graph
    """

    title: str
    identifier: str = ""
    vertices: list[Vertex] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    parent: Drawing | None = None
    nodes: int = 0

    def add(self, vertex: Vertex) -> int:
        """Adds a vertex and returns its number."""
        self.vertices.append(vertex)
        return len(self.vertices) - 1


def draw_model(
    model: ModelProto, shapes: ShapeTexts | None = None, prefix: str = "g"
) -> list[Drawing]:
    """Draws a model: its graph first, then bodies and functions.

    Weights are not vertices: they are written in the nodes that read them. They are not read.

    :param model: any model, even one that is not valid
    :param shapes: types and shapes of its results
    :param prefix: beginning of the identifiers of the drawings
    :return: the drawings, a body comes after the drawing of its node

    ::

        main, *others = draw_model(onnx.load("model.onnx"))
        print(len(main.vertices), [other.title for other in others])
    """
    writer = _Writer(prefix)
    functions = [(f, writer.drawing(f"function {f.domain}.{f.name}")) for f in model.functions]
    for function, drawing in functions:
        writer.functions[function.domain, function.name] = drawing
    main = writer.drawing(model.graph.name or "graph")
    writer.graph(main, model.graph, shapes or ShapeTexts(), _Scope())
    for function, drawing in functions:
        writer.function(drawing, function)
    bodies = [d for d in writer.found if d is not main and d.parent is not None]
    return [main, *bodies, *(drawing for _, drawing in functions)]


def draw_nodes(
    nodes: Iterable[NodeProto],
    outputs: Iterable[str],
    shapes: Mapping[str, str],
    constants: Mapping[str, str],
    identifier: str,
) -> Drawing:
    """Draws some nodes alone, with what they read and what they give.

    :param nodes: the nodes
    :param outputs: the results that are drawn as outputs
    :param shapes: types and shapes by result
    :param constants: texts of the constants they read
    :param identifier: identifier of the drawing
    """
    writer = _Writer(identifier)
    drawing = writer.drawing("nodes")
    drawing.identifier = identifier
    rows, texts = list(nodes), ShapeTexts(dict(shapes))
    scope = _Scope(constants=ChainMap(dict(constants)))
    made = {name for node in rows for name in node.output}
    read = dict.fromkeys(name for node in rows for name in node.input if name)
    for name in read:
        if name not in made and name not in constants:
            text = shapes.get(name, "")
            vertex = Vertex(name, FAMILIES["end"], [text] if text else [], [name], name)
            scope.results[name] = drawing.add(vertex)
    writer.nodes(drawing, rows, texts, scope)
    writer.outputs(drawing, [(name, name, shapes.get(name, "")) for name in outputs], texts, scope)
    return drawing


@dataclass
class _Scope:
    """The names a graph may read.

    :param results: number of the vertex of each result of this graph
    :param constants: text of each constant, those of the outer graphs included
    """

    results: dict[str, int] = field(default_factory=dict)
    constants: ChainMap[str, str] = field(default_factory=ChainMap)

    def inner(self) -> _Scope:
        """The scope of a body."""
        return _Scope({}, self.constants.new_child())


class _Writer:
    """Makes the drawings of one model."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.found: list[Drawing] = []
        self.functions: dict[FunctionKey, Drawing] = {}

    def drawing(self, title: str, parent: Drawing | None = None) -> Drawing:
        """Adds an empty drawing."""
        made = Drawing(title, f"{self.prefix}{len(self.found)}", parent=parent)
        self.found.append(made)
        return made

    def graph(self, drawing: Drawing, graph: GraphProto, shapes: ShapeTexts, scope: _Scope) -> None:
        """Draws a graph."""
        for init in graph.initializer:
            scope.constants[init.name] = weight_text(init)
        for sparse in graph.sparse_initializer:
            scope.constants[sparse.values.name] = f"sparse {list(sparse.dims)}"
        for info in graph.input:
            if info.name in scope.constants.maps[0]:  # a weight that may be replaced
                continue
            text = pretty_value_info(info).removeprefix(f"{info.name}: ")
            details = f"input {pretty_value_info(info)}"
            vertex = Vertex(info.name, FAMILIES["end"], [text], [info.name], details)
            scope.results[info.name] = drawing.add(vertex)
        kept = {info.name for info in graph.output}
        self.nodes(drawing, graph.node, shapes, scope, kept)
        rows = []
        for info in graph.output:
            declared = pretty_value_info(info).removeprefix(f"{info.name}: ")
            text = declared if declared != "?" else shapes.results.get(info.name, "")
            rows.append((info.name, info.name, text))
        self.outputs(drawing, rows, shapes, scope)

    def function(self, drawing: Drawing, function: FunctionProto) -> None:
        """Draws a local function."""
        scope, shapes = _Scope(), ShapeTexts()
        for name in function.input:
            vertex = Vertex(name, FAMILIES["end"], [], [name], f"input {name}")
            scope.results[name] = drawing.add(vertex)
        self.nodes(drawing, function.node, shapes, scope, set(function.output))
        self.outputs(drawing, [(n, n, "") for n in function.output], shapes, scope)

    def nodes(
        self,
        drawing: Drawing,
        nodes: Iterable[NodeProto],
        shapes: ShapeTexts,
        scope: _Scope,
        kept: Iterable[str] = (),
    ) -> None:
        """Draws nodes, and the edges to them. A Constant is written in its readers, unless the
        graph keeps its result."""
        drawn: list[tuple[NodeProto, int]] = []
        outside = set(kept)
        for node in nodes:
            drawing.nodes += 1
            if node.op_type == "Constant" and outside.isdisjoint(node.output):
                scope.constants[node.output[0]] = constant_text(node)
                continue
            drawn.append((node, drawing.add(_vertex(node))))
            scope.results.update((name, drawn[-1][1]) for name in node.output if name)
        for node, number in drawn:
            self._bodies(drawing, node, number, shapes, scope)
            reads = {name: i for i, name in reversed(list(enumerate(node.input))) if name}
            for name, place in sorted(reads.items(), key=lambda row: row[1]):
                self.edge(drawing, name, number, shapes, scope, parameter_name(node, place))

    def _bodies(
        self, drawing: Drawing, node: NodeProto, number: int, shapes: ShapeTexts, scope: _Scope
    ) -> None:
        """Draws the bodies of a node, and what they capture as edges."""
        vertex = drawing.vertices[number]
        called = self.functions.get((node.domain, node.op_type))
        if called is not None:
            vertex.family = FAMILIES["control"]
            vertex.bodies.append(called)
        owner = node.name or next(filter(None, node.output), node.op_type)
        first = next(filter(None, node.output), "")
        for attribute, graph in _graphs(node):
            body = self.drawing(f"{attribute} of {owner}", drawing)
            vertex.bodies.append(body)
            self.graph(body, graph, shapes.body(first, attribute), scope.inner())
            for outer in [v for v in body.vertices if v.mark == "outer"]:
                name = outer.title
                outer.lines = [text] if (text := shapes.results.get(name)) else []
                self.edge(drawing, name, number, shapes, scope)

    def edge(
        self,
        drawing: Drawing,
        name: str,
        number: int,
        shapes: ShapeTexts,
        scope: _Scope,
        parameter: str = "",
    ) -> None:
        """Adds the edge of a result, or the line of a constant, to a vertex. The line begins with
        the name the operator gives to this input."""
        source = scope.results.get(name)
        if source is None and name in scope.constants:
            vertex = drawing.vertices[number]
            vertex.constants.append(f"{parameter or name}: {scope.constants[name]}")
            vertex.details += f"\nconstant {name}: {scope.constants[name]}"
            return
        if source is None:  # of an outer graph, or of nothing if the model is not valid
            text = shapes.results.get(name, "")
            vertex = Vertex(name, FAMILIES["end"], [text] if text else [], [name], mark="outer")
            vertex.details = f"{name}, a result of the outer graph"
            if drawing.parent is None:
                vertex.details, vertex.mark = f"{name}: undefined", "undefined"
            source = scope.results[name] = drawing.add(vertex)
        if not any(
            e.source == source and e.result == name for e in self._edges_to(drawing, number)
        ):
            drawing.edges.append(Edge(source, number, name, shapes.results.get(name, "")))

    @staticmethod
    def _edges_to(drawing: Drawing, number: int) -> Iterator[Edge]:
        """The last edges, those to one vertex."""
        for edge in reversed(drawing.edges):
            if edge.target != number:
                return
            yield edge

    def outputs(
        self,
        drawing: Drawing,
        rows: Iterable[tuple[str, str, str]],
        shapes: ShapeTexts,
        scope: _Scope,
    ) -> None:
        """Draws outputs: name, title, type and shape."""
        for name, title, text in rows:
            vertex = Vertex(title, FAMILIES["end"], [text] if text else [])
            vertex.details = f"output {title}: {text or '?'}"
            self.edge(drawing, name, drawing.add(vertex), shapes, scope)


def _graphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The bodies of a node with the attributes that hold them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for i, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{i}]", graph


def _vertex(node: NodeProto) -> Vertex:
    """The vertex of a node."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    lines = [_attribute(a) for a in node.attribute if a.type not in graphs]
    domain = main_domain(node.domain)
    details = [pretty_node(node)]
    if node.name:
        details.append(f"name: {node.name}")
    return Vertex(
        node.op_type,
        family_of(node.op_type),
        [*([domain] if domain else []), *lines],
        [name for name in node.output if name],
        "\n".join(details),
        "\n".join(f"{p.key}: {p.value}" for p in node.metadata_props),
    )


def _attribute(attribute: AttributeProto) -> str:
    """The text of an attribute, six digits of a number."""
    if attribute.type == AttributeProto.FLOAT and not attribute.ref_attr_name:
        return f"{attribute.name}={attribute.f:g}"
    if attribute.type == AttributeProto.FLOATS and not attribute.ref_attr_name:
        return f"{attribute.name}=[{', '.join(f'{f:g}' for f in attribute.floats)}]"
    return pretty_attribute(attribute)


@cache
def _parameters(op_type: str, domain: str) -> tuple[tuple[str, ...], bool]:
    """The names of the inputs of an operator, and whether the last one stands for several."""
    try:
        inputs = onnx.defs.get_schema(op_type, domain).inputs
    except onnx.defs.SchemaError:
        return (), False
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return tuple(i.name for i in inputs), bool(inputs) and inputs[-1].option == variadic


def parameter_name(node: NodeProto, place: int) -> str:
    """The name an operator gives to an input, empty if it is not known.

    :param node: the node
    :param place: place of the input

    >>> parameter_name(onnx.helper.make_node("Conv", ["x", "w"], ["y"]), 1)
    'W'
    """
    names, is_variadic = _parameters(node.op_type, main_domain(node.domain))
    if is_variadic and place >= len(names) - 1:
        return f"{names[-1]}[{place - len(names) + 1}]"
    return names[place] if place < len(names) else ""


def constant_text(node: NodeProto) -> str:
    """The content of a Constant.

    >>> from onnx import helper
    >>> constant_text(helper.make_node("Constant", [], ["c"], value_int=3))
    '3'
    """
    return ", ".join(pretty_attribute(a).partition("=")[2] for a in node.attribute)


def weight_text(weight: Any) -> str:
    """The type and the shape of a weight, its content if it is small: `float[1] = [0.5]`.

    :param weight: a tensor, which may be in another file: it is not read then
    """
    return pretty_initializer("", weight)[2:].removesuffix(" = external")


def shown_lines(vertex: Vertex) -> list[str]:
    """The lines of a vertex that are drawn."""
    lines = [*vertex.constants, *vertex.lines]
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"]
