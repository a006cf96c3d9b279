"""Infers the outputs of If, Loop and Scan from the facts of their bodies."""

from __future__ import annotations

from onnx import NodeProto

from ..dims import Dim, Shape, normalize_axis, prove_equal, symbols
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..inference.registry import NodeFacts, infers
from ..nodes.record import NodeRecord
from .bodies import children_of


def _outputs(child: Graph) -> list[ResultFacts]:
    return [child.facts[spec.name] for spec in child.output_specs]


class _Visible:
    """Symbols used by the shapes of a graph and of the graphs around it.

    A subgraph usually gets its symbols from the results it reads. These are visited first, and the
    whole graph only if needed, O(number of results).
    """

    def __init__(self, graph: Graph, record: NodeRecord):
        self.graph = graph
        self.near: set[str] = set()
        for name in record.reads():
            self._add(self.near, graph.facts[name])
        self._all: set[str] | None = None

    @staticmethod
    def _add(found: set[str], facts: ResultFacts) -> None:
        for d in facts.shape or ():
            if isinstance(d, str):
                found |= symbols(d)

    def has(self, dim: str) -> bool:
        """Whether every symbol of an expression exists outside of the subgraph."""
        used = symbols(dim)
        if used <= self.near:
            return True
        if self._all is None:
            self._all = set()
            current: Graph | None = self.graph
            while current is not None:
                for _, facts in current.facts.items():
                    self._add(self._all, facts)
                current = current.parent
        return used <= self._all


def _export_shape(graph: Graph, shape: Shape | None, visible: _Visible, hint: str) -> Shape | None:
    if shape is None:
        return None
    return tuple(
        d if isinstance(d, int) or visible.has(d) else graph.dimensions.new(hint) for d in shape
    )


@infers("If")
def infer_if(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Facts of the outputs of If, those both branches agree on."""
    children = children_of(graph, record)
    if len(children) != 2:
        return None
    visible = _Visible(graph, record)
    inferred: list[ResultFacts | None] = []
    for a, b in zip(*(_outputs(child) for child in children.values()), strict=False):
        inferred.append(_merge_branches(graph, a, b, visible))
    return inferred


def _merge_branches(graph: Graph, a: ResultFacts, b: ResultFacts, visible: _Visible) -> ResultFacts:
    elem_type = a.type if a.type == b.type else 0
    if a.sequence is not None and b.sequence is not None:
        return ResultFacts(sequence=_merge_branches(graph, a.sequence, b.sequence, visible))
    if a.optional is not None and b.optional is not None:
        return ResultFacts(optional=_merge_branches(graph, a.optional, b.optional, visible))
    rank_a, rank_b = a.known_rank(), b.known_rank()
    if rank_a is None or rank_a != rank_b:
        return ResultFacts(elem_type)
    if a.shape is None or b.shape is None:
        return ResultFacts(elem_type, None, rank_a)
    dims: list[Dim] = []
    for x, y in zip(a.shape, b.shape, strict=True):
        shared = isinstance(x, int) or visible.has(x)
        same = shared and prove_equal(x, y, graph.facts.constraints) is True
        dims.append(x if same else graph.dimensions.new("if"))
    return ResultFacts(elem_type, tuple(dims))


@infers("Loop")
def infer_loop(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Facts of the outputs of Loop: carried results, then scanned ones."""
    child = children_of(graph, record).get("body")
    if child is None:
        return None
    visible = _Visible(graph, record)
    n_carried = len(record.inputs) - 2
    inferred: list[ResultFacts | None] = []
    for i, facts in enumerate(_outputs(child)[1:]):
        if i < n_carried:
            inferred.append(_carried(graph, child, record.inputs[i + 2], i + 2, facts))
        else:
            shape = _export_shape(graph, facts.shape, visible, "loop")
            if shape is None:
                inferred.append(ResultFacts(facts.type))
            else:
                inferred.append(ResultFacts(facts.type, (graph.dimensions.new("trip"), *shape)))
    return inferred


def _carried(
    graph: Graph, child: Graph, initial: str, position: int, facts: ResultFacts
) -> ResultFacts:
    """Facts of a result an iteration carries to the next one. It keeps its first shape only if the
    body returns the shape it receives."""
    start = graph.facts[initial]
    sequence = facts.sequence or start.sequence
    if sequence is not None:
        return ResultFacts(sequence=ResultFacts(sequence.type))
    inside = child.facts[child.input_specs[position].name]
    elem_type = facts.type or start.type
    shapes = [s for s in (start.shape, inside.shape, facts.shape) if s is not None]
    if len(shapes) != 3 or len({len(s) for s in shapes}) != 1:
        return ResultFacts(elem_type)
    constraints = graph.facts.constraints
    dims = [
        a
        if prove_equal(a, c, constraints) is True and prove_equal(a, b, constraints) is True
        else graph.dimensions.new("loop")
        for a, b, c in zip(*shapes, strict=True)
    ]
    return ResultFacts(elem_type, tuple(dims))


@infers("Scan")
def infer_scan(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Facts of the outputs of Scan: states, then scanned results."""
    child = children_of(graph, record).get("body")
    node = graph.store.proto(record)
    n_scan = graph.get_attribute_value(node, "num_scan_inputs")
    if child is None or n_scan is None or graph.main_opset < 9:
        return None
    if not 0 < n_scan <= len(record.inputs):
        return None  # the attribute is damaged
    n_state = len(record.inputs) - n_scan
    visible = _Visible(graph, record)
    axes = graph.get_attribute_value(node, "scan_output_axes", [])
    length = _scan_length(graph, record, node, n_state)
    inferred: list[ResultFacts | None] = []
    for i, facts in enumerate(_outputs(child)):
        if i < n_state:
            inferred.append(_carried(graph, child, record.inputs[i], i, facts))
            continue
        shape = _export_shape(graph, facts.shape, visible, "scan")
        given = axes[i - n_state] if i - n_state < len(axes) else 0
        axis = None if shape is None else normalize_axis(given, len(shape) + 1)
        if shape is None or axis is None:
            inferred.append(ResultFacts(facts.type))
            continue
        inferred.append(ResultFacts(facts.type, (*shape[:axis], length, *shape[axis:])))
    return inferred


def _scan_length(graph: Graph, record: NodeRecord, node: NodeProto, n_state: int) -> Dim:
    axes = graph.get_attribute_value(node, "scan_input_axes", [])
    first = record.inputs[n_state] if n_state < len(record.inputs) else ""
    shape, axis = graph.facts[first].shape, axes[0] if axes else 0
    if shape and -len(shape) <= axis < len(shape):
        return shape[axis]
    return graph.dimensions.new("scan")
