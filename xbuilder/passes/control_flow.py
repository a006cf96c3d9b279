"""If whose condition is known, Loop running zero or one time, nodes a loop computes each time
again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from ..builder_making import IOSpec
from ..inference.refresh import refreshed
from ..nested.body_scope import clear_names
from ..nested.splicing import splice
from ..nested.subgraphs import children_of, owners
from ..nodes.protos import (
    captured_names,
    find_attribute,
    local_names,
    subgraphs_of,
)
from .loop_invariants import move_invariants
from .registry import Row, register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord

#: what the rows of statistics call the rules
RULES = frozenset({"constant_if", "empty_loop", "loop_invariant", "single_loop"})


@register_pass("control_flow")
def control_flow(builder: GraphBuilder) -> list[Row]:
    """Replaces owners of subgraphs that always do the same thing, and lightens loops.

    1. If with a known condition becomes the branch it takes;
    2. Loop running no iteration becomes its initial values;
    3. Loop running exactly one iteration becomes its body: the trip count is 1, or the body says
       not to go on;
    4. a node of a loop body that only reads results of the outer graph is moved before the loop
       when the loop runs at least once, or when the node cannot fail.

    Cost: O(number of owners + nodes of the bodies).

    :return: one row for each rule that did something
    """
    count: Counter[str] = Counter()
    begin = time.perf_counter()
    names = _SharedNames(builder)
    stack = list(reversed(owners(builder)))
    while stack:
        record = stack.pop()
        rule, added = _replace_owner(builder, record, names)
        if rule:
            count[rule] += 1
            stack.extend(r for r in reversed(added) if r.captured or r.op_type in _RULES)
        elif record.op_type in ("Loop", "Scan") and not record.domain:
            runs = _runs_once(builder, record)
            count["loop_invariant"] += move_invariants(builder, record, names.fresh, runs)
    elapsed = time.perf_counter() - begin
    return [
        {"pattern": rule, "time_in": elapsed, "removed": n, "added": 0, "changed": n}
        for rule, n in sorted(count.items())
        if n
    ]


class _SharedNames:
    """Names that several graphs of a model define: such a name cannot change graph as it is."""

    def __init__(self, builder: GraphBuilder):
        self.builder = builder
        self._counts: Counter[str] | None = None

    def _count(self) -> Counter[str]:
        root = self.builder
        while root.parent is not None:
            root = root.parent
        counts: Counter[str] = Counter(root.input_names)
        counts.update(list(root.constants.initializers))
        stack = [root.nodes]
        while stack:
            for node in stack.pop():
                counts.update(o for o in node.output if o)
                for _, graph in subgraphs_of(node):
                    counts.update({i.name for i in (*graph.input, *graph.initializer)})
                    stack.append(graph.node)  # type: ignore[arg-type]
        return counts

    def release(self, att: AttributeProto | None) -> None:
        """Forgets the names of a graph that goes away."""
        if self._counts is None:
            self._counts = self._count()
        self._counts.subtract(local_names(att.g) if att is not None else ())

    def fresh(self, name: str) -> str:
        """The name if one graph only defines it, else a free one."""
        if self._counts is None:
            self._counts = self._count()
        if self._counts[name] > 1 or self.builder.has_name(name):
            return self.builder.unique_name(name)
        return name


Rule = Callable[["GraphBuilder", "NodeRecord", _SharedNames], "tuple[str, list[NodeRecord]]"]
_NOTHING: tuple[str, list[NodeRecord]] = ("", [])


def _replace_owner(
    builder: GraphBuilder, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    rule = _RULES.get(record.op_type) if not record.domain else None
    if rule is None or not builder.optimization_options.may_fold(record.op_type):
        return _NOTHING
    if any(o in builder.kept_nodes for o in record.outputs):
        return _NOTHING
    with refreshed(builder, record):
        return rule(builder, record, names)


def _scalar(builder: GraphBuilder, name: str) -> int | None:
    """Content of a constant holding one integer or boolean."""
    if not name or not builder.constants.is_constant(name):
        return None
    value = builder.constants.value(name)
    return None if value is None or value.size != 1 else int(value.ravel()[0])


def _graph_of(builder: GraphBuilder, record: NodeRecord, name: str) -> GraphProto | None:
    """A subgraph that can be moved: a name it reads outside is not one it also defines."""
    att = find_attribute(builder.store.proto(record), name)
    if att is None or len(att.g.sparse_initializer):
        return None
    defined = {o for node in att.g.node for o in node.output}
    return None if defined & set(captured_names(att.g)) else att.g


def _splice_graph(
    builder: GraphBuilder,
    record: NodeRecord,
    graph: GraphProto,
    mapping: dict[str, str],
    results: list[tuple[str, str]],
    names: _SharedNames,
    extra: Sequence[NodeProto] = (),
) -> list[NodeRecord]:
    """Puts a graph in place of the node holding it."""
    for init in graph.initializer:
        if init.name not in mapping:
            mapping[init.name] = names.fresh(init.name)
            builder.names.reserve(mapping[init.name])
            builder.constants.add_initializer(mapping[init.name], init)
    added = splice(builder, record, graph.node, mapping, results, names.fresh, extra)
    for info in graph.value_info:
        if mapping.get(info.name) == info.name:
            _declare(builder, info)
    return added


def _declare(builder: GraphBuilder, info: ValueInfoProto) -> None:
    """Keeps what a body declares about a result which leaves it, but the names of dimensions."""
    copy = ValueInfoProto()
    copy.CopyFrom(info)
    if builder.facts[info.name].shape is not None:
        copy.ClearField("type")  # written from the facts
    else:
        clear_names([copy])
    builder.declared.setdefault(info.name, copy)


def _inline_if(
    builder: GraphBuilder, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    condition = _scalar(builder, record.inputs[0])
    if condition is None:
        return _NOTHING
    taken, left = ("then_branch", "else_branch") if condition else ("else_branch", "then_branch")
    graph = _graph_of(builder, record, taken)
    if graph is None or not _identity_allowed(builder, record):
        return _NOTHING
    names.release(find_attribute(builder.store.proto(record), left))
    results = [(o.name, name) for o, name in zip(graph.output, record.outputs, strict=False)]
    return "constant_if", _splice_graph(builder, record, graph, {}, results, names)


def _identity_allowed(builder: GraphBuilder, record: NodeRecord) -> bool:
    """Identity takes sequences from opset 14, optionals from opset 16."""
    facts = [builder.facts[o] for o in record.outputs]
    if builder.main_opset >= 16:
        return True
    if builder.main_opset >= 14:
        return all(f.optional is None for f in facts)
    return all(f.type for f in facts)


def _simplify_loop(
    builder: GraphBuilder, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    if len(record.inputs) < 2 or not _identity_allowed(builder, record):
        return _NOTHING
    trip, condition = (_scalar(builder, name) for name in record.inputs[:2])
    graph = _graph_of(builder, record, "body")
    if graph is None or len(graph.input) != len(record.inputs):
        return _NOTHING
    if (trip is not None and trip <= 0) or condition == 0:
        return _empty_loop(builder, record, names)
    if _runs_once(builder, record) and (trip == 1 or _stops(builder, record)):
        return _single_loop(builder, record, graph, names)
    return _NOTHING


def _runs_once(builder: GraphBuilder, record: NodeRecord) -> bool:
    """Tells if Loop or Scan runs one iteration at least."""
    if record.op_type == "Scan":
        return _scan_is_not_empty(builder, record)
    trip, condition = (*record.inputs, "", "")[:2]
    count = _scalar(builder, trip)
    goes = not trip or (count is not None and count >= 1)
    return goes and (not condition or _scalar(builder, condition) == 1)


def _scan_is_not_empty(builder: GraphBuilder, record: NodeRecord) -> bool:
    node = builder.store.proto(record)
    n_scan = builder.get_attribute_value(node, "num_scan_inputs", 0)
    axes = builder.get_attribute_value(node, "scan_input_axes", [0] * n_scan)
    if builder.main_opset < 9 or not 0 < n_scan <= len(record.inputs) or not axes:
        return False
    shape = builder.facts[record.inputs[len(record.inputs) - n_scan]].shape
    if shape is None or not -len(shape) <= axes[0] < len(shape):
        return False
    length = shape[axes[0]]
    return isinstance(length, int) and length > 0


def _stops(builder: GraphBuilder, record: NodeRecord) -> bool:
    """Tells if the body of a loop always says to stop."""
    body = children_of(builder, record)["body"]
    return bool(body.output_specs) and _scalar(body, body.output_specs[0].name) == 0


def _empty_loop(
    builder: GraphBuilder, record: NodeRecord, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    """The carried results keep their initial values, the scanned ones are empty."""
    carried = len(record.inputs) - 2
    body = children_of(builder, record)["body"]
    empty: list[tuple[str, np.ndarray]] = []
    for spec, name in zip(body.output_specs[1 + carried :], record.outputs[carried:], strict=False):
        if not name or not builder.store.is_used(name):
            continue
        shape = _declared_shape(body, spec)
        elem_type = body.facts[spec.name].type
        if shape is None or elem_type in (0, TensorProto.STRING):
            return _NOTHING
        dtype = oh.tensor_dtype_to_np_dtype(elem_type)
        empty.append((name, np.zeros((0, *shape), dtype=dtype)))
    results = list(zip(record.inputs[2:], record.outputs[:carried], strict=False))
    for name, value in empty:
        source = builder.make_initializer("", value, source="an empty loop", allow_empty=True)
        results.append((source, name))
    return "empty_loop", splice(builder, record, [], {}, results, names.fresh)


def _declared_shape(body: GraphBuilder, spec: IOSpec) -> tuple[int, ...] | None:
    """Shape of an output of a body when it is known and agrees with what the body declares.

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
    builder: GraphBuilder, record: NodeRecord, graph: GraphProto, names: _SharedNames
) -> tuple[str, list[NodeRecord]]:
    """One iteration: the body itself, what it scans gets a first axis."""
    if any(len(i.type.tensor_type.shape.dim) for i in graph.input[:2]):
        return _NOTHING
    carried = len(record.inputs) - 2
    mapping = dict(zip((i.name for i in graph.input[2:]), record.inputs[2:], strict=True))
    first = np.array(0, dtype=np.int64), np.array(True, dtype=np.bool_)
    for info, value in zip(graph.input, first, strict=False):
        mapping[info.name] = builder.make_initializer("", value, source="a loop running once")
    outer = [o.name for o in graph.output[1:]]
    results = list(zip(outer[:carried], record.outputs, strict=False))
    extra: list[NodeProto] = []
    for inner, name in zip(outer[carried:], record.outputs[carried:], strict=False):
        if name:
            results.append((inner, builder.unique_name(inner)))
            extra.append(_unsqueeze(builder, results[-1][1], name))
    added = _splice_graph(builder, record, graph, mapping, results, names, extra)
    return "single_loop", added


def _unsqueeze(builder: GraphBuilder, source: str, result: str) -> NodeProto:
    if builder.main_opset < 13:
        return oh.make_node("Unsqueeze", [source], [result], axes=[0])
    axes = builder.make_initializer("", np.array([0], dtype=np.int64), source="a loop running once")
    return oh.make_node("Unsqueeze", [source, axes], [result])


_RULES: dict[str, Rule] = {"If": _inline_if, "Loop": _simplify_loop}
