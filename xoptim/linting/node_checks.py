"""Checks of each node: kernels of the target, frozen sizes, casts, locales, reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto
from onnx.helper import get_attribute_value

from xbuilder.facts.facts import ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.nodes.functions import function_key
from xbuilder.nodes.loading import loads, refuses
from xbuilder.nodes.operand_types import wrong_types
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.schema_functions import schema_function
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_schemas import schema_of
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.kernel_table import KernelTable
from xbuilder.runtimes.sessions import is_custom_operator
from xbuilder.tensors.bits import pretty_type

from ..reports.node_matching import operator_of
from ..reports.tables import counted
from .findings import LOWERING, CheckedModel, Finding, check, node_title

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

    #: gives the optimizer of a graph
    EngineOf = Callable[[Graph], GraphBuilderPatternOptimization]


@check
def kernels(model: CheckedModel) -> Iterator[Finding]:
    """X002 to X006: what the target has no kernel for."""
    engine_of = cache(lowering_of)
    for processor in model.processors:
        table = kernel_table(processor)
        for graph, record, node in model.nodes:
            yield from kernel_findings(table, graph, record, node, engine_of)


def lowering_of(graph: Graph) -> GraphBuilderPatternOptimization:
    """The optimizer that replaces nodes without kernel, imported for a model that has some."""
    from ..engine.optimizer import GraphBuilderPatternOptimization

    return GraphBuilderPatternOptimization(graph, LOWERING)


def kernel_findings(
    table: KernelTable, graph: Graph, record: NodeRecord, node: NodeProto, engine_of: EngineOf
) -> Iterator[Finding]:
    """X002 to X006 for one node, none if the target has a kernel.

    :param table: the kernels of the target
    :param graph: the graph of the node
    :param record: its record
    :param node: the node
    :param engine_of: the optimizer of the graph
    """
    op_type, domain = record.op_type, record.domain
    opset = graph.opsets.get(domain, 1)
    if (domain, op_type) == ("", "Constant") or function_key(node) in graph.functions:
        return  # an initializer once it is loaded; a call, which the report says is skipped
    facts = [graph.facts[name] if name else ResultFacts() for name in record.inputs]
    types = [f.type or 0 for f in facts]
    given = [graph.facts[name].type or 0 if name else 0 for name in record.outputs]
    refused = refuses(node)
    if not refused and _is_unlisted(table, graph, record):
        return
    if not refused and table.runs(op_type, domain, opset, types, given):
        return
    schema = schema_of(op_type, domain, opset)
    if schema is not None and wrong_types(schema, types):
        return  # a finding of its own
    where, runtime = node_title(node), f"{table.runtime} ({table.provider})"
    shapes = [f.shape for f in facts]
    if loads(table, node, opset, types, given, shapes):
        casts = schema_function(node, opset, types, shapes) is None
        if casts:
            yield Finding("X005", where, f"{runtime} runs it in float between casts")
        else:
            yield Finding("X004", where, f"{runtime} has no kernel and runs its definition")
        return
    if schema is None and not table.knows(op_type, domain):
        if is_custom_operator(node, types):
            return
        yield _unknown(node, domain, opset)
        return
    message = f"{runtime} has no kernel for opset {opset}{_of_types(types, given)}"
    if refused:
        message = f"{runtime} refuses layout=1, a batch that comes first"
    refusals = _refusals(engine_of, graph, node)
    advice = "" if refused else _advice(table, op_type, domain, opset, types, given)
    if refusals is None:  # a rewrite matches it: whether it mends it is tried later
        yield Finding("X006", where, message, advice)
    else:
        yield Finding("X002", where, message, "; ".join(filter(None, [advice, *refusals])))


def unlisted_kernels(model: CheckedModel) -> Iterator[str]:
    """The processors whose kernels are not all known, with the number of nodes that were not
    compared with them.
    """
    for processor in model.processors:
        table = kernel_table(processor)
        count = sum(_is_unlisted(table, graph, record) for graph, record, _ in model.nodes)
        if count:
            yield (
                f"{counted(count, 'node')} on {processor}: {table.runtime} only lists the kernels "
                "of com.microsoft, the others are known where it is installed"
            )


def _is_unlisted(table: KernelTable, graph: Graph, record: NodeRecord) -> bool:
    """Whether a processor may have a kernel for a standard operator, and does not list it."""
    op_type, domain = record.op_type, record.domain
    if table.is_complete or table.knows(op_type, domain):
        return False
    return schema_of(op_type, domain, graph.opsets.get(domain, 1)) is not None


def _refusals(engine_of: EngineOf, graph: Graph, node: NodeProto) -> list[str] | None:
    """The reasons why each rewrite of the set `fix` leaves an operator, None if one matches."""
    engine, found = engine_of(graph), dict[str, None]()
    for pattern in engine.patterns:
        if node.op_type in pattern.roots:
            attempt = pattern.attempt(engine, node)
            if attempt.match is not None:
                return None
            reason = attempt.reason.rpartition(" (")[0] or attempt.reason
            found[f"{pattern.name} leaves it: {reason}"] = None
    return list(found)


def _unknown(node: NodeProto, domain: str, opset: int) -> Finding:
    if domain in ("", MICROSOFT):
        message, advice = f"{operator_of(node)} does not exist in opset {opset}", ""
    else:
        message = f"nothing is known of the operators of {domain!r}"
        advice = "the runtime needs the library that has its kernel, --custom-ops loads it here"
    return Finding("X003", node_title(node), message, advice)


def _of_types(types: list[int], given: list[int]) -> str:
    """The types of the inputs in words, and those of the results that no input has."""
    read, written = ([pretty_type(t) for t in kinds if t] for kinds in (types, given))
    text = f" and {', '.join(read)}" if read else ""
    new = [name for name in dict.fromkeys(written) if name not in read]
    return f"{text} to {', '.join(new)}" if new else text


def _advice(
    table: KernelTable, op_type: str, domain: str, opset: int, types: list[int], given: list[int]
) -> str:
    """The opset whose kernel takes the types, or the types of the kernels that the runtime has.

    :param types: the types of the inputs, 0 for those that are not known
    :param given: the same for the results
    """
    found = table.of(op_type, domain)
    if not found:
        return "no opset has one"
    right = [k.since for k in found if table.runs(op_type, domain, k.since, types, given)]
    later = [since for since in right if since > opset]
    if later:
        return f"--target-opset {min(later)} of xoptim optimize: opset {min(later)} has one"
    if right:
        return f"opset {max(right)} has one for these types"
    last = max(k.since for k in found)
    known: dict[str, list[str]] = {}
    for kernel in (k for k in found if k.since == last):
        for name, kinds in kernel.types.items():
            known.setdefault(name, []).extend(k for k in kinds if k not in known.get(name, ()))
    text = "; ".join(f"{name}: {_shortened(kinds)}" for name, kinds in known.items())
    return f"no opset has one for these types, opset {last} has one for {text}"


def _shortened(names: Sequence[str]) -> str:
    shown = names if len(names) < 8 else [*names[:6], f"{len(names) - 6} others"]
    return ", ".join(shown)


@check
def frozen_sizes(model: CheckedModel) -> Iterator[Finding]:
    """X101: a Reshape whose result has a fixed number of elements, where its input has not."""
    for graph, record, node in model.nodes:
        if record.op_type != "Reshape" or record.domain or len(record.inputs) < 2:
            continue
        shape = graph.facts[record.inputs[0]].shape
        target = graph.constants.value(record.inputs[1])
        if shape is None or target is None or not any(isinstance(d, str) for d in shape):
            continue
        sizes = [int(d) for d in target.reshape(-1)]
        if min(sizes, default=0) > 0:
            message = f"{list(shape)} has to have the elements of {sizes}"
            yield Finding("X101", node_title(node), message, "export it with dynamic shapes again")


@check
def casts(model: CheckedModel) -> Iterator[Finding]:
    """X103: a Cast of a Cast."""
    for graph, record, node in model.nodes:
        if record.op_type == "Cast" and not record.domain:
            before = graph.store.producers.get(record.inputs[0])
            if before is not None and before.op_type == "Cast" and not before.domain:
                first = node_title(graph.store.proto(before))
                yield Finding("X103", node_title(node), f"it casts what {first} casts")


@check
def locales(model: CheckedModel) -> Iterator[Finding]:
    """X108: a StringNormalizer that changes or ignores case loads where its locale is installed."""
    for _, record, node in model.nodes:
        if record.op_type != "StringNormalizer" or record.domain:
            continue
        given = {a.name: get_attribute_value(a) for a in node.attribute}
        changes = given.get("case_change_action", b"NONE") != b"NONE"
        ignores = given.get("stopwords") and not given.get("is_case_sensitive", 0)
        locale = given.get("locale", b"").decode() or "en_US.UTF-8"
        if (changes or ignores) and locale not in ("C", "POSIX"):
            message = f"it only loads where the locale {locale} is installed"
            yield Finding("X108", node_title(node), message, 'locale="C" is everywhere, for ASCII')


@check
def racing_reductions(model: CheckedModel) -> Iterator[Finding]:
    """X109: a ScatterND with a reduction, unless its indices are constant and distinct."""
    if "CPU" not in model.processors:
        return
    for graph, record, node in model.nodes:
        if record.op_type != "ScatterND" or record.domain:
            continue
        given = {a.name: get_attribute_value(a) for a in node.attribute}
        if given.get("reduction", b"none") == b"none":
            continue
        indices = graph.constants.value(record.inputs[1])
        if indices is None or _may_meet(indices, graph.facts[record.inputs[0]].shape):
            message = "onnxruntime loses updates of one place if it runs it in several threads"
            advice = "ScatterElements reduces in order; so does intra_op_num_threads = 1"
            yield Finding("X109", node_title(node), message, advice)


def _may_meet(indices: np.ndarray, shape: Sequence[int | str] | None) -> bool:
    """Whether two rows of constant indices may be the same place, once negative ones count from
    the end."""
    rows = indices.reshape(-1, indices.shape[-1]) if indices.size else indices.reshape(0, 1)
    if (rows < 0).any():
        sizes = list(shape or ())[: rows.shape[1]]
        if len(sizes) < rows.shape[1] or any(isinstance(d, str) for d in sizes):
            return True
        rows = np.where(rows < 0, rows + np.array(sizes), rows)
    return len(np.unique(rows, axis=0)) < len(rows)
