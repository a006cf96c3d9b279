"""Checks of what the definitions of operators refuse, which onnxruntime refuses as well."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xbuilder.facts.facts import UNKNOWN
from xbuilder.graph.graph import Graph
from xbuilder.inference.node_inference import refusal_of_onnx
from xbuilder.nodes.operand_types import wrong_types
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_schemas import schema_of
from xbuilder.runtimes.installed import kernel_table

from .findings import CheckedModel, Finding, check, node_title

#: what the import says of a declared type: a session refuses it, not a wrong shape
_WRONG_TYPE = re.compile(r"for '.*': type \w+ against \w+, ")


@check
def definitions(model: CheckedModel) -> Iterator[Finding]:
    """X008: nodes whose operators do not take such types, ranks, sizes or attributes."""
    for graph, record, node in model.nodes:
        reason = refused_by_definition(graph, record)
        if reason:
            yield Finding("X008", node_title(node), reason)


def refused_by_definition(graph: Graph, record: NodeRecord) -> str:
    """The reason why the definition of an operator refuses a node, empty if it does not, or if too
    little is known.

    :param graph: the graph of the node
    :param record: the node
    """
    schema = schema_of(record.op_type, record.domain, graph.opsets.get(record.domain, 1))
    if schema is None or record.key == ("", "Constant") or graph.calls_function(record):
        return ""
    facts = [graph.facts[name] if name else UNKNOWN for name in record.inputs]
    reason = wrong_types(schema, [f.type for f in facts])
    if not reason:
        reason = refusal_of_onnx(graph, record)
        shapes = [list(f.shape) for f in facts if f.shape is not None]
        if reason and shapes:
            reason = f"{reason.rstrip('.')}: it reads {', '.join(map(str, shapes))}"
    return reason


@check
def opsets(model: CheckedModel) -> Iterator[Finding]:
    """X010: opsets that came after the runtime, which refuses them even where no node has one."""
    for processor in model.processors:
        table = kernel_table(processor)
        for one in model.container.proto.opset_import:
            newest = table.opsets.get(main_domain(one.domain), one.version)
            if one.version > newest:
                name = f"opset {one.version} of {one.domain or 'the main domain'}"
                message = f"{table.runtime} supports version {newest} at most"
                yield Finding("X010", name, message, "export it for an older one")


@check
def declarations(model: CheckedModel) -> Iterator[Finding]:
    """X009, X107: what the import corrected."""
    for message in model.warnings:
        yield Finding("X009" if _WRONG_TYPE.search(message) else "X107", "", message)
