"""Finds nodes by the names a user gives, of nodes or of results."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import OptionError
from ..nodes.record import NodeRecord
from ..support.close_names import closest_names
from .graph_store import GraphStore


def named_nodes(store: GraphStore, names: Iterable[str]) -> dict[str, list[NodeRecord]]:
    """For each name, the nodes with this name, in graph order, then the producer of this result.

    Cost: O(N).

    :param store: the nodes
    :param names: names of nodes or of results
    :raises OptionError: no node has one of the names
    """
    records_by_name: dict[str, list[NodeRecord]] = {name: [] for name in names}
    for record in store.nodes if records_by_name else ():
        name = store.proto(record).name
        if name in records_by_name:
            records_by_name[name].append(record)
    for name, records in records_by_name.items():
        producer = store.producers.get(name)
        if producer is not None:
            records.append(producer)
        if not records:
            raise unknown_node(name, [store])
    return records_by_name


def unknown_node(name: str, stores: Iterable[GraphStore]) -> OptionError:
    """The error for a name that is neither that of a node nor of a result, with close names.

    :param name: what the user wrote
    :param stores: the nodes of a graph, and of its bodies
    """
    known: dict[str, None] = {}
    for store in stores:
        known.update(dict.fromkeys(store.proto(record).name for record in store.nodes))
        known.update(dict.fromkeys(store.producers))
    close = " or ".join(closest_names(name, filter(None, known)))
    hint = f" Did you mean {close}?" if close else ""
    return OptionError(f"No node is called {name!r}, and none gives a result of this name.{hint}")
