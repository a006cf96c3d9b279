"""The dimensions a body declares: ONNX scopes their names to the value infos of one graph."""

from __future__ import annotations

from onnx import GraphProto

from ..dims import Dim, Shape, prove_equal, substitute, symbols
from ..graph import Graph
from ..nodes.record import NodeRecord
from ..nodes.value_infos import declared_names, shape_protos


def shared_symbols(graph: Graph, record: NodeRecord, body: GraphProto) -> dict[str, Dim]:
    """Symbols of a body that may stand for a dimension of the outer graph.

    Every input of the body declaring such a symbol gets, from the owner, a result which has the
    declared dimension. It is proven for the first iteration only: see :func:`unproven_symbols`.

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
                name = graph.dimensions.normalize(dim.dim_param)
                outer = substitute(name, meanings)
                proven = same_rank and prove_equal(outer, given[axis], graph.facts.constraints)
                (agreed if proven else denied).update(symbols(name))
    return {s: meanings.get(s, s) for s in agreed - denied}


def _given_shapes(graph: Graph, record: NodeRecord) -> list[Shape | None]:
    """Shapes of what the owner gives to the inputs of its body, None if unknown."""
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
    if record.op_type == "Loop":
        pairs = list(zip(body.input_specs[2:], body.output_specs[1:], strict=False))
        pairs = pairs[: max(len(record.inputs) - 2, 0)]
    else:
        n_state = max(_count_states(graph, record), 0)
        pairs = list(zip(body.input_specs, body.output_specs, strict=False))[:n_state]
    constraints = body.facts.constraints
    changed: set[str] = set()
    for before, after in pairs:
        first, last = body.facts[before.name].shape, body.facts[after.name].shape
        known = last if first and last and len(first) == len(last) else None
        for axis, dim in enumerate(first or ()):
            if isinstance(dim, int):
                continue
            if known is None or prove_equal(dim, known[axis], constraints) is not True:
                changed |= symbols(dim)
    return {s for s, outer in body.dimensions.meanings.items() if symbols(outer) & changed}
