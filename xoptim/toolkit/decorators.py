"""Decorators that turn functions into rewriters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, overload

from onnx import NodeProto

from ..authoring.context import RewriteContext
from .rewriters import EditableGraph, GraphRewriter, NodeRewriter, Transformed

#: a function of one node, see :meth:`NodeRewriter.transform`
NodeFunction: TypeAlias = Callable[[RewriteContext, NodeProto], Transformed]
#: a function that changes a graph, see :meth:`GraphRewriter.apply`
GraphFunction: TypeAlias = Callable[[EditableGraph], None]


class FunctionNodeRewriter(NodeRewriter):
    """A node rewriter defined by a function.

    :param function: function of one node
    :param tracks: operators it is called on, None for any
    :param name: its name, the name of the function by default

    Example::

        >>> @node_rewriter(["Abs"])
        ... def nothing(graph, node):
        ...     return None
        >>> type(nothing).__name__, nothing.name
        ('FunctionNodeRewriter', 'nothing')
    """

    def __init__(self, function: NodeFunction, tracks: Iterable[str] | None = None, name: str = ""):
        super().__init__()
        self.function = function
        self.__doc__ = function.__doc__
        self._tracks = None if tracks is None else tuple(tracks)
        self.name = name or function.__name__

    def tracks(self) -> Iterable[str] | None:
        """Operators the function is called on."""
        return self._tracks

    def transform(self, graph: RewriteContext, node: NodeProto) -> Transformed:
        """Calls the function."""
        return self.function(graph, node)

    def _first_line(self) -> int:
        return self.function.__code__.co_firstlineno


class FunctionGraphRewriter(GraphRewriter):
    """A graph rewriter defined by a function.

    :param function: function that changes a graph

    Example::

        >>> @graph_rewriter
        ... def nothing(graph):
        ...     pass
        >>> type(nothing).__name__, nothing.name
        ('FunctionGraphRewriter', 'nothing')
    """

    def __init__(self, function: GraphFunction):
        self.function = function
        self.__doc__ = function.__doc__
        self.name = function.__name__

    def apply(self, graph: EditableGraph) -> None:
        """Calls the function."""
        self.function(graph)


@overload
def node_rewriter(tracks: NodeFunction) -> FunctionNodeRewriter: ...


@overload
def node_rewriter(
    tracks: str | Iterable[str] | None = None, name: str = ""
) -> Callable[[NodeFunction], FunctionNodeRewriter]: ...


def node_rewriter(
    tracks: str | Iterable[str] | NodeFunction | None = None, name: str = ""
) -> FunctionNodeRewriter | Callable[[NodeFunction], FunctionNodeRewriter]:
    """Decorator: turns a function of a node into a node rewriter, an instance.

    :param tracks: operators it is called on, None, or no parenthesis, for any
    :param name: its name, the name of the function by default

    ::

        @node_rewriter(["Div"])
        def simplify(graph, node):
            before = graph.before_or_none(node, "Mul")
            if before is None or before.input[1] != node.input[1]:
                return False
            return [before.input[0]]
    """
    if callable(tracks):
        return FunctionNodeRewriter(tracks)
    tracked = [tracks] if isinstance(tracks, str) else tracks
    return lambda function: FunctionNodeRewriter(function, tracked, name)


def graph_rewriter(function: GraphFunction) -> FunctionGraphRewriter:
    """Decorator: turns a function of a graph into a graph rewriter, an instance.

    ::

        @graph_rewriter
        def drop_neg_neg(graph):
            for node in graph.find("Neg"):
                before = graph.node_before(node.input[0])
                if before is not None and before.op_type == "Neg":
                    graph.replace({node.output[0]: before.input[0]})
    """
    return FunctionGraphRewriter(function)
