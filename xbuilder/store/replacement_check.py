"""Checks that a change leaves one producer for each result, and for each result still needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from ..errors import InvalidModelError, PatternError
from ..nodes.record import NodeRecord
from .readers import NO_READERS, Readers


def check_new_results(record: NodeRecord, producers: Mapping[str, NodeRecord]) -> None:
    """Checks that no node produces the results of a new node yet.

    :raises InvalidModelError: a result would be produced twice
    """
    outputs = record.outputs
    counts = Counter(outputs) if len(outputs) > 1 else {}
    for name in outputs:
        if name in producers or (name and counts.get(name, 1) > 1):
            raise InvalidModelError(
                f"Result {name!r} is produced twice, by {producers.get(name, record)!r} "
                f"and by {record!r}; every result of a graph needs its own name."
            )


def check_replacement(
    gone: set[NodeRecord],
    records: Sequence[NodeRecord],
    producers: Mapping[str, NodeRecord],
    consumers: Mapping[str, Readers],
    outputs: Collection[str],
) -> Sequence[str]:
    """Checks that nodes may replace others.

    :param gone: nodes that would leave the graph
    :param records: nodes that would join it
    :param producers: the producer of each result
    :param consumers: the readers of each result
    :param outputs: outputs of the graph
    :return: results no node would produce any more, and nothing needs
    :raises PatternError: a result that is still needed would have no producer, or two
    """
    for r in gone:
        if not r.alive:
            raise PatternError(f"Node {r!r} was already removed, it cannot be replaced.")
    made: set[str] = set()
    for r in records:
        for name in r.outputs:
            if not name:
                continue
            p = producers.get(name)
            if name in made or (p is not None and p not in gone):
                raise PatternError(f"Result {name!r} of {r!r} already has a producer.")
            made.add(name)
    lost = {n for r in gone for n in r.outputs if n and n not in made}
    for name in lost:
        if name in outputs or not gone.issuperset(consumers.get(name, NO_READERS)):
            _fail_about(sorted(lost), gone, consumers, outputs)
    for r in records:
        if not lost.isdisjoint(r.inputs) or not lost.isdisjoint(r.captured):
            name = next(n for n in r.reads() if n in lost)
            raise PatternError(f"Node {r!r} reads {name!r} whose producer is removed.")
    return tuple(lost)


def _fail_about(
    lost: Sequence[str],
    gone: Collection[NodeRecord],
    consumers: Mapping[str, Readers],
    outputs: Collection[str],
) -> NoReturn:
    """Raises the error that names the first result that is needed."""
    name = next(n for n in lost if n in outputs or any(r not in gone for r in consumers.get(n, ())))
    if name in outputs:
        raise PatternError(f"Result {name!r} is an output of the graph and has no producer.")
    reader = next(r for r in consumers[name] if r not in gone)
    raise PatternError(f"Result {name!r} is still needed by {reader!r} and has no producer.")
