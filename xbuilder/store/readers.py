"""The readers of a result: an ordered set of nodes, as small as it can be.

Most results have one reader. A tuple of one record takes a fifth of the memory of a dictionary, and
is found at once. Beyond a few readers, a dictionary makes the removal of one O(1).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..nodes.record import NodeRecord

#: records, in the order they came
Readers = tuple[NodeRecord, ...] | dict[NodeRecord, None]

NO_READERS: Readers = ()
#: up to this number of readers, they are a tuple
FEW = 8


def as_readers(records: Iterable[NodeRecord]) -> Readers:
    """Readers of one result, each one once.

    :param records: the nodes, a node may come more than once
    """
    unique = dict.fromkeys(records)
    return unique if len(unique) > FEW else tuple(unique)


def with_reader(readers: Readers, record: NodeRecord) -> Readers:
    """Readers with one more. Cost: O(1); only the result may be used afterwards."""
    if isinstance(readers, dict):
        readers[record] = None
        return readers
    return readers if record in readers else as_readers((*readers, record))


def without_reader(readers: Readers, record: NodeRecord) -> Readers:
    """Readers without one of them. Cost: O(1), as :func:`with_reader`."""
    if isinstance(readers, dict):
        readers.pop(record, None)
        return readers
    return tuple([r for r in readers if r is not record])
