"""Running passes on a builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .gc_pause import without_gc
from .options import OptimizationOptions

if TYPE_CHECKING:
    from onnx import FunctionProto

    from .facts import FactTable
    from .store.graph_store import GraphStore

Row = dict[str, Any]

#: a graph is optimized again at most this number of times after its subgraphs changed
MAX_ROUNDS = 10


class PassRunning:
    """Part of :class:`xbuilder.GraphBuilder`: optimization, as a sequence of passes."""

    store: GraphStore
    facts: FactTable
    optimization_options: OptimizationOptions
    functions: dict[tuple[str, str], FunctionProto]

    @without_gc
    def optimize(self, recursive: bool = True) -> list[Row]:
        """Runs the passes of the options, in subgraphs and local functions first.

        :param recursive: optimizes subgraphs and local functions as well, if the options allow it
        :return: one row per pass, match and application, made for `pandas.DataFrame`

        ::

            stat = pandas.DataFrame(g.optimize())
            stat.groupby("pattern").agg({"time_in": "sum", "added": "sum", "removed": "sum"})
        """
        from .passes import complete_rows

        self._start()
        rows: list[Row] = []
        inside = recursive and self.optimization_options.recursive
        late = self._run_passes(rows, inside)
        for _ in range(MAX_ROUNDS):
            if not late and not (inside and self._optimize_changed_children(rows)):
                break
            late = self._run_passes(rows, inside, again=True)
        return complete_rows(rows)

    def _optimize_changed_children(self, rows: list[Row]) -> bool:
        """Optimizes again the subgraphs whose captured results were renamed by the passes.

        :param rows: receives the statistics
        :return: True if it changes something
        """
        from .nested.subgraphs import optimize_children

        before = self.store.generation
        if self.optimization_options.stop_after < 0:
            rows.extend(optimize_children(self, again=True))  # type: ignore[arg-type]
        return self.store.generation != before

    def _start(self) -> None:
        """Counts again from nothing, unless this graph belongs to one that is being optimized."""
        if self.parent is None and not self.in_function:  # type: ignore[attr-defined]
            self.counts.clear()  # type: ignore[attr-defined]

    def _run_passes(self, rows: list[Row], inside: bool, again: bool = False) -> bool:
        """Runs every pass once.

        :param rows: receives the statistics
        :param inside: optimizes subgraphs and local functions as well
        :param again: this graph was optimized already, only its new subgraphs are
        :return: True if a subgraph joined this graph after the patterns, which have to see it
        """
        from .nested.local_functions import optimize_functions
        from .nested.subgraphs import optimize_children
        from .passes import run_pass
        from .passes.control_flow import RULES

        late = False
        for name in (*self.optimization_options.passes, "end"):
            if inside and name in ("patterns", "end"):
                root = self.parent is None and not self.as_function  # type: ignore[attr-defined]
                if root and not again:
                    rows.extend(optimize_functions(self))  # type: ignore[arg-type]
                rows.extend(optimize_children(self, again))  # type: ignore[arg-type]
                inside = False
            if name != "end" and self._is_enabled(name):
                new = run_pass(self, name)  # type: ignore[arg-type]
                rows.extend(new)
                late |= any(row["pattern"] in RULES for row in new)
            if name == "patterns":
                late = False
        options = self.optimization_options
        return late and "patterns" in options.passes and options.stop_after < 0

    def _is_enabled(self, name: str) -> bool:
        options = self.optimization_options
        switches = {
            "remove_unused": options.remove_unused,
            "remove_identity": options.remove_identity,
            "constant_folding": bool(options.constant_folding),
            "remove_duplicated_initializer": options.constant_fusing,
            "remove_duplicated_shape": options.remove_duplicated_shape,
            "patterns": options.patterns is not None,
        }
        return bool(switches.get(name, True))

    def optimize_with_patterns(self, recursive: bool = True) -> list[Row]:
        """Runs the patterns of the options and nothing else. Returns rows of statistics."""
        from .nested.subgraphs import children_of, owners, write_back
        from .passes import complete_rows, run_pass

        self._start()
        rows: list[Row] = []
        if recursive and self.optimization_options.recursive:
            for record in owners(self):  # type: ignore[arg-type]
                for child in children_of(self, record).values():  # type: ignore[arg-type]
                    rows.extend(child.optimize_with_patterns())
                write_back(self, record)  # type: ignore[arg-type]
        rows.extend(run_pass(self, "patterns"))  # type: ignore[arg-type]
        return complete_rows(rows)

    def _run(self, name: str) -> Any:
        from .passes import get_pass

        return get_pass(name)(self)  # type: ignore[arg-type]

    def remove_unused(self) -> int:
        """Removes nodes and initializers no output depends on. Returns how many."""
        return self._run("remove_unused")

    def remove_identity_nodes(self) -> int:
        """Removes Identity nodes. Returns how many."""
        return self._run("remove_identity")

    def remove_duplicated_shape_nodes(self) -> int:
        """Merges nodes giving the same shape. Returns how many were removed."""
        return self._run("remove_duplicated_shape")

    def remove_duplicated_initializers(self) -> int:
        """Merges equal initializers. Returns how many were removed."""
        return self._run("remove_duplicated_initializer")

    def constant_folding(self) -> list[Row]:
        """Folds constants. Returns rows of statistics, the reasons of what was left included."""
        return self._run("constant_folding")

    def topological_sort(self) -> int:
        """Sorts the nodes, a stable topological order. Returns how many moved."""
        before = list(self.store.nodes)
        self.store.sort()
        return sum(a is not b for a, b in zip(before, self.store.nodes, strict=True))

    def infer_shapes(self) -> int:
        """Infers types and shapes again. Returns how many results are better known than before."""
        better = 0
        for record in self.store.nodes:
            before = [self.facts[o] for o in record.outputs]
            self.learn(record)  # type: ignore[attr-defined]
            after = [self.facts[o] for o in record.outputs]
            better += sum(a != b for a, b in zip(before, after, strict=True))
        return better

    def inline_functions(self, verbose: int = 0) -> int:
        """Inlines local functions everywhere. Returns the number of calls that were inlined.

        :param verbose: prints what is inlined
        """
        from .nested.local_functions import inline_functions

        return inline_functions(self, verbose)  # type: ignore[arg-type]

    def move_initializers_to_constant(
        self, full_parameter_name: str = "", threshold: int | None = None, verbose: int = 0
    ) -> int:
        """Turns initializers into Constant nodes. Returns how many.

        :param full_parameter_name: only the initializers whose name starts with it
        :param threshold: only those below this size in bytes
        :param verbose: prints what is moved
        """
        from .protos.exporting import initializers_to_constants

        return initializers_to_constants(self, full_parameter_name, threshold, verbose)  # type: ignore[arg-type]
