"""Reads and copies `NodeProto`: attributes, tensors, subgraphs, captured names, determinism."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from ..errors import ExternalDataError, InvalidModelError, UnknownAttributeError
from ..operators.op_traits import GRAPH_OWNERS, RANDOM
from ..support.names import NameAllocator
from ..tensors.checks import check_content

Reader = Callable[[onnx.TensorProto], "np.ndarray | None"]

_GRAPH, _GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS
_reference = attrgetter("ref_attr_name")


def main_domain(domain: str) -> str:
    """Normalises the name of a domain: `ai.onnx` is the empty one."""
    return "" if domain == "ai.onnx" else domain


def opsets_of(proto: ModelProto | FunctionProto) -> dict[str, int]:
    """Versions of the domains a model or a function imports."""
    return {main_domain(o.domain): o.version for o in proto.opset_import}


#: type of the elements, and the field holding them when they are not stored as bytes
_PLAIN_TYPES: dict[int, tuple[np.dtype[Any], str]] = {
    onnx.TensorProto.FLOAT: (np.dtype(np.float32), "float_data"),
    onnx.TensorProto.INT64: (np.dtype(np.int64), "int64_data"),
    onnx.TensorProto.INT32: (np.dtype(np.int32), "int32_data"),
    onnx.TensorProto.DOUBLE: (np.dtype(np.float64), "double_data"),
    onnx.TensorProto.FLOAT16: (np.dtype(np.float16), ""),
    onnx.TensorProto.BOOL: (np.dtype(np.bool_), ""),
}
_LITTLE_ENDIAN = sys.byteorder == "little"


def tensor_array(tensor: onnx.TensorProto) -> np.ndarray:
    """Content of a dense tensor stored in the proto.

    The common types are read directly, five times faster than by the function of the onnx package,
    which does the others.

    :raises ExternalDataError: the content is in another file, which has to be read and checked with
        the folder of the model, see :meth:`xbuilder.constants.table.ConstantTable.read_tensor`
    :raises InvalidModelError: the content does not have the size the type and dimensions require
    """
    try:
        return _dense_array(tensor)
    except (ValueError, KeyError, TypeError) as e:
        if isinstance(e, InvalidModelError):
            raise
        check_content(tensor)
        raise InvalidModelError(
            f"The content of tensor {tensor.name!r} (type {tensor.data_type}, dimensions "
            f"{tuple(tensor.dims)}) cannot be read by this version of onnx: {e}."
        ) from e


def _dense_array(tensor: onnx.TensorProto) -> np.ndarray:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ExternalDataError(
            f"The content of tensor {tensor.name!r} is in another file, it cannot be read without "
            "the folder of the model."
        )
    plain = _PLAIN_TYPES.get(tensor.data_type)
    if plain is not None and _LITTLE_ENDIAN:
        dtype, field = plain
        raw = tensor.raw_data
        if raw:
            return np.frombuffer(raw, dtype=dtype).reshape(tuple(tensor.dims))
        values = getattr(tensor, field) if field else ()
        if values:
            return np.array(values, dtype=dtype).reshape(tuple(tensor.dims))
    return onnx.numpy_helper.to_array(tensor)


def attribute_value(att: AttributeProto, read: Reader | None = None) -> Any:
    """Converts an attribute to a python value: int, float, str, list, array, or proto.

    :param att: the attribute
    :param read: reads a tensor stored in another file, returns None if the folder is not known
    :raises UnknownAttributeError: the attribute is such a tensor, and it cannot be read
    """
    kind = att.type
    if kind == AttributeProto.INT:
        return att.i
    if kind == AttributeProto.FLOAT:
        return att.f
    if kind == AttributeProto.STRING:
        try:
            return att.s.decode("utf-8")
        except UnicodeDecodeError:
            return att.s
    if kind == AttributeProto.INTS:
        return list(att.ints)
    if kind == AttributeProto.FLOATS:
        return list(att.floats)
    if kind == AttributeProto.TENSOR:
        return _tensor_value(att, read)
    value = oh.get_attribute_value(att)
    if kind == AttributeProto.STRINGS:
        return [s.decode("utf-8", errors="surrogateescape") for s in value]
    return value


def _tensor_value(att: AttributeProto, read: Reader | None) -> np.ndarray:
    if att.t.data_location != onnx.TensorProto.EXTERNAL:
        return tensor_array(att.t)
    value = None if read is None else read(att.t)
    if value is None:
        raise UnknownAttributeError(f"The content of attribute {att.name!r} is in another file.")
    return value


def attributes_of(node: NodeProto, read: Reader | None = None) -> dict[str, Any]:
    """Converts the attributes of a node to python values, see :func:`attribute_value`.

    :raises UnknownAttributeError: one of them refers to an attribute of a function
    """
    values = {}
    for att in node.attribute[:]:
        if att.ref_attr_name:
            raise UnknownAttributeError(f"{att.name!r} refers to {att.ref_attr_name!r}")
        values[att.name] = attribute_value(att, read)
    return values


def readable(text: str | bytes) -> str:
    """Text of a field, which protobuf returns as bytes when it is not valid UTF-8."""
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")


def copy_node(node: NodeProto) -> NodeProto:
    """Copies a node, because the nodes of a model or of a store are never changed."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def find_attribute(node: NodeProto, name: str) -> AttributeProto | None:
    """The attribute called *name*, None if the node does not have it."""
    att: AttributeProto
    for att in node.attribute[:]:
        if att.name == name:
            return att
    return None


