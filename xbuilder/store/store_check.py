"""Checks the invariants of a store: rebuilds its tables from the nodes and compares them."""

from __future__ import annotations

from ..errors import PatternError
from .store_order import StoreOrder


def check_tables(store: StoreOrder, fresh: StoreOrder) -> None:
    """Compares the tables of a store with those of one made of the same nodes.

    :param store: the store to check
    :param fresh: a store to which the same nodes were added, one after the other
    :raises PatternError: an invariant does not hold
    """
    _compare(
        "producers",
        {n: r.outputs for n, r in fresh.producers.items()},
        {n: r.outputs for n, r in store.producers.items()},
    )
    _compare("consumers", _readers(fresh), _readers(store))
    _compare("captures", fresh.captures, store.captures)
    _compare("names read twice", fresh.read_twice, store.read_twice)
    keys = store.bucket_keys()
    _compare("bucket keys", fresh.bucket_keys(), keys)
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


def _readers(store: StoreOrder) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in store.consumers.items()}


def _compare(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise PatternError(f"The store is inconsistent, {what}: expected {expected}, got {found}.")
