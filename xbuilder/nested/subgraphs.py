"""Subgraphs of If, Loop, Scan...: one child builder each, sharing names and facts with the outer
graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from ..dims import Dim, Shape, prove_equal, symbols
from ..facts import ResultFacts
from ..inference.refresh import refreshed
from ..nodes.protos import copy_node, local_names, subgraphs_of
from .body_scope import shared_symbols, unproven_symbols
from .splicing import rename_graph

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord


def children_of(builder: GraphBuilder, record: NodeRecord) -> dict[str, GraphBuilder]:
    """Builders of the subgraphs of a node by attribute name; they are made once and kept.

    A subgraph held in a list of graphs is left alone (no operator of ONNX has one).
    """
    if record.children is None:
        record.children = {
            name: _make_child(builder, record, name, graph)
            for name, graph in subgraphs_of(builder.store.proto(record))
            if _is_single(builder.store.proto(record), name)
        }
    return record.children  # type: ignore[return-value]


def _is_single(node: NodeProto, name: str) -> bool:
    return any(a.name == name and a.type == AttributeProto.GRAPH for a in node.attribute)


def _make_child(
    builder: GraphBuilder, record: NodeRecord, name: str, graph: GraphProto
) -> GraphBuilder:
    unique = _without_hidden_names(builder, graph)
    typed = _with_input_types(builder, record, unique)
    # what an iteration changed once is not tried again: nested loops would cost 2^depth
    key = next(filter(None, record.outputs), ""), name
    changed = builder.changed_symbols.get(key, set())
    shared = shared_symbols(builder, record, typed)
    scope = {s: d for s, d in shared.items() if s not in changed}
    child = _import_child(builder, typed, scope)
    while scope:
        lost = unproven_symbols(builder, record, child) & set(scope)
        if not lost:
            break
        builder.changed_symbols[key] = changed = changed | lost
        scope = {s: d for s, d in scope.items() if s not in changed}
        child = _import_child(builder, typed, scope)
    child.was_renamed = unique is not graph
    return child


def _import_child(
    builder: GraphBuilder, graph: GraphProto, scope: Mapping[str, Dim]
) -> GraphBuilder:
    """The builder of a subgraph.

    :param scope: what some symbols the subgraph declares are in the outer graph
    """
    from ..protos.importing import import_any

    child = type(builder)(
        {},
        optimization_options=builder.optimization_options,
        infer_shapes_options=builder.infer_shapes_options,
        verbose=builder.verbose,
        local_domain=builder.local_domain,
        parent=builder,
    )
    child.scope.update(scope)
    import_any(child, graph)
    return child


def _without_hidden_names(builder: GraphBuilder, graph: GraphProto) -> GraphProto:
    """The graph, or a copy where no result hides a result of the outer graph.

    The outer one may be read before it is hidden: one name cannot stand for both in a builder.
    """
    if not any(builder.has_name(name) for name in local_names(graph)):
        return graph
    copy = GraphProto()
    copy.CopyFrom(graph)
    rename_graph(
        copy,
        lambda name: name,
        lambda name: builder.unique_name(name) if builder.has_name(name) else name,
    )
    return copy


def _with_input_types(builder: GraphBuilder, record: NodeRecord, graph: GraphProto) -> GraphProto:
    """Adds the types the owner implies to the inputs of a body that do not declare any."""
    if all(i.type.WhichOneof("value") for i in graph.input) or record.op_type not in _BODY_TYPES:
        return graph
    types = _BODY_TYPES[record.op_type](builder, record, len(graph.input))
    copy = GraphProto()
    copy.CopyFrom(graph)
    for info, elem_type in zip(copy.input, types, strict=False):
        if not info.type.WhichOneof("value") and elem_type:
            info.type.CopyFrom(onnx.helper.make_tensor_type_proto(elem_type, None))
    return copy


def _type_of(builder: GraphBuilder, record: NodeRecord, i: int) -> int:
    if i >= len(record.inputs) or not record.inputs[i]:
        return 0
    return builder.facts[record.inputs[i]].type


def _loop_types(builder: GraphBuilder, record: NodeRecord, n: int) -> list[int]:
    carried = [_type_of(builder, record, i) for i in range(2, n)]
    return [TensorProto.INT64, TensorProto.BOOL, *carried]


def _scan_types(builder: GraphBuilder, record: NodeRecord, n: int) -> list[int]:
    shift = len(record.inputs) - n
    return [_type_of(builder, record, i + max(shift, 0)) for i in range(n)]


_BODY_TYPES = {"Loop": _loop_types, "Scan": _scan_types}


# -- what the outputs of the owner are


def infer_owner(builder: GraphBuilder, record: NodeRecord) -> list[ResultFacts | None] | None:
    """Facts of the outputs of If, Loop or Scan, out of the facts of their bodies."""
    infer = {"If": _infer_if, "Loop": _infer_loop, "Scan": _infer_scan}.get(record.op_type)
    if record.domain or infer is None:
        return None
    return infer(builder, record)


def _outputs(child: GraphBuilder) -> list[ResultFacts]:
    return [child.facts[spec.name] for spec in child.output_specs]


class _Visible:
    """Symbols used by the shapes of a graph and of the graphs around it.

    A subgraph usually gets its symbols from what it reads: these are looked at first, the whole
    graph only if it has to be, O(number of results).
    """

    def __init__(self, builder: GraphBuilder, record: NodeRecord):
        self.builder = builder
        self.near: set[str] = set()
        for name in record.reads():
            self._add(self.near, builder.facts[name])
        self._all: set[str] | None = None

    @staticmethod
    def _add(found: set[str], facts: ResultFacts) -> None:
        for d in facts.shape or ():
            if isinstance(d, str):
                found |= symbols(d)

    def has(self, dim: str) -> bool:
        """Tells if every symbol of an expression means something outside of the subgraph."""
        used = symbols(dim)
        if used <= self.near:
            return True
        if self._all is None:
            self._all = set()
            current: GraphBuilder | None = self.builder
            while current is not None:
                for _, facts in current.facts.items():
                    self._add(self._all, facts)
                current = current.parent
        return used <= self._all


def _export_shape(
    builder: GraphBuilder, shape: Shape | None, visible: _Visible, hint: str
) -> Shape | None:
    if shape is None:
        return None
    return tuple(
        d if isinstance(d, int) or visible.has(d) else builder.new_dimension(hint) for d in shape
    )


def _infer_if(builder: GraphBuilder, record: NodeRecord) -> list[ResultFacts | None] | None:
    children = children_of(builder, record)
    if len(children) != 2:
        return None
    visible = _Visible(builder, record)
    answer: list[ResultFacts | None] = []
    for a, b in zip(*(_outputs(child) for child in children.values()), strict=False):
        answer.append(_merge_branches(builder, a, b, visible))
    return answer


def _merge_branches(
    builder: GraphBuilder, a: ResultFacts, b: ResultFacts, visible: _Visible
) -> ResultFacts:
    elem_type = a.type if a.type == b.type else 0
    if a.sequence is not None and b.sequence is not None:
        return ResultFacts(sequence=_merge_branches(builder, a.sequence, b.sequence, visible))
    if a.optional is not None and b.optional is not None:
        return ResultFacts(optional=_merge_branches(builder, a.optional, b.optional, visible))
    rank_a, rank_b = a.known_rank(), b.known_rank()
    if rank_a is None or rank_a != rank_b:
        return ResultFacts(elem_type)
    if a.shape is None or b.shape is None:
        return ResultFacts(elem_type, None, rank_a)
    dims: list[Dim] = []
    for x, y in zip(a.shape, b.shape, strict=True):
        shared = isinstance(x, int) or visible.has(x)
        same = shared and prove_equal(x, y, builder.facts.constraints) is True
        dims.append(x if same else builder.new_dimension("if"))
    return ResultFacts(elem_type, tuple(dims))


def _infer_loop(builder: GraphBuilder, record: NodeRecord) -> list[ResultFacts | None] | None:
    child = children_of(builder, record).get("body")
    if child is None:
        return None
    visible = _Visible(builder, record)
    n_carried = len(record.inputs) - 2
    answer: list[ResultFacts | None] = []
    for i, facts in enumerate(_outputs(child)[1:]):
        if i < n_carried:
            answer.append(_carried(builder, child, record.inputs[i + 2], i + 2, facts))
        else:
            shape = _export_shape(builder, facts.shape, visible, "loop")
            if shape is None:
                answer.append(ResultFacts(facts.type))
            else:
                answer.append(ResultFacts(facts.type, (builder.new_dimension("trip"), *shape)))
    return answer


def _carried(
    builder: GraphBuilder, child: GraphBuilder, initial: str, position: int, facts: ResultFacts
) -> ResultFacts:
    """A carried result keeps the shape it starts with only if the body returns the shape it
    gets."""
    start = builder.facts[initial]
    if facts.sequence is not None or start.sequence is not None:
        return ResultFacts(sequence=ResultFacts((facts.sequence or start.sequence).type))  # type: ignore[union-attr]
    inside = child.facts[child.input_specs[position].name]
    elem_type = facts.type or start.type
    shapes = start.shape, inside.shape, facts.shape
    if any(s is None for s in shapes) or len({len(s) for s in shapes}) != 1:  # type: ignore[arg-type]
        return ResultFacts(elem_type)
    constraints = builder.facts.constraints
    dims = [
        a
        if prove_equal(a, c, constraints) is True and prove_equal(a, b, constraints) is True
        else builder.new_dimension("loop")
        for a, b, c in zip(*shapes, strict=True)  # type: ignore[arg-type]
    ]
    return ResultFacts(elem_type, tuple(dims))


def _infer_scan(builder: GraphBuilder, record: NodeRecord) -> list[ResultFacts | None] | None:
    child = children_of(builder, record).get("body")
    node = builder.store.proto(record)
    n_scan = builder.get_attribute_value(node, "num_scan_inputs")
    if child is None or n_scan is None or builder.main_opset < 9:
        return None
    n_state = len(record.inputs) - n_scan
    visible = _Visible(builder, record)
    axes = builder.get_attribute_value(node, "scan_output_axes", [])
    length = _scan_length(builder, record, node, n_state)
    answer: list[ResultFacts | None] = []
    for i, facts in enumerate(_outputs(child)):
        if i < n_state:
            answer.append(_carried(builder, child, record.inputs[i], i, facts))
            continue
        shape = _export_shape(builder, facts.shape, visible, "scan")
        if shape is None:
            answer.append(ResultFacts(facts.type))
            continue
        axis = axes[i - n_state] if i - n_state < len(axes) else 0
        axis = axis + len(shape) + 1 if axis < 0 else axis
        answer.append(ResultFacts(facts.type, (*shape[:axis], length, *shape[axis:])))
    return answer


def _scan_length(builder: GraphBuilder, record: NodeRecord, node: NodeProto, n_state: int) -> Dim:
    axes = builder.get_attribute_value(node, "scan_input_axes", [])
    first = record.inputs[n_state] if n_state < len(record.inputs) else ""
    shape = builder.facts[first].shape
    if shape:
        return shape[axes[0] if axes else 0]
    return builder.new_dimension("scan")


# -- optimization at every depth


def optimize_children(builder: GraphBuilder, again: bool = False) -> list[dict]:
    """Optimizes the subgraphs of a graph, writes them back in their owners. Returns statistics.

    :param builder: the graph
    :param again: leaves out what was optimized and reads the same results since
    """
    rows: list[dict] = []
    for record in owners(builder):
        if again and not _is_new(record):
            continue
        children = children_of(builder, record)
        changed = any(child.was_renamed for child in children.values())
        for name, child in children.items():
            before = child.store.generation, set(child.constants.initializers)
            child.was_optimized = True
            for row in child.optimize():
                row["graph"] = f"{record.op_type}.{name}/{row.get('graph', '')}".rstrip("/")
                rows.append(row)
            changed |= before != (child.store.generation, set(child.constants.initializers))
        if changed:
            with refreshed(builder, record):
                builder.learn(write_back(builder, record))
    return rows


def _is_new(record: NodeRecord) -> bool:
    """Tells if the subgraphs of an owner are not those that were optimized.

    Their builders are made again when a result they capture gets another name, or is better known.
    """
    children: Mapping[str, GraphBuilder] | None = record.children  # type: ignore[assignment]
    return children is None or not all(c.was_optimized for c in children.values())


def owners(builder: GraphBuilder) -> list[NodeRecord]:
    """Nodes of a graph which hold subgraphs, in graph order."""
    store = builder.store
    store.compact()
    return [
        record
        for record in store.possible_owners()
        if any(True for _ in subgraphs_of(store.proto(record)))
    ]


def write_back(
    builder: GraphBuilder, record: NodeRecord, before: Sequence[NodeProto] = ()
) -> NodeRecord:
    """Replaces an owner by the same node holding the subgraphs of its child builders.

    :param builder: graph holding the owner
    :param record: the owner
    :param before: nodes to add just before it
    :return: the new record of the owner
    """
    from ..protos.exporting import export_graph

    node = copy_node(builder.store.proto(record))
    children = children_of(builder, record)
    for att in node.attribute:
        if att.type == AttributeProto.GRAPH and att.name in children:
            att.g.CopyFrom(export_graph(children[att.name]))
            children[att.name].was_renamed = False
    *added, new_record = builder.store.replace([record], [*before, node], anchor=record)
    new_record.children = children
    for other in added:
        builder.learn(other)
    return new_record


def shadowing_names(builder: GraphBuilder) -> set[str]:
    """Names of a graph, or of the graphs around it, that a subgraph defines again on its own."""
    outer: set[str] = set()
    current: GraphBuilder | None = builder
    while current is not None:
        outer.update(current.store.producers, current.constants.initializers, current.input_names)
        current = current.parent
    inner: set[str] = set()
    for record in builder.store.nodes:
        for _, graph in subgraphs_of(builder.store.proto(record)):
            inner |= local_names(graph)
    return inner & outer