def has_reference(node: NodeProto) -> bool:
    """Whether an attribute of the node refers to an attribute of the function that contains it."""
    return any(map(_reference, node.attribute[:]))


def subgraphs_of(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Iterates on `(attribute name, graph)`."""
    for att in node.attribute[:]:
        if att.type == _GRAPH:
            yield att.name, att.g
        elif att.type == _GRAPHS:
            for g in att.graphs:
                yield att.name, g


def may_own_graph(op_type: str, domain: str) -> bool:
    """Whether the attributes must be read to know whether there is a subgraph."""
    return op_type in GRAPH_OWNERS if domain == "" else True


def function_key(node: NodeProto) -> tuple[str, str]:
    """Key of the function a node may call: domain and name, followed by the overload if any."""
    domain = main_domain(node.domain)
    overload = getattr(node, "overload", "")
    return (domain, f"{node.op_type}:{overload}") if overload else (domain, node.op_type)


def reserve_names(names: NameAllocator, node_names: NameAllocator, graph: GraphProto) -> None:
    """Reserves every name of a graph and of its subgraphs, before any name is generated."""
    reserve_graph_names(names, graph)
    reserve_node_names(names, node_names, graph.node)


def reserve_graph_names(names: NameAllocator, graph: GraphProto) -> None:
    """Reserves the names of the inputs, outputs and initializers of a graph."""
    for rows in (graph.input, graph.initializer, graph.output):
        names.reserve_all(row.name for row in rows)
    names.reserve_all(sparse.values.name for sparse in graph.sparse_initializer)


def reserve_node_names(
    names: NameAllocator, node_names: NameAllocator, nodes: Iterable[NodeProto]
) -> None:
    """Reserves the names of nodes and of their results, those of their subgraphs as well."""
    for node in nodes:
        node_names.reserve(node.name)
        names.reserve_all(node.output)
        names.reserve_all(node.input)
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                reserve_names(names, node_names, sub)


def local_names(graph: GraphProto) -> set[str]:
    """Names defined in a graph or in any of its subgraphs."""
    names = {i.name for i in graph.input}
    names.update(i.name for i in graph.initializer)
    names.update(i.values.name for i in graph.sparse_initializer)
    for node in graph.node:
        names.update(node.output)
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                names |= local_names(sub)
    names.discard("")
    return names


def captured_names(graph: GraphProto) -> dict[str, None]:
    """Names a graph reads from outside, in order of use.

    A name that is read before the graph defines it belongs to the outer graph.
    """
    defined = {i.name for i in graph.input}
    defined.update(i.name for i in graph.initializer)
    defined.update(i.values.name for i in graph.sparse_initializer)
    captured: dict[str, None] = {}
    for node in graph.node:
        used = node.input[:]
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                used.extend(captured_names(sub))
        for name in used:
            if name and name not in defined:
                captured[name] = None
        defined.update(node.output)
    for out in graph.output:
        if out.name not in defined:
            captured[out.name] = None
    return captured


def node_captures(node: NodeProto) -> tuple[str, ...]:
    """Names captured by the subgraphs of a node."""
    names: dict[str, None] = {}
    for _, graph in subgraphs_of(node):
        names.update(captured_names(graph))
    return tuple(names)


def copy_with_edges(
    node: NodeProto, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> NodeProto:
    """Copies a node with other inputs and outputs."""
    new = copy_node(node)
    _set_names(new.input, inputs)
    _set_names(new.output, outputs)
    return new


def _set_names(field: Any, names: Sequence[str]) -> None:
    if len(field) != len(names):
        del field[:]
        field.extend(names)
        return
    for i, name in enumerate(names):
        field[i] = name


def _renaming_free_names(rename: Callable[[str], str], hidden: set[str]) -> Callable[[str], str]:
    """Renames the names a graph does not define."""
    return lambda name: name if name in hidden else rename(name)


def _rename_in_graph(graph: GraphProto, rename: Callable[[str], str]) -> None:
    """Renames the captures of a graph (a private copy), in place."""
    defined = {i.name for i in graph.input}
    defined.update(i.name for i in graph.initializer)
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name and name not in defined:
                new_name = rename(name)
                if new_name != name:
                    node.input[i] = new_name
        if may_own_graph(node.op_type, main_domain(node.domain)):
            hidden = set(defined)
            for _, sub in subgraphs_of(node):
                _rename_in_graph(sub, _renaming_free_names(rename, hidden))
        defined.update(node.output)
    for out in graph.output:
        if out.name not in defined:
            out.name = rename(out.name)


def copy_with_captures(node: NodeProto, mapping: dict[str, str]) -> NodeProto:
    """Copies a node and renames the outer names its subgraphs read."""
    new = copy_node(node)
    for _, graph in subgraphs_of(new):
        _rename_in_graph(graph, lambda n: mapping.get(n, n))
    return new


def with_sorted_subgraphs(node: NodeProto, lost: Collection[str]) -> NodeProto:
    """Copies a node, with the nodes of its subgraphs in topological order.

    :param node: owner of subgraphs
    :param lost: names that a subgraph reads before it defines them, and that no outer graph defines
    """
    copy = copy_node(node)
    for _, graph in subgraphs_of(copy):
        _sort_graph(graph, lost)
    return copy


def _sort_graph(graph: GraphProto, lost: Collection[str]) -> None:
    """Sorts the nodes of a graph (a private copy) at every depth, moving as few as it can."""
    made = {o: i for i, node in enumerate(graph.node) for o in node.output if o}
    waits: list[list[int]] = []
    for i, node in enumerate(graph.node):
        reads = (*node.input, *node_captures(node))
        waits.append([made[n] for n in reads if n in made and (made[n] < i or n in lost)])
    copies: list[NodeProto] = []
    for i in _topological_order(waits):
        copies.append(copy_node(graph.node[i]))
        for _, sub in subgraphs_of(copies[-1]):
            _sort_graph(sub, lost)
    del graph.node[:]
    graph.node.extend(copies)


def _topological_order(waits: list[list[int]]) -> list[int]:
    """Order in which every index follows those it depends on; a cycle is left as it is."""
    order: list[int] = []
    opened: set[int] = set()
    done: set[int] = set()
    for first in range(len(waits)):
        stack = [first]
        while stack:
            i = stack[-1]
            todo = [j for j in waits[i] if j not in opened]
            opened.add(i)
            if todo:
                stack.extend(reversed(todo))
                continue
            stack.pop()
            if i not in done:
                done.add(i)
                order.append(i)
    return order


def is_deterministic(node: NodeProto, op_type: str, domain: str, opset: int = 18) -> bool:
    """Whether a node gives the same results each time it runs on the same inputs.

    Random operators, training Dropout, and operators of unknown domains with a `seed` are not
    deterministic.

    :param node: the node
    :param op_type: its type
    :param domain: its domain
    :param opset: version of the main domain, Dropout was a training operator by default before 7
    """
    if op_type in RANDOM:
        return False
    if op_type == "Dropout":
        if domain == "" and opset < 7:
            is_test = find_attribute(node, "is_test")
            return is_test is not None and is_test.i == 1
        return len(node.input) < 3 or not node.input[2]
    if domain in ("", "ai.onnx.ml"):
        return True
    lowered = op_type.lower()
    if "random" in lowered or "dropout" in lowered:
        return False
    return find_attribute(node, "seed") is None
