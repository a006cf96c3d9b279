"""Checks the invariants of a store: rebuilds its tables from the nodes and compares them."""

from __future__ import annotations

from typing import Protocol

from onnx import NodeProto

from ..errors import PatternError
from ..nodes.record import Key, NodeRecord
from .readers import Readers


class StoreTables(Protocol):
    """The tables of a :class:`.graph_store.GraphStore`."""

    producers: dict[str, NodeRecord]
    consumers: dict[str, Readers]
    captures: dict[str, int]
    read_twice: dict[str, None]
    index: dict[int, NodeRecord]
    order_violated: bool

    def __len__(self) -> int: ...

    @property
    def nodes(self) -> list[NodeRecord]:
        """Live nodes."""

    def proto(self, record: NodeRecord) -> NodeProto:
        """A node as a proto."""

    def record_of(self, proto: NodeProto) -> NodeRecord | None:
        """The record of a proto."""

    def bucket(self, domain: str, op_type: str) -> list[NodeRecord]:
        """Live nodes of a type."""

    def bucket_keys(self) -> set[Key]:
        """Types of nodes."""


def check_tables(store: StoreTables, fresh: StoreTables) -> None:
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


def _readers(store: StoreTables) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in store.consumers.items()}


def _compare(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise PatternError(f"The store is inconsistent, {what}: expected {expected}, got {found}.")
