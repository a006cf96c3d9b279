"""Finds the folds that would rewrite weights of other files without saving time."""

from __future__ import annotations

from ..constants.deferred import DEFERRED_BYTES, deferred_tensor
from ..constants.initializers import reads_a_file
from ..constants.table import ConstantTable
from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from ..operators.op_traits import RESHAPES
from ..runtimes.known_kernels import has_kernel
from ..tensors.sizes import initializer_bytes

COMPUTED_ONCE = "runtimes compute it once, when they load the model: a weight stays in its file"
HELD = "a weight of another file would be held in memory"


def largest_rewritten(graph: Graph) -> int:
    """Size in bytes above which a weight of another file is left there. A smaller one is rewritten
    with the model."""
    return max(DEFERRED_BYTES, graph.scope.options.constant_size)


def why_not_rewritten(graph: Graph, record: NodeRecord, size: int) -> str:
    """The reason not to fold a node: it would rewrite a weight of another file, and save no time.

    A runtime computes the nodes that depend on constants only when it loads the model, and they
    take no time afterwards. Such a node is folded when it costs nothing (another shape for the same
    bytes, a small result, up to the option `constant_size`), and when no kernel is known to compute
    it.

    :param graph: the graph
    :param record: the node, its inputs are constant
    :param size: bytes of its results
    :return: the reason, an empty string if there is none
    """
    table, limit = graph.constants, largest_rewritten(graph)
    if size <= limit or not _reads_file(table, record, limit) or _same_bytes(table, record):
        return ""
    elem_type = graph.facts[record.inputs[0]].type
    if not record.domain and has_kernel(record.op_type, elem_type, table.opsets.get("", 1)):
        return COMPUTED_ONCE
    return HELD if deferred_tensor(table, record.outputs[0]) is None else ""


def _reads_file(table: ConstantTable, record: NodeRecord, limit: int) -> bool:
    """Whether a constant depends on a big weight of another file."""
    names, seen = list(record.reads()), set[str]()
    while names:
        name = names.pop()
        owner = _owner(table, name)
        if owner is None or name in seen:
            continue
        seen.add(name)
        if name in owner.initializers:
            value = owner.initializers[name]
            if reads_a_file(value) and initializer_bytes(value) > limit:
                return True
        else:
            names.extend(owner.computed[name].reads())
    return False


def _owner(table: ConstantTable | None, name: str) -> ConstantTable | None:
    """The table of constants, of the graph or of one around it, that has a name."""
    while table is not None and name not in table.initializers and name not in table.computed:
        table = table.parent
    return table


def _same_bytes(table: ConstantTable, record: NodeRecord) -> bool:
    """Whether a node only reshapes an initializer."""
    while record.op_type in RESHAPES:
        name = record.inputs[0]
        if name in table.initializers:
            return True
        if name not in table.computed:
            return False
        record = table.computed[name]
    return False
