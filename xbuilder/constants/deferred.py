"""Constants derived from weights of other files, computed only when the model is written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from onnx import NodeProto

from ..dims import is_static
from ..facts.facts import ResultFacts
from ..files.blocks.block_sources import (
    ArrayBlocks,
    Blocks,
    ElementwiseBlocks,
    FileBlocks,
    TransposedBlocks,
)
from ..files.blocks.block_tensors import BlockTensor
from ..files.external_data import ExternalFolder
from ..files.tensor_sources import FileSource
from ..nodes.attributes import find_attribute
from ..nodes.record import NodeRecord
from ..operators.op_traits import FLOATS
from ..tensors.bits import data_type_of, is_packed
from .evaluation import evaluate_node, predicted_bytes
from .initializers import is_external_proto
from .table import ConstantTable

#: results below this size (bytes) are computed at once
DEFERRED_BYTES = 1 << 16
#: a chain of more nodes than this is computed at once
_MAX_DEPTH = 32
_ELEMENTWISE = frozenset({"Add", "Cast", "Div", "Mul", "Neg", "Sub"})
_RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


def deferred_tensor(table: ConstantTable, name: str) -> BlockTensor | None:
    """A constant as blocks of the weights of other files it derives from. Nothing is read.

    Transpose, reshaping operators and elementwise operators on floats are supported. The result is
    the one the evaluation of the nodes gives, because each element depends on the same elements.

    :param table: constants of the graph
    :param name: a result that depends on constants only
    :return: None if it has to be computed at once: no weight of another file, another operator, a
        type no runtime computes
    """
    blocks = _blocks(table, name, 0)
    if blocks is None or not blocks.files():
        return None
    return BlockTensor(blocks)


def blocks_of(table: ConstantTable, name: str) -> Blocks | None:
    """The content of a constant, a block at a time. Weights of other files are not held in memory.

    :param table: constants of the graph
    :param name: a result that depends on constants only
    :return: None if it is not known, or if it is one of strings
    """
    if name in table.initializers:
        return None if name in table.overridable else _initializer_blocks(table, name)
    tensor = deferred_tensor(table, name)
    if tensor is not None:
        return tensor.blocks
    value = table.value(name)
    return None if value is None else _in_memory(value)


def _blocks(table: ConstantTable, name: str, depth: int) -> Blocks | None:
    """Blocks of a constant, None if too many nodes separate it from the weights."""
    if name in table.initializers:
        return None if name in table.overridable else _initializer_blocks(table, name)
    record = table.computed.get(name)
    if record is None or depth >= _MAX_DEPTH:
        return None
    facts = table.facts[name]
    if record.domain or len(record.outputs) != 1 or is_packed(facts.type):
        return None
    if record.op_type == "Transpose":
        return _transposed(table, record, depth)
    if record.op_type in _RESHAPING:
        return _reshaped(table, record, facts, depth)
    if record.op_type in _ELEMENTWISE:
        return _elementwise(table, record, facts, depth)
    value = table.value(name) if _is_small(table, name) else None
    return None if value is None else _in_memory(value)


def _is_small(table: ConstantTable, name: str) -> bool:
    facts = table.facts[name]
    size = predicted_bytes(facts.type, facts.shape)
    return size is not None and size <= DEFERRED_BYTES


def _in_memory(value: np.ndarray) -> Blocks | None:
    return None if value.dtype.kind in "OUS" else ArrayBlocks(value, data_type_of(value.dtype.name))


def _initializer_blocks(table: ConstantTable, name: str) -> Blocks | None:
    value = table.initializers[name]
    if isinstance(value, BlockTensor):
        return value.blocks
    if not is_external_proto(value):
        found = table.value(name)
        return None if found is None else _in_memory(found)
    folder = table.folder
    if folder.base_dir is None or is_packed(value.data_type):
        return None
    files = ExternalFolder(folder.base_dir, folder.allowed_roots)
    return FileBlocks(FileSource(value, files.locate(value)))


def _transposed(table: ConstantTable, record: NodeRecord, depth: int) -> Blocks | None:
    operand = _blocks(table, record.inputs[0], depth + 1)
    if operand is None:
        return None
    rank = len(operand.dims)
    found = find_attribute(table.store.proto(record), "perm")
    perm = tuple(range(rank))[::-1] if found is None else tuple(found.ints)
    valid = found is None or not found.ref_attr_name
    return TransposedBlocks(operand, perm) if valid and sorted(perm) == list(range(rank)) else None


def _reshaped(
    table: ConstantTable, record: NodeRecord, facts: ResultFacts, depth: int
) -> Blocks | None:
    """The same bytes of the same file, under other dimensions."""
    operand, dims = _blocks(table, record.inputs[0], depth + 1), facts.shape
    if not isinstance(operand, FileBlocks) or dims is None or not is_static(dims):
        return None
    return FileBlocks(operand.source, dims)


def _elementwise(
    table: ConstantTable, record: NodeRecord, facts: ResultFacts, depth: int
) -> Blocks | None:
    dims = facts.shape
    if dims is None or not is_static(dims) or facts.type not in FLOATS:
        return None
    operands: list[Blocks] = []
    for name in record.inputs:
        operand = _blocks(table, name, depth + 1)
        if operand is None or operand.data_type not in FLOATS or len(operand.dims) > len(dims):
            return None
        operands.append(operand)
    node = table.store.proto(record)
    compute = partial(_evaluate, node, dict(table.opsets), facts.type)
    key = (record.op_type, facts.type)
    blocks = ElementwiseBlocks(compute, operands, facts.type, dims, key)
    try:  # one element shows whether a runtime computes it
        blocks.block(tuple((0, min(d, 1)) for d in dims))
    except NotComputedError:
        return None
    return blocks


class NotComputedError(RuntimeError):
    """No runtime computes a node."""


def _evaluate(
    node: NodeProto, opsets: dict[str, int], elem_type: int, values: Sequence[np.ndarray]
) -> np.ndarray:
    """Value of a node for some blocks of its operands.

    :raises NotComputedError: no runtime computes it
    """
    found = evaluate_node(node, [np.ascontiguousarray(v) for v in values], opsets, [elem_type])
    if found is None:
        raise NotComputedError(f"No runtime computes {node.op_type} for {elem_type}.")
    return found[node.output[0]]
