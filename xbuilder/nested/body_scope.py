"""The dimensions a body declares: ONNX scopes their names to the value infos of one graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from onnx import GraphProto, TensorShapeProto, TypeProto, ValueInfoProto

from ..dims import Dim, Shape, prove_equal, substitute, symbols

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord


def shape_protos(proto: TypeProto) -> Iterator[TensorShapeProto]:
    """Shapes a type holds: one for a tensor, that of the elements for a sequence."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        if tensor.HasField("shape"):
            yield tensor.shape
    elif kind in ("sequence_type", "optional_type"):
        yield from shape_protos(getattr(proto, kind).elem_type)


def declared_names(infos: Sequence[ValueInfoProto]) -> set[str]:
    """Names or expressions some value infos declare as dimensions."""
    return {
        dim.dim_param
        for info in infos
        for shape in shape_protos(info.type)
        for dim in shape.dim
        if dim.dim_param
    }


def clear_names(infos: Sequence[ValueInfoProto]) -> None:
    """Makes the symbolic dimensions of some value infos unknown.

    :param infos: changed in place
    """
    for info in infos:
        for shape in shape_protos(info.type):
            for dim in shape.dim:
                if dim.HasField("dim_param"):
                    dim.ClearField("dim_param")


def shared_symbols(builder: GraphBuilder, record: NodeRecord, graph: GraphProto) -> dict[str, Dim]:
    """Symbols of a body that may stand for a dimension of the outer graph.

    Every input of the body declaring such a symbol gets, from the owner, a result which has the
    declared dimension. It is proven for the first iteration only: see :func:`unproven_symbols`.

    :param builder: graph holding the owner
    :param record: the owner
    :param graph: the body
    :return: the dimension of the outer graph by symbol of the body

    Example: the body of ``Loop(n, c, x)`` declares ``v[N,4]``: `N` is shared if the shape of ``x``
    is ``(N, 4)``.
    """
    shapes = _given_shapes(builder, record)
    agreed: set[str] = set()
    denied: set[str] = set()
    for i, info in enumerate(graph.input):
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
                name = builder.normalize_dimension(dim.dim_param)
                outer = substitute(name, builder.scope)
                proven = same_rank and prove_equal(outer, given[axis], builder.facts.constraints)
                (agreed if proven else denied).update(symbols(name))
    return {s: builder.scope.get(s, s) for s in agreed - denied}


def _given_shapes(builder: GraphBuilder, record: NodeRecord) -> list[Shape | None]:
    """Shapes of what the owner gives to the inputs of its body, None if unknown."""
    shapes = [builder.facts[name].shape if name else None for name in record.inputs]
    if record.domain == "" and record.op_type == "Loop":
        return [None, None, *shapes[2:]]
    if record.domain != "" or record.op_type != "Scan" or builder.main_opset < 9:
        return []
    node = builder.store.proto(record)
    n_state = _count_states(builder, record)
    axes = builder.get_attribute_value(node, "scan_input_axes", [])
    for i in range(max(n_state, 0), len(shapes)):
        shape = shapes[i]
        axis = axes[i - n_state] if i - n_state < len(axes) else 0
        if shape is None or not -len(shape) <= axis < len(shape):
            shapes[i] = None
            continue
        axis %= len(shape)
        shapes[i] = (*shape[:axis], *shape[axis + 1 :])
    return shapes


def _count_states(builder: GraphBuilder, record: NodeRecord) -> int:
    n_scan = builder.get_attribute_value(builder.store.proto(record), "num_scan_inputs", 0)
    return len(record.inputs) - n_scan


def unproven_symbols(builder: GraphBuilder, record: NodeRecord, child: GraphBuilder) -> set[str]:
    """Shared symbols of a body that an iteration may change.

    If every carried result leaves the body with the dimensions it had, the symbols it declares
    keep their values, by induction on the iterations.

    :param builder: graph holding the owner
    :param record: the owner, Loop or Scan
    :param child: its body, where the shared symbols have their outer names
    :return: symbols, as the body declares them
    """
    if record.op_type == "Loop":
        pairs = list(zip(child.input_specs[2:], child.output_specs[1:], strict=False))
        pairs = pairs[: max(len(record.inputs) - 2, 0)]
    else:
        n_state = max(_count_states(builder, record), 0)
        pairs = list(zip(child.input_specs, child.output_specs, strict=False))[:n_state]
    constraints = child.facts.constraints
    changed: set[str] = set()
    for before, after in pairs:
        first, last = child.facts[before.name].shape, child.facts[after.name].shape
        same_rank = first is not None and last is not None and len(first) == len(last)
        for axis, dim in enumerate(first or ()):
            if isinstance(dim, int):
                continue
            if not same_rank or prove_equal(dim, last[axis], constraints) is not True:  # type: ignore[index]
                changed |= symbols(dim)
    return {s for s, outer in child.scope.items() if symbols(outer) & changed}
