"""The types and shapes of the results of a model, as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import ModelProto

from xbuilder import GraphBuilder
from xbuilder.dims.scope import as_written
from xbuilder.errors import XoptimError
from xbuilder.facts.facts import ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.nested.bodies import children_of, owners
from xbuilder.tensors.bits import pretty_type


@dataclass
class ShapeTexts:
    """Types and shapes of the results of one graph.

    :param results: `float[batch, 4]` by name of the result
    :param bodies: those of the bodies, by first result of their node and attribute
    """

    results: dict[str, str] = field(default_factory=dict)
    bodies: dict[tuple[str, str], ShapeTexts] = field(default_factory=dict)

    def body(self, result: str, attribute: str) -> ShapeTexts:
        """Those of the body of a node, empty if they are not known.

        :param result: first result of the node
        :param attribute: attribute that holds the body
        """
        return self.bodies.get((result, attribute)) or ShapeTexts()


def shape_texts(graph: Graph) -> ShapeTexts:
    """The types and shapes of all the results of a graph, bodies included.

    :param graph: a graph whose shapes are inferred

    ::

        builder = GraphBuilder("model.onnx", infer_shapes_options=True)
        print(shape_texts(builder.graph).results["x"])
    """
    found = ShapeTexts({name: fact_text(facts) for name, facts in graph.facts.items()})
    for record in owners(graph):
        first = next(filter(None, record.outputs), "")
        for attribute, child in children_of(graph, record).items():
            found.bodies[first, attribute] = shape_texts(child)
    return found


def model_shapes(model: ModelProto) -> ShapeTexts:
    """The types and shapes of the results of a model, none if it is not valid.

    :param model: any model, its weights in other files are not read
    """
    try:
        return shape_texts(GraphBuilder(model, infer_shapes_options=True).graph)
    except XoptimError:
        return ShapeTexts()


def fact_text(facts: ResultFacts) -> str:
    """The type and the shape of a result: `float[batch, 4]`, empty if nothing is known.

    :param facts: what is known of the result
    """
    if facts.sequence is not None:
        return f"sequence({fact_text(facts.sequence)})"
    if facts.optional is not None:
        return f"optional({fact_text(facts.optional)})"
    if not facts.type:
        return ""
    if facts.shape is not None:
        dims = (as_written(d) if isinstance(d, str) else str(d) for d in facts.shape)
        return f"{pretty_type(facts.type)}[{', '.join(dims)}]"
    rank = "" if facts.rank is None else f"[{', '.join('?' * facts.rank)}]"
    return f"{pretty_type(facts.type)}{rank}"
