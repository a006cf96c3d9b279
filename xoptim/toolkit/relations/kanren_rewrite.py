"""Rewrites given as relations between the terms of a graph and their replacements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from etuples.core import ExpressionTuple
from kanren.core import run
from onnx import NodeProto
from unification import unify, var
from unification.core import isground

from xbuilder.nodes.record import NodeRecord

from ...authoring.context import RewriteContext, RewriteResult
from ...authoring.rewrite import Rewrite
from ...authoring.rewriters import DistinctMember
from .terms import DEPTH, ConstantTerm, GraphResult

#: a relation: takes two terms, returns a goal
Relation: TypeAlias = Callable[[Any, Any], Any]
#: chooses one of the answers, None to refuse
Choice: TypeAlias = Callable[[Iterator[Any]], Any]
#: largest number of answers of a relation that are considered
MAX_ANSWERS = 64


def first_answer(answers: Iterator[Any]) -> Any:
    """The first answer of a relation."""
    return next(answers, None)


class KanrenRelationSub(DistinctMember, Rewrite):
    """Replaces a result by a term that a relation of miniKanren relates to it.

    The relation is asked for the terms related to the first result of each root: terms, results of
    the graph, or constants. Answers that still hold variables or equal the result do not count.
    Types, shapes and outputs are protected by the engine as they are for any other rewrite; whether
    the relation is true is up to its author.

    :param relation: called with a result of the graph and a variable, returns a goal
    :param roots: operator types the relation is tried on; a short list costs less
    :param results_filter: chooses one of the answers
    :param depth: how many nodes away from the root a term may look
    :param name: its name in reports, the name of the relation by default
    :param verbose: verbosity

    ::

        def twice(term, other):
            x = var()
            return lall(eq(term, op.Add(x, x)), eq(other, op.Mul(x, 2)))

        KanrenRelationSub(twice, roots=("Add",))
    """

    def __init__(
        self,
        relation: Relation,
        roots: str | Iterable[str] = ("*",),
        results_filter: Choice = first_answer,
        depth: int = DEPTH,
        name: str = "",
        verbose: int = 0,
    ):
        super().__init__(verbose)
        self.relation = relation
        self.results_filter = results_filter
        self.depth = depth
        self.name = name or getattr(relation, "__name__", "relation")
        vars(self)["roots"] = (roots,) if isinstance(roots, str) else tuple(roots)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> RewriteResult | None:
        """The replacement of the first result, from the first suitable answer of the relation."""
        seen: list[NodeRecord] = []
        term = GraphResult(g.graph, node.output[0], self.depth, seen)
        found = self.results_filter(self._answers(term))
        g.visited.extend(seen)
        if found is None:
            return g.no("the relation gives nothing to write instead")
        return {node.output[0]: _replacement(found)}

    def _answers(self, term: GraphResult) -> Iterator[Any]:
        """Terms without variables that differ from the one of the graph."""
        other = var()
        answers = run(None, other, self.relation(term, other))
        for answer in islice(answers, MAX_ANSWERS):
            if isground(answer, {}) and unify(answer, term, {}) is False:
                yield answer


def _replacement(found: Any) -> Any:
    """The replacement for an answer."""
    if isinstance(found, GraphResult):
        return found.name
    if isinstance(found, ConstantTerm):
        return found.value
    return found.evaled_obj if isinstance(found, ExpressionTuple) else found
