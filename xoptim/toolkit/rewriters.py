"""The two kinds of rewriters: of a whole graph, of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, cast

from onnx import NodeProto

from xbuilder.builder.graph_builder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.support.rows import Row

from ..authoring.context import RewriteContext
from ..authoring.deduction import Refusal
from ..authoring.patterns import MatchResult
from ..authoring.replacements import Removed, match_of_replacements
from ..authoring.rewriters import DistinctMember
from ..authoring.right_side import NewNode, Replacement
from ..authoring.root_rewrite import RootRewrite
from ..engine.graph_rewriters import EditableGraph, Rewriter
from ..engine.optimizer import GraphBuilderPatternOptimization

#: result of a node rewriter: False or None when it does not apply; the replacements of the results
#: of the node, in their order; or a dictionary of replacements by result, of any node, with an
#: optional entry `remove`, the list of the nodes, or results, to remove
Transformed: TypeAlias = (
    "Literal[False] | Replacement | Sequence[Replacement | None] | Mapping[str, Any] "
    "| Refusal | None"
)

__all__ = ["EditableGraph", "GraphRewriter", "NodeRewriter", "Transformed"]


class GraphRewriter(Rewriter):
    """Rewrites a whole graph; a subclass defines :meth:`apply`.

    ::

        class DropNegNeg(GraphRewriter):
            def apply(self, graph):
                for node in graph.find("Neg"):
                    before = graph.node_before(node.input[0])
                    if before is not None and before.op_type == "Neg":
                        graph.replace({node.output[0]: before.input[0]})
    """

    def rewrite(self, graph: GraphBuilder | Graph) -> list[Row]:
        """Runs it alone on a graph, which is changed in place.

        :param graph: a builder or its graph
        :return: rows of statistics
        """
        return GraphBuilderPatternOptimization(graph, []).run_once([self])


class NodeRewriter(DistinctMember, RootRewrite):
    """Rewrites one node; a subclass defines :meth:`transform`, and :meth:`tracks`.

    It is a pattern: it mixes with any other, the engine checks what it writes. Two instances
    differ.

    ::

        class DropNegNeg(NodeRewriter):
            def tracks(self):
                return ["Neg"]

            def transform(self, graph, node):
                before = graph.before_or_none(node, "Neg")
                return [before.input[0]] if before is not None else False
    """

    def tracks(self) -> Iterable[str] | None:
        """Operators :meth:`transform` is called on, None for any: `"Div"`, `"domain::Operator"`."""
        return None

    def transform(self, graph: RewriteContext, node: NodeProto) -> Transformed:
        """The replacement of a node; must not change anything.

        :param graph: answers questions, makes new operators with `graph.op`
        :param node: a node
        :return: False if the rewriter does not apply; a list with the replacement of each result of
            the node: a name, a new operator, a constant, None to keep it; or a dictionary by
            result, with an entry `remove` for the nodes to remove
        """
        raise NotImplementedError(f"{type(self).__name__} must define method transform.")

    #: the operators :meth:`tracks` returned
    roots: ClassVar[tuple[str, ...]] = cast(Any, property(lambda self: self._tracked()))

    def _tracked(self) -> tuple[str, ...]:
        found = self.tracks()
        return ("*",) if found is None else tuple(found)

    def _analysis(self) -> Callable[[RewriteContext, NodeProto], Transformed]:
        return self.transform

    def _concluded(
        self, context: RewriteContext, record: NodeRecord, answer: Transformed
    ) -> MatchResult | str:
        if answer is None or answer is False:
            return "transform returns False"
        remove: list[Removed] = []
        if isinstance(answer, Mapping):
            rows = dict(answer)
            if isinstance(rows.get("remove"), (list, tuple)):
                remove = list(rows.pop("remove"))
        else:
            rows = _by_result(self.name, record.outputs, answer)
        return match_of_replacements(context, self, rows, remove)


def _by_result(name: str, results: tuple[str, ...], answer: Any) -> dict[str, Replacement]:
    """The replacement of each result of a node."""
    if isinstance(answer, NewNode) and answer.outputs > 1:
        answer = list(answer)[: len(results)]
    values = list(answer) if isinstance(answer, (list, tuple)) else [answer]
    if len(values) != len(results) and isinstance(answer, (list, tuple)):
        raise PatternError(
            f"{name} returns {len(values)} replacements for the {len(results)} results of a node; "
            "None leaves one as it is."
        )
    pairs = zip(results, values, strict=False)
    return {result: value for result, value in pairs if result and value is not None}
