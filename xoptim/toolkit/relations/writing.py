"""Converts results of a graph into terms, and terms into nodes, outside of a rewrite."""

from __future__ import annotations

from etuples.core import ExpressionTuple

from xbuilder.builder.graph_builder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph

from ...authoring.right_side import NewNode, NewResult, Writer
from ...engine.optimizer import GraphBuilderPatternOptimization
from .terms import DEPTH, GraphResult


def term_of(builder: GraphBuilder | Graph, name: str, depth: int = DEPTH) -> GraphResult:
    """A result of a graph as a term.

    :param builder: a builder or its graph
    :param name: name of a result, an input or an initializer
    :param depth: how many nodes away the term may look
    :raises OptionError: the graph has no such name

    ::

        unify(term_of(builder, "y"), op.Relu(var("x")))
    """
    graph = builder.graph if isinstance(builder, GraphBuilder) else builder
    if name not in graph.names:
        raise OptionError(f"The graph has no result {name!r}.")
    return GraphResult(graph, name, depth)


def write(builder: GraphBuilder, term: ExpressionTuple, name: str) -> str:
    """Adds the nodes of a term at the end of a graph.

    :param builder: the builder of the graph
    :param term: a term without variables
    :param name: name of its result, not used yet
    :return: the name
    :raises OptionError: the term holds a variable, or is not one of an operator

    ::

        write(builder, reify(op.Mul(x, y), substitution), "product")
    """
    value = term.evaled_obj if isinstance(term, ExpressionTuple) else None
    if not isinstance(value, (NewNode, NewResult)):
        raise OptionError(f"{term!r} is not an operator applied to operands.")
    optimizer = GraphBuilderPatternOptimization(builder, [])
    for node in Writer(optimizer, {name: value}).nodes():
        builder.add_node(node)
    return name
