"""Simplifies control flow: If with a known condition, Loop of zero or one iteration, hoisting of
loop-invariant nodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from ..graph.graph import Graph
from ..inference.refresh import refreshed
from ..nested.bodies import children_of, owners
from ..nested.splicing import splice
from ..nodes.attributes import find_attribute
from ..nodes.record import NodeRecord
from ..nodes.subgraphs import captured_names, local_names, may_own_graph, subgraphs_of
from ..nodes.value_infos import IOSpec, clear_names
from ..operators.domains import main_domain
from ..support.rows import Row
from .loop_invariants import move_invariants
from .registry import PassReport, register_pass
from .required_conditions import DecidedConditions


@register_pass("control_flow")
def control_flow(graph: Graph) -> PassReport:
    """Replaces the owners of subgraphs that always do the same, and hoists loop-invariant nodes.

    1. If becomes the branch it takes when its condition is known, or when the other one gives
       ranks that make the run fail (:class:`~.required_conditions.DecidedConditions`);
    2. Loop running no iteration becomes its initial values;
    3. Loop running exactly one iteration becomes its body: the trip count is 1, or the body never
       continues;
    4. a loop-invariant node of a body, which only reads results of the outer graph, is hoisted
       when the loop runs at least once, or when the node is speculatable.

    Cost: O(number of owners + nodes of the bodies).

    :return: one row, and one for each rule that was applied
    """
    count: Counter[str] = Counter()
    begin = time.perf_counter()
    names = _SharedNames(graph)
    stack = list(reversed(owners(graph)))
    while stack:
        record = stack.pop()
        rule, added = _replace_owner(graph, record, names)
        if rule:
            count[rule] += 1
            stack.extend(r for r in reversed(added) if r.captured or r.op_type in _RULES)
        elif record.op_type in ("Loop", "Scan") and not record.domain:
            runs = _runs_once(graph, record)
            count["loop_invariant"] += move_invariants(graph, record, names.fresh, runs)
    total = count.total()
    rows: list[Row] = [
        {
            "pattern": "control_flow",
            "time_in": time.perf_counter() - begin,
            "removed": total,
            "added": 0,
            "changed": total,
        }
    ]
    rows.extend(
        {"pattern": f"control_flow: {rule}", "time_in": 0.0, "instances": n}
        for rule, n in sorted(count.items())
        if n
    )
    return PassReport(total > 0, rows, has_new_nodes=total > 0)


class _SharedNames:
    """Counts the graphs of a model that define each name. A name several define cannot move to
    another graph without being renamed."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._counts: Counter[str] | None = None
        self.decided = DecidedConditions(graph, owners(graph))

    def _count(self) -> Counter[str]:
        root = self.graph.root
        store = root.store
        counts: Counter[str] = Counter(root.input_names)
        counts.update(root.constants.initializers.keys())
        counts.update(chain.from_iterable(record.outputs for record in store.nodes))
        stack: list[NodeProto] = [store.proto(record) for record in store.possible_owners()]
        while stack:
            for _, body in subgraphs_of(stack.pop()):
                counts.update({i.name for i in (*body.input, *body.initializer)})
                for node in body.node:
                    counts.update(node.output)
                    if may_own_graph(node.op_type, main_domain(node.domain)):
                        stack.append(node)
        del counts[""]
        return counts

    def release(self, att: AttributeProto | None) -> None:
        """Forgets the names of a graph that is removed."""
        if self._counts is None:
            self._counts = self._count()
        self._counts.subtract(local_names(att.g) if att is not None else ())

    def fresh(self, name: str) -> str:
        """The name if only one graph defines it, else a free one."""
        if self._counts is None:
            self._counts = self._count()
        if self._counts[name] > 1 or self.graph.has_name(name):
            return self.graph.unique_name(name)
        return name


Rule = Callable[[Graph, NodeRecord, _SharedNames], tuple[str, list[NodeRecord]]]
_NOTHING: tuple[str, list[NodeRecord]] = ("", [])


