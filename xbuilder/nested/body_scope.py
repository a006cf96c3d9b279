"""Proves which symbols and sizes a body declares hold outside of it, and for all iterations."""

from __future__ import annotations

from collections.abc import Iterator, Set

from onnx import GraphProto

from ..dims import Dim, Shape, prove_equal, substitute, symbols
from ..dims.scope import opaque
from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from ..nodes.value_infos import declared_names, shape_protos

#: an input of a body and one of its axes, None for its rank
Place = tuple[int, int | None]


def shared_symbols(graph: Graph, record: NodeRecord, body: GraphProto) -> dict[str, Dim]:
    """Symbols of a body that may stand for a dimension of the outer graph.

    ONNX scopes symbols to the graph that declares them. A symbol may be shared if every input of
    the body that declares it receives, from the owner, a result with that dimension. It is proven
    for the first iteration only, see :func:`unproven_symbols`.

    :param graph: graph holding the owner
    :param record: the owner
    :param body: the body
    :return: the dimension of the outer graph by symbol of the body

    Example: the body of ``Loop(n, c, x)`` declares ``v[N,4]``: `N` is shared if the shape of ``x``
    is ``(N, 4)``.
    """
    meanings = graph.dimensions.meanings
    shapes = _given_shapes(graph, record)
    agreed: set[str] = set()
    denied: set[str] = set()
    for i, info in enumerate(body.input):
        if not declared_names([info]):
            continue
        given = shapes[i] if i < len(shapes) else None
        if given is None or not info.type.HasField("tensor_type"):
            given = ()
        for proto in shape_protos(info.type):
            same_rank = len(given) == len(proto.dim)
            for axis, dim in enumerate(proto.dim):
                if not dim.dim_param:
                    continue
                name = graph.dimensions.normalize(opaque(dim.dim_param))
                outer = substitute(name, meanings)
                proven = same_rank and prove_equal(outer, given[axis], graph.facts.constraints)
                (agreed if proven else denied).update(symbols(name))
    return {s: meanings.get(s, s) for s in agreed - denied}


def _given_shapes(graph: Graph, record: NodeRecord) -> list[Shape | None]:
    """Shapes of the results the owner passes to the inputs of its body, None if unknown."""
    shapes = [graph.facts[name].shape if name else None for name in record.inputs]
    if record.domain == "" and record.op_type == "Loop":
        return [None, None, *shapes[2:]]
    if record.domain != "" or record.op_type != "Scan" or graph.main_opset < 9:
        return []
    node = graph.store.proto(record)
    n_state = _count_states(graph, record)
    axes = graph.get_attribute_value(node, "scan_input_axes", [])
    for i in range(max(n_state, 0), len(shapes)):
        shape = shapes[i]
        axis = axes[i - n_state] if i - n_state < len(axes) else 0
        if shape is None or not -len(shape) <= axis < len(shape):
            shapes[i] = None
            continue
        axis %= len(shape)
        shapes[i] = (*shape[:axis], *shape[axis + 1 :])
    return shapes


def _count_states(graph: Graph, record: NodeRecord) -> int:
    n_scan: int = graph.get_attribute_value(graph.store.proto(record), "num_scan_inputs", 0)
    return len(record.inputs) - n_scan


def unproven_symbols(graph: Graph, record: NodeRecord, body: Graph) -> set[str]:
    """Shared symbols of a body that an iteration may change.

    If every carried result leaves the body with the dimensions it had, the symbols it declares
    keep their values, by induction on the iterations.

    :param graph: graph holding the owner
    :param record: the owner, Loop or Scan
    :param body: its body, where the shared symbols have their outer names
    :return: symbols, as the body declares them
    """
    constraints = body.facts.constraints
    changed: set[str] = set()
    for _, before, after in _carried(graph, record, body):
        first, last = body.facts[before].shape, body.facts[after].shape
        known = last if first and last and len(first) == len(last) else None
        for axis, dim in enumerate(first or ()):
            if isinstance(dim, int):
                continue
            if known is None or prove_equal(dim, known[axis], constraints) is not True:
                changed |= symbols(dim)
    return {s for s, outer in body.dimensions.meanings.items() if symbols(outer) & changed}


def _carried(graph: Graph, record: NodeRecord, body: Graph) -> Iterator[tuple[int, str, str]]:
    """Yields the results an iteration carries to the next one: position of the input, input,
    output."""
    if record.op_type == "Loop":
        start, shift, count = 2, 1, len(record.inputs) - 2
    else:
        start, shift, count = 0, 0, _count_states(graph, record)
    inputs, outputs = body.input_names, body.output_names
    for i in range(min(max(count, 0), len(inputs) - start, len(outputs) - shift)):
        yield start + i, inputs[start + i], outputs[shift + i]


def unproven_sizes(graph: Graph, record: NodeRecord, body: GraphProto) -> set[Place]:
    """Sizes a body declares for its inputs that the results its owner passes may not have.

    The first two inputs of a Loop have the shapes the body declares.

    :param graph: graph holding the owner
    :param record: the owner
    :param body: the body
    """
    shapes = _given_shapes(graph, record)
    first = 2 if record.key == ("", "Loop") else 0
    lost: set[Place] = set()
    for i, info in enumerate(body.input):
        if i < first or not info.type.tensor_type.HasField("shape"):
            continue
        declared = info.type.tensor_type.shape.dim
        given = shapes[i] if i < len(shapes) else None
        if given is None or len(given) != len(declared):
            lost.add((i, None))
            continue
        for axis, dim in enumerate(declared):
            if dim.HasField("dim_value") and dim.dim_value != given[axis]:
                lost.add((i, axis))
    return lost


def changed_sizes(graph: Graph, record: NodeRecord, body: Graph) -> set[Place]:
    """Sizes of the inputs of a body that an iteration may change.

    :param graph: graph holding the owner
    :param record: the owner, Loop or Scan
    :param body: its body
    """
    lost: set[Place] = set()
    for i, before, after in _carried(graph, record, body):
        first, last = body.facts[before].shape, body.facts[after].shape
        if first is None:
            continue
        if last is None or len(first) != len(last):
            lost.add((i, None))
            continue
        pairs = enumerate(zip(first, last, strict=True))
        lost.update((i, axis) for axis, (x, y) in pairs if isinstance(x, int) and x != y)
    return lost


def without_sizes(body: GraphProto, places: Set[Place]) -> GraphProto:
    """The body, or a copy where some sizes of its inputs are unknown."""
    if not places:
        return body
    copy = GraphProto()
    copy.CopyFrom(body)
    for i, axis in places:
        tensor = copy.input[i].type.tensor_type
        if axis is None:
            tensor.ClearField("shape")
        elif (i, None) not in places:
            tensor.shape.dim[axis].Clear()
    return copy
