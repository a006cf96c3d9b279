"""Checks that the processors the model is meant for have kernels for the new nodes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from xbuilder.errors import PatternError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.kernel_table import KernelTable
from xbuilder.runtimes.processors import processors_of
from xbuilder.tensors.bits import pretty_type

#: domains in which onnxruntime defines operators
_DOMAINS = ("", "com.microsoft")


def check_kernel(
    graph: Graph,
    record: NodeRecord,
    pattern: str,
    processor: str,
    removed: Sequence[NodeRecord] = (),
) -> None:
    """Checks that a processor has a kernel of onnxruntime for a new node, once the types of its
    inputs are known.

    Only operators unknown to onnx are checked, since another runtime may run the others. Exempt are
    nodes the model already has, local functions, and processors whose kernels are not all known.

    :param graph: the graph
    :param record: a new node
    :param pattern: name of the pattern which made it
    :param processor: processors the model is meant for, `"CPU,CUDA"`
    :param removed: nodes it replaces
    :raises PatternError: a processor cannot run it
    """
    if record.domain not in _DOMAINS or record.key in graph.functions:
        return
    if onnx.defs.has(record.op_type, record.domain):
        return
    if graph.store.bucket(*record.key) or any(r.key == record.key for r in removed):
        return
    types = [graph.facts[name].type if name else 0 for name in record.inputs]
    known_types = onnx.TensorProto.DataType.values()
    pairs = zip(types, record.inputs, strict=True)
    # a damaged model may declare a type ONNX does not have
    if any((name and not kind) or kind not in known_types for kind, name in pairs):
        return
    opset = graph.opsets.get(record.domain, 1)
    for one in processors_of(processor):
        table = kernel_table(one)
        known = table.knows(record.op_type, record.domain)
        if known and table.runs(record.op_type, record.domain, opset, types):
            continue
        if known or table.is_complete:
            raise PatternError(_message(record, pattern, one, table, types))


def _message(
    record: NodeRecord, pattern: str, processor: str, table: KernelTable, types: Sequence[int]
) -> str:
    names = ", ".join(pretty_type(t) if t else "none" for t in types)
    command = f"xoptim kernels --op {record.op_type} --processor {processor}"
    why = (
        f"for the types it reads ({names}), {command!r} shows those it has"
        if table.knows(record.op_type, record.domain)
        else f"for this operator of domain {record.domain or 'ai.onnx'!r}"
    )
    return (
        f"Pattern {pattern} makes {record!r} but {table.runtime} has no kernel on {processor} {why}"
        "; check the processor of the options or remove the pattern."
    )
