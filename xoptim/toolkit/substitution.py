"""Rewriters that substitute an operator by another one, or remove it."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from ..authoring.context import RewriteContext
from ..authoring.right_side import NewNode
from ..authoring.roots import parse_root
from .rewriters import NodeRewriter, Transformed


class SubstitutionNodeRewriter(NodeRewriter):
    """Replaces an operator by another one with the same inputs, attributes and results.

    :param op1: the operator to replace, `"Sub"` or `"domain::Operator"`
    :param op2: the operator to write
    :param name: its name

    ::

        SubstitutionNodeRewriter("com.example::Add", "Add")
    """

    def __init__(self, op1: str, op2: str, name: str = ""):
        super().__init__()
        self._op1, self._op2 = op1, op2
        self.name = name or f"{op1}_to_{op2}"

    def tracks(self) -> Iterable[str]:
        """The operator to replace."""
        return [self._op1]

    def transform(self, graph: RewriteContext, node: NodeProto) -> Transformed:
        """The node with the other operator."""
        domain, op_type = parse_root(self._op2)
        attributes = {a.name: a for a in node.attribute}
        missing = [i for i, name in enumerate(node.output) if not name]
        new = NewNode(op_type, list(node.input), attributes, domain, len(node.output), missing)
        return list(new) if len(node.output) > 1 else [new]


class RemovalNodeRewriter(NodeRewriter):
    """Removes an operator and replaces each of its results by the input at the same position.

    It is refused unless both are proven to have the same type and the same shape, or if a result
    that is read has no input at its position.

    :param op: the operator to remove
    :param name: its name

    ::

        RemovalNodeRewriter("Identity")
    """

    def __init__(self, op: str, name: str = ""):
        super().__init__()
        self._op = op
        self.name = name or f"remove_{op}"

    def tracks(self) -> Iterable[str]:
        """The operator to remove."""
        return [self._op]

    def transform(self, graph: RewriteContext, node: NodeProto) -> Transformed:
        """The inputs of the node, as replacements of its results."""
        inputs = [*node.input, *[""] * len(node.output)]
        pairs = [
            (result, name)
            for result, name in zip(node.output, inputs, strict=False)
            if result and graph.is_used(result)
        ]
        for result, name in pairs:
            graph.require(name, "no input takes the place of a result")
            graph.require(is_same_kind(graph, result, name), "an input has another type or shape")
        return dict(pairs)


def is_same_kind(graph: RewriteContext, result: str, other: str) -> bool:
    """Whether two results are proven to have the same type and the same shape.

    :param graph: the graph
    :param result: a result
    :param other: another one

    Example::

        >>> from xbuilder import GraphBuilder
        >>> from xoptim import GraphBuilderPatternOptimization
        >>> g = GraphBuilder(18)
        >>> x, y = g.make_tensor_input("x", 1, (2, "n")), g.make_tensor_input("y", 1, (2, 3))
        >>> graph = GraphBuilderPatternOptimization(g)
        >>> is_same_kind(graph, x, x), is_same_kind(graph, x, y)
        (True, False)
    """
    elem_type = graph.facts[result].type
    return (
        bool(elem_type) and elem_type == graph.facts[other].type and graph.same_shape(result, other)
    )
