"""Infers again the readers of results whose facts were refined."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

from ..dims import Dim
from ..facts.facts import ResultFacts, Value
from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from .graph_inference import infer_and_note


@contextmanager
def refreshed(graph: Graph, record: NodeRecord) -> Iterator[None]:
    """Infers again the nodes that depend on the results of a node, if a change refines their facts.

    :param graph: graph holding the node
    :param record: the node; inside the context, others may replace it and keep its results

    ::

        with refreshed(graph, record):
            splice(graph, record, nodes, mapping, results, fresh)
    """
    before = {name: graph.facts[name] for name in record.outputs if name}
    yield
    producers = graph.store.producers  # a result without reader may be removed
    stays = {name: facts for name, facts in before.items() if name in producers}
    refresh(graph, _changed(graph, stays))


def refresh(graph: Graph, names: Iterable[str]) -> int:
    """Infers again the nodes that read some results, then the readers of the results that changed.

    A node is visited once, in graph order. Cost: O(k log k) for k nodes visited.

    :param graph: the graph
    :param names: results whose facts were refined since their readers were inferred
    :return: number of nodes that were inferred again
    """
    store, facts = graph.store, graph.facts
    heap: list[tuple[int, int, NodeRecord]] = []
    queued: set[NodeRecord] = set()
    ticket = count()

    def push(name: str) -> None:
        for reader in store.readers(name):
            if reader not in queued:
                queued.add(reader)
                heapq.heappush(heap, (reader.order, next(ticket), reader))

    for name in names:
        push(name)
    while heap:
        record = heapq.heappop(heap)[2]
        before = facts.restart(record.outputs)
        record.children = None  # the subgraphs see the new facts
        infer_and_note(graph, record)
        for name in _changed(graph, before):
            push(name)
    return len(queued)


def note_constant_readers(graph: Graph, records: Iterable[NodeRecord]) -> None:
    """Records the results that become constant because some others are, from reader to reader.

    Cost: O(readers of constant results); *records* is not read if there is none.

    :param graph: the graph
    :param records: nodes added after their readers were inferred
    """
    store, computed = graph.store, graph.constants.computed
    if not computed:
        return
    stack = [name for r in records if r.alive for name in r.outputs if name in computed]
    while stack:
        for reader in store.readers(stack.pop()):
            known = not reader.outputs or reader.outputs[0] in computed
            if not known and infer_and_note(graph, reader, infer=False):
                stack.extend(name for name in reader.outputs if name)


def _changed(graph: Graph, before: Mapping[str, ResultFacts]) -> list[str]:
    """Completes the facts of some results with those they had before.

    :return: the results whose facts changed
    """
    facts, is_generated = graph.facts, graph.dimensions.is_generated
    changed: list[str] = []
    for name, old in before.items():
        if not facts.contradicts(name, old):
            facts.refine(name, _without_symbols(old, facts[name], is_generated), "before")
        if says_more(facts[name], old, is_generated):
            changed.append(name)
    return changed


def _without_symbols(
    old: ResultFacts, new: ResultFacts, is_generated: Callable[[str], bool]
) -> ResultFacts:
    """Old facts, without the symbols that have another one now, because both are equal only if the
    file is right."""
    shape = old.shape
    if shape is not None and new.shape is not None:
        pairs = zip(shape, new.shape, strict=True)
        shape = tuple(
            a if isinstance(a, int) or (isinstance(b, str) and is_generated(b)) else b
            for a, b in pairs
        )
    value = old.value if new.value is None else None
    return ResultFacts(old.type, shape, old.rank, value, old.sequence, old.optional)


def says_more(new: ResultFacts, old: ResultFacts, is_generated: Callable[[str], bool]) -> bool:
    """Whether new facts hold information the old ones do not. A generated symbol holds none.

    :param new: facts of a result
    :param old: facts the same result had
    :param is_generated: whether a symbol was made by the builder
    """
    if new is old:
        return False
    if (new.type and not old.type) or (new.known_rank() is not None and old.known_rank() is None):
        return True
    if (new.sequence and not old.sequence) or (new.optional and not old.optional):
        return True
    return _other_dims(new.shape, old.shape, is_generated) or _other_dims(
        _items(new.value), _items(old.value), is_generated
    )


def _items(value: Value) -> Sequence[Dim] | None:
    return value if value is None or isinstance(value, tuple) else (value,)


def _other_dims(
    new: Sequence[Dim] | None, old: Sequence[Dim] | None, is_generated: Callable[[str], bool]
) -> bool:
    if new is None or old is None:
        return new is not None
    return any(
        a != b and (isinstance(b, int) or not is_generated(b))
        for a, b in zip(old, new, strict=False)
    )
