"""Part of GraphBuilder: runs passes, attaches features."""

from __future__ import annotations

from ..graph.features import Feature, attach, detach
from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..nested.inlining import inline_functions
from ..protos.exporting import initializers_to_constants
from ..support.gc_pause import without_gc
from ..support.rows import Row, complete_rows
from .optimization_options import resolved_options


def run_passes(graph: Graph, recursive: bool = True) -> list[Row]:
    """Resolves the options of a graph, then runs their passes. Returns rows of statistics.

    :param graph: the graph
    :param recursive: optimizes subgraphs and local functions as well, if the options allow it
    """
    from ..passes.pipeline import optimize_graph

    resolved_options(graph.scope)
    return optimize_graph(graph, recursive)


class BuilderPasses:
    """The methods of :class:`xbuilder.GraphBuilder` that run passes, and attach features."""

    graph: Graph

    def attach_feature(self, feature: Feature) -> None:
        """Attaches a feature to the graph. It is notified of every change until it is detached.

        :param feature: a :class:`xbuilder.graph.features.Feature`
        """
        attach(self.graph, feature)

    def detach_feature(self, feature: Feature) -> None:
        """Detaches a feature, which is not notified any more."""
        detach(self.graph, feature)

    @without_gc
    def optimize(self, recursive: bool = True) -> list[Row]:
        """Runs the passes of the options, in subgraphs and local functions first.

        :param recursive: optimizes subgraphs and local functions as well, if the options allow it
        :return: one row per pass, match and application, made for `pandas.DataFrame`

        ::

            stat = pandas.DataFrame(g.optimize())
            stat.groupby("pattern").agg({"time_in": "sum", "added": "sum", "removed": "sum"})
        """
        return complete_rows(run_passes(self.graph, recursive))

    def optimize_with_patterns(self, recursive: bool = True) -> list[Row]:
        """Runs the patterns of the options and nothing else. Returns rows of statistics."""
        from ..passes.pipeline import run_patterns

        resolved_options(self.graph.scope)
        return complete_rows(run_patterns(self.graph, recursive))

    def remove_unused(self) -> int:
        """Removes nodes and initializers no output depends on. Returns how many."""
        from ..passes.unused import remove_unused

        return remove_unused(self.graph)

    def remove_identity_nodes(self) -> int:
        """Removes Identity nodes. Returns how many."""
        from ..passes.identity import remove_identity

        return remove_identity(self.graph)

    def remove_duplicated_shape_nodes(self) -> int:
        """Merges nodes computing the same shape. Returns how many were removed."""
        from ..passes.duplicates import remove_duplicated_shape

        return remove_duplicated_shape(self.graph)

    def remove_duplicated_initializers(self) -> int:
        """Merges equal initializers. Returns how many were removed."""
        from ..passes.duplicates import remove_duplicated_initializer

        return remove_duplicated_initializer(self.graph)

    def constant_folding(self) -> int:
        """Folds constants. Returns how many nodes were; the rows of :meth:`optimize` give the
        reason of each refusal."""
        from ..passes import run_pass

        reports = run_pass(self.graph, "constant_folding")
        return sum(row.get("changed", 0) for report in reports for row in report.rows)

    def topological_sort(self) -> int:
        """Sorts the nodes in a stable topological order. Returns how many moved."""
        store = self.graph.store
        before = list(store.nodes)
        store.sort()
        return sum(a is not b for a, b in zip(before, store.nodes, strict=True))

    def infer_shapes(self) -> int:
        """Infers types and shapes again. Returns the number of results whose facts were refined."""
        better, facts = 0, self.graph.facts
        for record in self.graph.store.nodes:
            before = [facts[o] for o in record.outputs]
            infer_and_note(self.graph, record)
            after = [facts[o] for o in record.outputs]
            better += sum(a != b for a, b in zip(before, after, strict=True))
        return better

    def inline_functions(self, verbose: int = 0) -> int:
        """Inlines local functions everywhere. Returns the number of calls that were inlined.

        :param verbose: prints what is inlined
        """
        return inline_functions(self.graph, verbose)

    def move_initializers_to_constant(
        self,
        full_parameter_name: str | bool = "",
        threshold: int | None = None,
        verbose: int = 0,
    ) -> int:
        """Turns initializers into Constant nodes. Returns how many.

        :param full_parameter_name: only the initializers whose name starts with it; a bool means
            all of them, their names are kept whole
        :param threshold: only those below this size in bytes
        :param verbose: prints what is moved
        """
        prefix = full_parameter_name if isinstance(full_parameter_name, str) else ""
        return initializers_to_constants(self.graph, prefix, threshold, verbose)
