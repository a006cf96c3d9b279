"""Checks that the new nodes of a pattern are valid for the opsets of the graph."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache

import onnx

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.arity import arity_of, check_arity
from xbuilder.nodes.attribute_types import Typed, attribute_problem, attribute_types
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.schema_check import form_of, is_standard
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.op_traits import EXACT_RANKS, IN_ANY_OPSET
from xbuilder.operators.opsets import newest_ml
from xbuilder.shapes.registry import find_shape_function
from xbuilder.support.close_names import closest_names

#: domains whose operators onnx all knows
_ONNX = ("", "ai.onnx.ml")
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def check_new_node(
    graph: Graph, record: NodeRecord, pattern: str, removed: Sequence[NodeRecord] = ()
) -> None:
    """Checks that an operator exists in the opset of the graph, and has the inputs, outputs and
    attributes of its schema; checks the nodes of its subgraphs as well.

    Exempt are domains unknown to onnx, local functions, and nodes the model already has.

    :param graph: the graph
    :param record: a new node
    :param pattern: name of the pattern which made it
    :param removed: nodes it replaces
    :raises PatternError: the model would not be valid
    """
    form = form_of(record)
    attributes = form[-1]
    if attributes and _has_graph(attributes):
        for _, body in subgraphs_of(record._proto):
            for node in body.node:
                check_new_node(graph, NodeRecord(node, 0, 0), pattern, removed)
    if record.domain not in _ONNX or record.key in graph.functions:
        return
    if record.op_type in EXACT_RANKS and not record.domain:
        _check_ranks(graph, record, pattern, removed)
    opset = graph.opsets.get(record.domain) or (newest_ml() if record.domain else 0)
    if is_standard(form, opset):
        return
    if arity_of(record.op_type, record.domain, opset) is None:
        if not _is_runtime_operator(graph, record, opset):
            raise PatternError(f"Pattern {pattern} makes {_unknown(record, opset)}")
        return
    try:
        check_arity(record, {record.domain: opset})
    except InvalidModelError as e:
        raise PatternError(f"Pattern {pattern} makes a node which is not valid. {e}") from e
    of_model = {a.name for r in removed if r.key == record.key for a in r._proto.attribute}
    _check_attributes(record, opset, pattern, of_model)
    problem = attribute_problem(record.op_type, record.domain, opset, attributes)
    if problem and not of_model:
        raise PatternError(f"Pattern {pattern} makes {record!r}: {problem}.")


@lru_cache(maxsize=1 << 12)
def _has_graph(attributes: Typed) -> bool:
    """Whether an attribute is a graph."""
    return any(kind in _GRAPHS for _, kind in attributes)


def _check_ranks(
    graph: Graph, record: NodeRecord, pattern: str, removed: Sequence[NodeRecord]
) -> None:
    """Refuses an input whose known rank is wrong, unless the model already has such a node."""
    if any(r.key == record.key for r in removed):
        return
    for name, expected in zip(record.inputs, EXACT_RANKS[record.op_type], strict=False):
        rank = graph.facts[name].known_rank() if name in graph.names else None
        if rank not in (None, expected):
            raise PatternError(
                f"Pattern {pattern} makes {record!r}, whose input {name!r} has rank {rank}; "
                f"{record.op_type} expects rank {expected}."
            )


def _check_attributes(
    record: NodeRecord, opset: int, pattern: str, of_model: Container[str]
) -> None:
    """Refuses an attribute the schema refuses, unless the model already has it."""
    allowed = attribute_types(record.op_type, record.domain, opset) or {}
    for att in record._proto.attribute:
        if att.name in of_model:
            continue
        if att.name not in allowed:
            expected = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise PatternError(
                f"Pattern {pattern} makes {record!r} with attribute {att.name!r}, which operator "
                f"{record.op_type!r} does not have in opset {opset}; {expected}."
            )
        if att.type != allowed[att.name]:
            names = onnx.AttributeProto.AttributeType.Name
            raise PatternError(
                f"Pattern {pattern} makes {record!r}: its attribute {att.name!r} must be of type "
                f"{names(allowed[att.name])}, not {names(att.type)}."
            )


def _is_runtime_operator(graph: Graph, record: NodeRecord, opset: int) -> bool:
    """Whether onnxruntime adds this operator to the main domain, or the model already uses it."""
    if record.op_type in IN_ANY_OPSET:
        return True
    if onnx.defs.has(record.op_type, record.domain):
        return False
    known = find_shape_function(record.domain, record.op_type, opset)[0] is not None
    return known or bool(graph.store.bucket(*record.key))


def _unknown(record: NodeRecord, opset: int) -> str:
    domain = record.domain or "ai.onnx"
    if onnx.defs.has(record.op_type, record.domain):
        return (
            f"{record!r} but opset {opset} of domain {domain!r} has no operator {record.op_type!r};"
            " set min_opset on the pattern, or convert the model to a newer opset."
        )
    names = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == record.domain})
    close = closest_names(record.op_type, names)
    hint = f" did you mean {' or '.join(close)}?" if close else ""
    return (
        f"{record!r} but domain {domain!r} has no operator {record.op_type!r};{hint} A custom "
        "operator needs a domain of its own, argument domain of g.make_node."
    )
