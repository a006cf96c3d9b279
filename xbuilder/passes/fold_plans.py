"""Plans the fold of one node: what it would add to a model and remove, before computing it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..constants.evaluation import predicted_bytes
from ..constants.growth import METADATA, GrowthBudget
from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from ..operators.op_traits import DEQUANTIZERS
from ..store.readers import NO_READERS
from ..tensors.sizes import initializer_bytes
from .rewritten_weights import why_not_rewritten

#: a shared parameter of more bytes is never written twice
_COPIED_BYTES = 1024
#: operators that take a piece of their first input, and the most readers that share one
_PIECES, _MOST_PIECES = frozenset({("", "Gather"), ("", "Slice")}), 512


@dataclass(slots=True)
class FoldPlan:
    """The effect of folding a node.

    :param record: the node
    :param generation: generation of the graph for which it is right
    :param reason: why it cannot be folded, empty if it can
    :param growth: bytes it adds to the model
    :param nodes: the node, and those it alone depends on, removed with it
    :param weights: initializers, and results of Constant nodes, that only these nodes read
    """

    record: NodeRecord
    generation: int
    reason: str = ""
    growth: int = 0
    nodes: set[NodeRecord] = field(default_factory=set)
    weights: list[str] = field(default_factory=list)


def plan_fold(graph: Graph, record: NodeRecord) -> FoldPlan:
    """Plans the fold of a node whose results are constant. Cost: O(nodes it alone depends on)."""
    plan = FoldPlan(record, graph.store.generation, _refusal(graph, record))
    size = 0
    for name in record.outputs if not plan.reason else ():
        facts = graph.facts[name]
        predicted = predicted_bytes(facts.type, facts.shape) if name else 0
        if predicted is None:
            plan.reason = "the size of the result is not known"
            return plan
        size += predicted
    if not plan.reason:
        plan.reason = why_not_rewritten(graph, record, size)
    if not plan.reason:
        _note_freed(graph, plan)
        plan.growth = size - _freed_bytes(graph, plan.weights)
        if plan.growth > 0 and _leaves_in_pieces(graph, record):
            plan.growth = 0
        if plan.growth > _COPIED_BYTES and _copies_parameter(graph, plan):
            plan.reason = "the parameter is read elsewhere, it is stored once"
    return plan


def _refusal(graph: Graph, record: NodeRecord) -> str:
    store, outputs = graph.store, record.outputs
    if record.key in DEQUANTIZERS:
        return "the runtime needs it to know that the weight is quantized"
    if not store.outputs.keys().isdisjoint(outputs):
        return "the result is an output"
    if not store.pinned.isdisjoint(outputs):
        return "the node must stay"
    if store.consumers.keys().isdisjoint(outputs):
        return "the result is not used"
    return ""


def _copies_parameter(graph: Graph, plan: FoldPlan) -> bool:
    """Whether a fold writes again a parameter of a torch model that another node reads."""
    parameters = graph.constants.parameter_names
    return any(
        name in parameters and name not in plan.weights
        for record in plan.nodes
        for name in record.reads()
    )


def _leaves_in_pieces(graph: Graph, record: NodeRecord) -> bool:
    """Whether a node takes a piece of a weight that leaves with the last of its readers: they all
    take pieces that are folded, which have no more bytes than the weight."""
    store, table, name = graph.store, graph.constants, record.inputs[0] if record.inputs else ""
    weight = table.initializers.get(name)
    readers = store.consumers.get(name, NO_READERS)
    if record.key not in _PIECES or weight is None or not 1 < len(readers) <= _MOST_PIECES:
        return False
    if name in table.overridable or name in store.outputs or name in store.pinned:
        return False
    left = initializer_bytes(weight)
    for reader in readers:
        is_piece = reader.key in _PIECES and reader.inputs[0] == name
        if not is_piece or reader.outputs[0] not in table.computed or _refusal(graph, reader):
            return False
        facts = graph.facts[reader.outputs[0]]
        size = predicted_bytes(facts.type, facts.shape)
        if size is None or size > left or why_not_rewritten(graph, reader, size):
            return False
        left -= size
    return True


def _note_freed(graph: Graph, plan: FoldPlan) -> None:
    """Adds to a plan the nodes it alone depends on, and the constants only these nodes read."""
    table, store = graph.constants, graph.store
    seen, constants = {plan.record}, dict[str, None]()
    outputs, pinned, readers_of = store.outputs, store.pinned, store.consumers.get

    def is_freed(name: str) -> bool:
        stays = name in outputs or name in pinned
        return not stays and seen.issuperset(readers_of(name, NO_READERS))

    stack = list(plan.record.reads())
    while stack:
        name = stack.pop()
        if not is_freed(name):
            continue
        if name in table.initializers:
            if name not in table.overridable:
                constants[name] = None
            continue
        producer = table.computed.get(name)
        if producer is None or producer in seen:
            continue
        others = [o for o in producer.outputs if o and o != name]
        if not others or all(map(is_freed, others)):  # else another result is still read
            seen.add(producer)
            stack.extend(producer.reads())
            if producer.op_type == "Constant":
                constants[name] = None
    plan.nodes, plan.weights = seen, list(constants)


def _freed_bytes(graph: Graph, names: list[str]) -> int:
    table = graph.constants
    total = 0
    for name in names:
        if name in table.initializers:
            total += initializer_bytes(table.initializers[name])
        else:
            facts = graph.facts[name]
            total += predicted_bytes(facts.type, facts.shape) or 0
    return total


def growth_budget(graph: Graph) -> GrowthBudget:
    """The budget of bytes the folds may add to the model, computed on first use."""
    growth = graph.scope.totals.growth
    if growth.total is None:
        root = graph.root
        weights = sum(map(initializer_bytes, root.constants.initializers.values()))
        constants = [r.outputs[0] for r in root.store.bucket("", "Constant")]
        props = getattr(root.origin, "metadata_props", ())
        written = {p.key: p.value for p in props}.get(METADATA, "")
        growth.start(
            graph.scope.options.constant_size, weights + _freed_bytes(root, constants), written
        )
    return growth
