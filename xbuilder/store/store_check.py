"""Checks the invariants of a store: everything is rebuilt from the nodes and compared."""

from __future__ import annotations

from ..errors import PatternError
from .graph_store import GraphStore


def check_store(store: GraphStore) -> None:
    """Compares a store with one made of the same nodes. Cost: O(N log N).

    :raises PatternError: an invariant does not hold
    """
    fresh = GraphStore(store.outputs)
    for record in store.nodes:
        fresh.append(store.proto(record))
    _compare(
        "producers",
        {n: r.outputs for n, r in fresh.producers.items()},
        {n: r.outputs for n, r in store.producers.items()},
    )
    _compare("consumers", _readers(fresh), _readers(store))
    _compare("captures", fresh.captures, store.captures)
    keys = {k for k in store.bucket_keys() if store.bucket(*k)}
    _compare("bucket keys", set(fresh.bucket_keys()), keys)
    for key in keys:
        expected = [repr(r) for r in fresh.bucket(*key)]
        _compare(f"bucket {key}", expected, [repr(r) for r in store.bucket(*key)])
    if fresh.order_violated:
        raise PatternError("The nodes are not in topological order.")
    for record in store.nodes:
        if store.record_of(store.proto(record)) is not record:
            raise PatternError(f"The index of the nodes lost {record!r}.")
    if len(store.index) != len(store):
        raise PatternError("The index of the nodes holds dead nodes.")


def _readers(store: GraphStore) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in store.consumers.items()}


def _compare(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise PatternError(f"The store is inconsistent, {what}: expected {expected}, got {found}.")
