"""Merges equal initializers, and Shape nodes that compute the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..constants.initializers import initializer_type_shape, is_external_proto
from ..files.blocks.block_tensors import BlockTensor
from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from ..tensors.sizes import initializer_bytes
from .equal_nodes import merge_equal_nodes
from .registry import register_count

#: bytes compared before a whole tensor is hashed
_SAMPLE = 256
#: the sample of a tensor of so many bytes is kept until it changes
_COPIED = 1 << 14
#: a parameter of a torch model of fewer bytes keeps its name even if another one is equal
_NAMED = 1024
#: bytes of parameters a run may hash
_HASHED = 1 << 30


@register_count("remove_duplicated_initializer")
def remove_duplicated_initializer(graph: Graph) -> int:
    """Keeps one of equal initializers.

    Only initializers of one type and shape are compared, a sample first, then a hash of
    everything; those of another file are equal when they come from the same place. Outputs,
    overridable initializers and those of annotations are not merged. Of two parameters of a torch
    model in the same memory, or equal ones of a kilobyte at least, the first one is kept; smaller
    ones keep their names, which are those of the model. Constant nodes that then read the same
    initializers are merged as well, such as those that dequantize a weight, which are not folded.

    :return: number of initializers and nodes removed
    """
    if not graph.scope.options.constant_fusing or not graph.constants.initializers:
        return 0
    groups: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    table = graph.constants
    for name, value in table.initializers.items():
        if table.is_kept(name) or name in graph.store.outputs:
            continue
        groups.setdefault(initializer_type_shape(value), []).append(name)
    kept: list[str] = []
    for names in groups.values():
        if len(names) > 1:
            kept.extend(_merge(graph, names))
    readers = {record for name in set(kept) for record in graph.store.readers(name)}
    constant = [r for r in readers if not r.captured and _is_constant(graph, r)]
    return len(kept) + merge_equal_nodes(graph, sorted(constant, key=lambda r: r.order))


def _is_constant(graph: Graph, record: NodeRecord) -> bool:
    return all(graph.constants.is_constant(name) for name in record.inputs if name)


def _merge(graph: Graph, names: list[str]) -> list[str]:
    """Merges the equal ones among some initializers.

    :return: for each removed initializer, the one that is kept
    """
    kept: list[str] = []
    samples: dict[Any, list[str]] = {}
    for name in names:
        samples.setdefault(_sample(graph, name), []).append(name)
    budget = _HASHED
    for candidates in samples.values():
        if len(candidates) == 1:
            continue
        pairs, budget = _equal_pairs(graph, candidates, budget)
        for name, first in pairs:
            if graph.store.can_redirect(name, first):
                graph.store.redirect(name, first)
                graph.constants.remove_initializer(name)
                kept.append(first)
    return kept


def _equal_pairs(graph: Graph, names: list[str], budget: int) -> tuple[list[tuple[str, str]], int]:
    """Initializers to remove, each with the equal one that is kept, and the rest of a budget.

    :param graph: the graph
    :param names: initializers of one type, one shape and one sample
    :param budget: bytes of parameters that may be hashed
    """
    table, pairs = graph.constants, list[tuple[str, str]]()
    parameters = table.parameter_names
    first_at: dict[Any, str] = {}
    for name in sorted(names, key=lambda n: n not in parameters):
        first = first_at.setdefault(_memory(table.initializers[name]) or name, name)
        if first != name:
            pairs.append((name, first))
    first_of: dict[Any, str] = {}
    for name in first_at.values() if len(first_at) > 1 else ():
        size = initializer_bytes(table.initializers[name])
        if name in parameters and size >= _NAMED:
            if size > budget:
                continue
            budget -= size
        first = first_of.setdefault(_digest(graph, name), name)
        if first != name and (name not in parameters or size >= _NAMED):
            pairs.append((name, first))
    return pairs, budget


def _memory(value: Any) -> Any:
    """Address of an array, None for something else. Two of one type and shape there are equal."""
    contiguous = isinstance(value, np.ndarray) and value.flags.c_contiguous and value.nbytes
    return value.__array_interface__["data"][0] if contiguous else None


def _raw(graph: Graph, name: str) -> bytes | memoryview:
    """Content of an initializer as bytes, the same however it is stored."""
    value = graph.constants.initializers[name]
    if isinstance(value, TensorProto):
        if value.data_type == TensorProto.STRING:
            return repr(list(value.string_data)).encode()
        if value.HasField("raw_data"):
            return value.raw_data
        value = graph.constants.value(name)
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8).data if value.size else b""


def _sample(graph: Graph, name: str) -> Any:
    value = graph.constants.initializers[name]
    if is_external_proto(value):
        return tuple(sorted((e.key, e.value) for e in value.external_data))
    if isinstance(value, BlockTensor):
        return value.key()
    samples = graph.constants.samples
    if name in samples:
        return samples[name]
    raw = _raw(graph, name)
    if len(raw) <= _SAMPLE:
        return bytes(raw)
    found = bytes(raw[:_SAMPLE]), bytes(raw[-_SAMPLE:]), len(raw)
    if len(raw) >= _COPIED:  # protobuf copies it whole
        samples[name] = found
    return found


def _digest(graph: Graph, name: str) -> Any:
    value = graph.constants.initializers[name]
    if is_external_proto(value) or isinstance(value, BlockTensor):
        return _sample(graph, name)
    import hashlib  # loads a library that few models need

    return hashlib.blake2b(_raw(graph, name)).digest()


@register_count("remove_duplicated_shape")
def remove_duplicated_shape(graph: Graph) -> int:
    """Keeps one of the Shape nodes that read the same result with the same bounds.

    :return: number of nodes removed
    """
    if not graph.scope.options.remove_duplicated_shape:
        return 0
    shapes = graph.store.bucket("", "Shape")
    return merge_equal_nodes(graph, list(shapes)) if len(shapes) > 1 else 0