def _replace_owner(
    graph: Graph, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    rule = _RULES.get(record.op_type) if not record.domain else None
    if rule is None or not graph.scope.options.may_fold(record.op_type):
        return _NOTHING
    if any(o in graph.store.pinned for o in record.outputs):
        return _NOTHING
    with refreshed(graph, record):
        return rule(graph, record, names)


def _scalar(graph: Graph, name: str) -> int | None:
    """Content of a constant of one integer or boolean."""
    if not name or not graph.constants.is_constant(name):
        return None
    value = graph.constants.value(name)
    return None if value is None or value.size != 1 else int(value.ravel()[0])


def _graph_of(graph: Graph, record: NodeRecord, name: str) -> GraphProto | None:
    """A subgraph, None if it cannot be moved, because it defines a name it also reads outside."""
    att = find_attribute(graph.store.proto(record), name)
    if att is None or len(att.g.sparse_initializer):
        return None
    defined = {o for node in att.g.node for o in node.output}
    return None if defined & set(captured_names(att.g)) else att.g


def _splice_graph(
    graph: Graph,
    record: NodeRecord,
    body: GraphProto,
    mapping: dict[str, str],
    results: list[tuple[str, str]],
    names: _SharedNames,
    extra: Sequence[NodeProto] = (),
) -> list[NodeRecord]:
    """Replaces a node by one of its subgraphs."""
    for init in body.initializer:
        if init.name not in mapping:
            mapping[init.name] = names.fresh(init.name)
            graph.names.reserve(mapping[init.name])
            graph.constants.add_initializer(mapping[init.name], init)
    added = splice(graph, record, body.node, mapping, results, names.fresh, extra)
    for info in body.value_info:
        if mapping.get(info.name) == info.name:
            _declare(graph, info)
    return added


def _declare(graph: Graph, info: ValueInfoProto) -> None:
    """Keeps the declaration by a body of a result that leaves it, without names of dimensions."""
    copy = ValueInfoProto()
    copy.CopyFrom(info)
    if graph.facts[info.name].shape is not None:
        copy.ClearField("type")  # the facts give it
    else:
        clear_names([copy])
    graph.declared.setdefault(info.name, copy)


def _inline_if(
    graph: Graph, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    condition = _scalar(graph, record.inputs[0])
    rule = "constant_if"
    if condition is None:
        condition, rule = names.decided.condition(record), "required_if"
    if condition is None:
        return _NOTHING
    taken, left = ("then_branch", "else_branch") if condition else ("else_branch", "then_branch")
    body = _graph_of(graph, record, taken)
    if body is None or not _identity_allowed(graph, record):
        return _NOTHING
    names.release(find_attribute(graph.store.proto(record), left))
    results = [(o.name, name) for o, name in zip(body.output, record.outputs, strict=False)]
    return rule, _splice_graph(graph, record, body, {}, results, names)


def _identity_allowed(graph: Graph, record: NodeRecord) -> bool:
    """Identity takes sequences from opset 14, optionals from opset 16."""
    facts = [graph.facts[o] for o in record.outputs]
    if graph.main_opset >= 16:
        return True
    if graph.main_opset >= 14:
        return all(f.optional is None for f in facts)
    return all(f.type for f in facts)


def _simplify_loop(
    graph: Graph, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    if len(record.inputs) < 2 or not _identity_allowed(graph, record):
        return _NOTHING
    trip, condition = (_scalar(graph, name) for name in record.inputs[:2])
    body = _graph_of(graph, record, "body")
    if body is None or len(body.input) != len(record.inputs):
        return _NOTHING
    if (trip is not None and trip <= 0) or condition == 0:
        return _empty_loop(graph, record, names)
    if _runs_once(graph, record) and (trip == 1 or _stops(graph, record)):
        return _single_loop(graph, record, body, names)
    return _NOTHING


def _runs_once(graph: Graph, record: NodeRecord) -> bool:
    """Whether Loop or Scan runs at least one iteration."""
    if record.op_type == "Scan":
        return _scan_is_not_empty(graph, record)
    trip, condition = (*record.inputs, "", "")[:2]
    count = _scalar(graph, trip)
    goes = not trip or (count is not None and count >= 1)
    return goes and (not condition or _scalar(graph, condition) == 1)


def _scan_is_not_empty(graph: Graph, record: NodeRecord) -> bool:
    node = graph.store.proto(record)
    n_scan = graph.get_attribute_value(node, "num_scan_inputs", 0)
    axes = graph.get_attribute_value(node, "scan_input_axes", [0])
    if graph.main_opset < 9 or not 0 < n_scan <= len(record.inputs) or not axes:
        return False
    shape = graph.facts[record.inputs[len(record.inputs) - n_scan]].shape
    if shape is None or not -len(shape) <= axes[0] < len(shape):
        return False
    length = shape[axes[0]]
    return isinstance(length, int) and length > 0


def _stops(graph: Graph, record: NodeRecord) -> bool:
    """Whether the body of a loop always stops it."""
    body = children_of(graph, record)["body"]
    return bool(body.output_specs) and _scalar(body, body.output_specs[0].name) == 0


def _empty_loop(
    graph: Graph, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    """Replaces a Loop that never runs. Carried results keep their initial values, scanned ones are
    empty."""
    carried = len(record.inputs) - 2
    body = children_of(graph, record)["body"]
    empty: list[tuple[str, np.ndarray]] = []
    for spec, name in zip(body.output_specs[1 + carried :], record.outputs[carried:], strict=False):
        if not name or not graph.store.is_used(name):
            continue
        shape = _declared_shape(body, spec)
        elem_type = body.facts[spec.name].type
        if shape is None or elem_type in (0, TensorProto.STRING):
            return _NOTHING
        dtype = oh.tensor_dtype_to_np_dtype(elem_type)
        empty.append((name, np.zeros((0, *shape), dtype=dtype)))
    results = list(zip(record.inputs[2:], record.outputs[:carried], strict=False))
    for name, value in empty:
        source = graph.make_initializer("", value, source="an empty loop", allow_empty=True)
        results.append((source, name))
    return "empty_loop", splice(graph, record, [], {}, results, names.fresh)


def _declared_shape(body: Graph, spec: IOSpec) -> tuple[int, ...] | None:
    """Shape of an output of a body when it is known and agrees with its declaration.

    Runtimes read the declaration to make the empty result of a loop that does not run.
    """
    tensor = (spec.proto or ValueInfoProto()).type.tensor_type
    shape = body.facts[spec.name].shape
    if not tensor.HasField("shape") or shape is None or len(shape) != len(tensor.shape.dim):
        return None
    dims: list[int] = []
    for declared, known in zip(tensor.shape.dim, shape, strict=True):
        dim = declared.dim_value if declared.HasField("dim_value") else known
        if not isinstance(dim, int) or (isinstance(known, int) and known != dim):
            return None
        dims.append(dim)
    return tuple(dims)


def _single_loop(
    graph: Graph, record: NodeRecord, body: GraphProto, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    """Replaces a Loop of one iteration by its body. Scanned results get a first axis."""
    if any(len(i.type.tensor_type.shape.dim) for i in body.input[:2]):
        return _NOTHING
    carried = len(record.inputs) - 2
    mapping = dict(zip((i.name for i in body.input[2:]), record.inputs[2:], strict=True))
    first = np.array(0, dtype=np.int64), np.array(True, dtype=np.bool_)
    for info, value in zip(body.input, first, strict=False):
        mapping[info.name] = graph.make_initializer("", value, source="a loop running once")
    outer = [o.name for o in body.output[1:]]
    results = list(zip(outer[:carried], record.outputs, strict=False))
    extra: list[NodeProto] = []
    for inner, name in zip(outer[carried:], record.outputs[carried:], strict=False):
        if name:
            results.append((inner, graph.unique_name(inner)))
            extra.append(_unsqueeze(graph, results[-1][1], name))
    added = _splice_graph(graph, record, body, mapping, results, names, extra)
    return "single_loop", added


def _unsqueeze(graph: Graph, source: str, result: str) -> NodeProto:
    if graph.main_opset < 13:
        return oh.make_node("Unsqueeze", [source], [result], axes=[0])
    axes = graph.make_initializer("", np.array([0], dtype=np.int64), source="a loop running once")
    return oh.make_node("Unsqueeze", [source, axes], [result])


_RULES: dict[str, Rule] = {"If": _inline_if, "Loop": _simplify_loop}
