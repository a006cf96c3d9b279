"""Required ranks: the rank a result must have because a node that always runs reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from ..graph.graph import Graph
from ..nodes.attributes import find_attribute
from ..nodes.record import NodeRecord
from ..operators.op_traits import ELEMENTWISE_UNARY

#: maximum number of results visited
_MAX_RESULTS = 64

#: ranks of the inputs of LSTM: X, W, R, B, sequence_lens, initial_h, initial_c, P
_LSTM = (3, 3, 3, 2, 1, 3, 3, 2)
#: operator -> the rank of each input, None for any; onnxruntime and the specification agree
_FIXED: dict[str, tuple[int | None, ...]] = {
    "LSTM": _LSTM,
    "GRU": _LSTM[:6],
    "RNN": _LSTM[:6],
    "Gemm": (None, 2),  # onnxruntime takes a vector for A
    "DepthToSpace": (4,),
    "SpaceToDepth": (4,),
}
#: operators whose first two inputs have the same rank; onnxruntime concatenates other ranks if one
#: of them is empty
_ALIKE = frozenset({"Conv", "ConvTranspose"})
#: operators with an attribute of as many integers as the first input has dimensions, but some
_COUNTED = {
    "AveragePool": ("kernel_shape", 2),
    "LpPool": ("kernel_shape", 2),
    "MaxPool": ("kernel_shape", 2),
    "Transpose": ("perm", 0),
}


def required_rank(graph: Graph, name: str, needed: Set[NodeRecord]) -> int | None:
    """The rank a result has in any run that does not fail, as its readers require.

    A reader in the same graph requires a rank (a recurrent operator, a convolution, a
    transposition), or gives a result whose rank follows from the rank of its input, and so on. A
    reader in a subgraph requires nothing, because it may not run. Nor does a node no output depends
    on, because a runtime may skip it. The declarations of the model are not used.

    Cost: O(readers of at most 64 results).

    :param graph: the graph
    :param name: one of its results
    :param needed: the nodes its outputs depend on, see :func:`needed_nodes`
    :return: None if no reader requires a rank
    """
    pending, seen = deque([(name, 0)]), {name}
    while pending:
        current, less = pending.popleft()  # the first result has `less` dimensions less than it
        for record in graph.store.readers(current):
            if record.domain or current in record.captured or record not in needed:
                continue
            rank = _required_by(graph, record, current)
            if rank is not None:
                return rank - less
            added = _added_dimensions(graph, record, current)
            if added is not None and record.outputs[0] not in seen and len(seen) < _MAX_RESULTS:
                seen.add(record.outputs[0])
                pending.append((record.outputs[0], less + added))
    return None


def must_fail(graph: Graph, record: NodeRecord) -> bool:
    """Whether a node fails whenever it runs, because of the rank of one of its inputs, or of a
    dimension it removes.

    :param graph: the graph
    :param record: one of its nodes
    """
    if record.domain:
        return False
    for name in record.inputs:
        rank = graph.facts[name].known_rank() if name else None
        required = None if rank is None else _required_by(graph, record, name)
        if required not in (None, rank):
            return True
    return record.op_type in ("Squeeze", "Unsqueeze") and _axes_fail(graph, record)


def _axes_fail(graph: Graph, record: NodeRecord) -> bool:
    """Whether Squeeze or Unsqueeze has an axis that does not exist, or cannot be removed."""
    facts, axes = graph.facts[record.inputs[0]], _axes(graph, record)
    rank = facts.known_rank()
    if rank is None:
        return False
    size = rank + len(axes) if record.op_type == "Unsqueeze" else rank
    if any(not -size <= a < size for a in axes):
        return True
    if record.op_type == "Unsqueeze" or facts.shape is None:
        return False
    dims = [facts.shape[a] for a in axes]
    return any(isinstance(d, int) and d != 1 for d in dims)


def needed_nodes(graph: Graph) -> Set[NodeRecord]:
    """The nodes the outputs of a graph depend on. Cost: O(edges)."""
    producers = graph.store.producers
    found: set[NodeRecord] = set()
    pending = list(graph.store.outputs)
    while pending:
        record = producers.get(pending.pop())
        if record is not None and record not in found:
            found.add(record)
            pending.extend(record.reads())
    return found


def _required_by(graph: Graph, record: NodeRecord, name: str) -> int | None:
    """The rank a node requires of one of its inputs."""
    op_type, inputs = record.op_type, record.inputs
    index = inputs.index(name)
    if op_type in _FIXED:
        ranks = _FIXED[op_type]
        return ranks[index] if index < len(ranks) else None
    if op_type in _ALIKE and index < 2:
        return graph.facts[inputs[1 - index]].known_rank()
    if op_type in _COUNTED and index == 0:
        attribute, others = _COUNTED[op_type]
        found = find_attribute(graph.store.proto(record), attribute)
        written = found is not None and not found.ref_attr_name and found.ints
        return len(found.ints) + others if found is not None and written else None
    return None


def _added_dimensions(graph: Graph, record: NodeRecord, name: str) -> int | None:
    """Number of dimensions the result of a node has more than its first input, None if it is not
    known, or if the name is another input."""
    if record.inputs[0] != name:
        return None
    if record.op_type in ELEMENTWISE_UNARY or record.op_type == "Transpose":
        return 0
    if record.op_type not in ("Squeeze", "Unsqueeze"):
        return None
    axes = _axes(graph, record)
    count = len(set(axes))
    if not count or count != len(axes) or min(axes) < 0 <= max(axes):
        return None  # two of them may be the same axis
    return count if record.op_type == "Unsqueeze" else -count


def _axes(graph: Graph, record: NodeRecord) -> list[int]:
    """Axes of a node, empty if they are missing or not known."""
    found = find_attribute(graph.store.proto(record), "axes")
    if found is not None:
        return [] if found.ref_attr_name else list(found.ints)
    if len(record.inputs) < 2 or not graph.constants.is_constant(record.inputs[1]):
        return []
    value = graph.constants.value(record.inputs[1])
    return [] if value is None else [int(i) for i in value.ravel()]
