"""Draws a model in the language of graphviz, whatever characters its names contain."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from xbuilder.protos.pretty import pretty_attribute, pretty_initializer, pretty_value_info

from .drawing.families import family_of
from .drawing.shapes import ShapeTexts

_MAX_LABEL = 300
_STYLES = {
    "input": 'shape=box, style="filled", fillcolor="#cfe8cf"',
    "output": 'shape=box, style="filled", fillcolor="#cfdcf0"',
    "initializer": 'shape=note, style="filled", fillcolor="#f3e9c6"',
    "undefined": 'shape=box, style="dashed", color="#c00000"',
}

_NODE = 'shape=box, style="rounded,filled", fillcolor="{}"'

#: result -> identifier of its producer, the names of the subgraph first
Scope = ChainMap[str, str]


def quoted(text: str) -> str:
    """Writes any text as a quoted string of the language dot, drawn as it is.

    :param text: names are strings, bytes when they are not valid UTF-8
    :return: the text between quotes, shortened if it is very long

    ::

        quoted('a"b')  # "a\\"b"
    """
    text = text if isinstance(text, str) else repr(text)
    if len(text) > _MAX_LABEL:
        text = f"{text[:_MAX_LABEL]}..."
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    # graphviz reads \N, \G, \l... in a label, and entities of HTML
    special = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "&": "&amp;"}
    if char in special:
        return special[char]
    # a null byte would end the graph, other control characters hide the text that follows
    return char if char.isprintable() else f"\\\\x{ord(char):02x}"


class _Drawing:
    """The lines of a graph under construction; identifiers are numbers, names are labels.

    Edges come last: one written inside a frame would pull both its ends into the frame.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.edges: list[str] = []
        self.texts: dict[tuple[str, str], str] = {}
        self._count = 0

    def identifier(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def vertex(self, label: str, style: str) -> str:
        name = self.identifier()
        self.lines.append(f"  {name} [label={quoted(label)}, {_STYLES.get(style, style)}];")
        return name

    def edge(self, scope: Scope, result: str, target: str) -> None:
        if result not in scope:  # a function may be drawn, a broken model too
            scope[result] = self.vertex(f"{result}: undefined", "undefined")
        text = self.texts.get((scope[result], result), "")
        label = quoted(f"{result}\n{text}" if text else result)
        self.edges.append(f"  {scope[result]} -> {target} [label={label}];")

    def open_cluster(self, label: str) -> None:
        self.lines.append(f"  subgraph cluster_{self.identifier()} {{")
        self.lines.append(f"  label={quoted(label)};")

    def close_cluster(self) -> None:
        self.lines.append("  }")

    def graph(self, graph: GraphProto, scope: Scope, shapes: ShapeTexts) -> None:
        for init in graph.initializer:
            scope[init.name] = self.vertex(pretty_initializer(init.name, init), "initializer")
        for sparse in graph.sparse_initializer:
            label = f"{sparse.values.name}: sparse {list(sparse.dims)}"
            scope[sparse.values.name] = self.vertex(label, "initializer")
        for info in graph.input:
            if info.name not in scope.maps[0]:
                scope[info.name] = self.vertex(pretty_value_info(info), "input")
        self.nodes(graph.node, scope, shapes)
        for info in graph.output:
            self.edge(scope, info.name, self.vertex(pretty_value_info(info), "output"))

    def function(self, function: FunctionProto) -> None:
        attributes = "".join(f" @{name}" for name in function.attribute)
        self.open_cluster(f"function {function.domain}.{function.name}{attributes}")
        scope: Scope = ChainMap()
        for name in function.input:
            scope[name] = self.vertex(name, "input")
        self.nodes(function.node, scope, ShapeTexts())
        for name in function.output:
            self.edge(scope, name, self.vertex(name, "output"))
        self.close_cluster()

    def nodes(self, nodes: Iterable[NodeProto], scope: Scope, shapes: ShapeTexts) -> None:
        drawn = []
        for node in nodes:
            style = _NODE.format(family_of(node.op_type).light[0])
            number = self.vertex(_node_label(node), style)
            drawn.append((node, number))
            for name in filter(None, node.output):
                scope[name] = number
                self.texts[number, name] = shapes.results.get(name, "")
        for node, name in drawn:
            for result in node.input:
                if result:
                    self.edge(scope, result, name)
            first = next(filter(None, node.output), "")
            for att in node.attribute:
                for i, graph in enumerate([att.g] if att.HasField("g") else att.graphs):
                    suffix = "" if att.HasField("g") else f"[{i}]"
                    self.open_cluster(f"{att.name}{suffix} of {_title(node)}")
                    self.graph(graph, scope.new_child(), shapes.body(first, att.name))
                    self.close_cluster()


def _title(node: NodeProto) -> str:
    op_type = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return f"{op_type} {node.name}" if node.name else op_type


def _node_label(node: NodeProto) -> str:
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    attributes = [pretty_attribute(a) for a in node.attribute if a.type not in graphs]
    return "\n".join([_title(node), *attributes])


def model_dot(model: ModelProto, shapes: ShapeTexts | None = None) -> str:
    """Converts a model into a graph for graphviz: subgraphs and functions are frames, a color is a
    family of operators.

    Cost: O(size of the model), weights are not read.

    :param model: any model, even one that is not valid
    :param shapes: types and shapes of its results, written beside the edges
    :return: text in the language dot

    ::

        Path("model.dot").write_text(model_dot(onnx.load("model.onnx")), encoding="utf-8")
    """
    drawing = _Drawing()
    drawing.graph(model.graph, ChainMap(), shapes or ShapeTexts())
    for function in model.functions:
        drawing.function(function)
    title = quoted(model.graph.name)
    head = [f"digraph {title} {{", f"  label={title};", "  node [fontsize=11];"]
    return "\n".join([*head, "  edge [fontsize=9];", *drawing.lines, *drawing.edges, "}"])
