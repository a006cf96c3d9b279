"""Converters of higher-order operators: nodes of an fx graph that own subgraphs.

A subgraph is built by its own builder. It captures the results of the outer graph, so weights are
shared. Numbers go through loops as tensors of shape ``(1,)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from onnx import AttributeProto, GraphProto, TensorProto, helper

from ..aten.operands import choose
from ..common.errors import ConversionError
from ..common.types import to_onnx_type
from ..writing.graph_writer import GraphWriter
from ..writing.naming import free_name
from ..writing.symbols import KIND_TYPES, SYM_KINDS, SymScalar, scalar0d, vector1d
from .branch_functions import called
from .interpreter import Handler, Interpreter

_BRANCHES = ("then_branch", "else_branch")


def _wrap(position: int) -> Handler:
    """Inlines a region that runs in another mode (no_grad, autocast) in the main graph."""

    def handle(
        interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        return interpreter.inline(args[position], args[position + 1 :])

    return handle


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _attribute(name: str, graph: GraphProto) -> AttributeProto:
    return helper.make_attribute(name, graph)


def _finish(child: Interpreter, results: Sequence[Any], prefix: str, vectors: bool) -> GraphProto:
    """Declares the outputs of a subgraph.

    :param child: the interpreter of the subgraph
    :param results: the values it returns
    :param prefix: name of the fx node that owns it
    :param vectors: numbers keep their shape (1,), they become scalars otherwise
    :raises ConversionError: one of them is None
    """
    for i, value in enumerate(results):
        if value is None:
            raise ConversionError(f"A subgraph of fx node {prefix!r} returns None (result {i}).")
        if vectors and (isinstance(value, SymScalar) or not isinstance(value, str)):
            kind = value.kind if isinstance(value, SymScalar) else type(value)
            vector = vector1d(child.g, value, KIND_TYPES[kind])
            value = vector if isinstance(vector, str) else child.g.make_initializer("", vector)
            value = str(value)
        child.declare_output(child.g.unique_name(f"{prefix}_out_{i}"), value)
    graph: GraphProto = child.g.to_onnx(optimize=False, as_graph_proto=True)
    return graph


def _cond(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """torch.cond: an If whose branches capture their arguments, or call functions if the plan says
    so. A value None in both stays None."""
    predicate, true_graph, false_graph, operands = args
    g, prefix = interpreter.g, interpreter.short_name(node)
    branches = []
    for graph in (true_graph, false_graph):
        child = interpreter.child()
        branches.append((child, _listed(child.inline(graph, operands))))
    values = list(zip(*(results for _, results in branches), strict=True))
    kept = [i for i, pair in enumerate(values) if pair != (None, None)]
    if not kept:
        return [None] * len(values)
    attributes = []
    for i, (name, (child, results)) in enumerate(zip(_BRANCHES, branches, strict=True)):
        graph = _finish(child, [results[k] for k in kept], f"{prefix}_{name}", False)
        branch = node.args[1 + i]
        if interpreter.plan.has_branches and isinstance(branch, torch.fx.Node):
            graph = called(interpreter, graph, str(branch.target))
        attributes.append(_attribute(name, graph))
    condition = scalar0d(g, predicate, TensorProto.BOOL)
    if not isinstance(condition, str):
        condition = g.make_initializer("", condition)
    names = interpreter.allocate(node, node.meta["val"])
    found = g.make_node("If", [condition], [names[i] for i in kept], attributes=attributes)
    fakes = [_listed(node.meta["val"])[i] for i in kept]
    recorded = dict(zip(kept, _recorded(interpreter, node, fakes, found), strict=True))
    return [recorded.get(i) for i in range(len(values))]


def _recorded(interpreter: Interpreter, node: torch.fx.Node, fakes: Any, results: Any) -> list[Any]:
    """Records types and shapes of the results; a rank-0 number becomes a symbolic scalar again."""
    recorded = []
    for fake, name in zip(_listed(fakes), _listed(results), strict=True):
        kind = SYM_KINDS.get(type(fake))
        if kind is not None and not isinstance(name, SymScalar):
            name = SymScalar(vector1d(interpreter.g, name, KIND_TYPES[kind]), kind)
        recorded.append(interpreter.record(node, fake, name))
    return recorded


def _body_input(child: Interpreter, prefix: str, fake: Any) -> str:
    """Declares an input of a loop body."""
    name = free_name(child.g.names, prefix)
    if isinstance(fake, torch.Tensor):
        shape = child.namer.shape(fake.shape)
        child.g.make_tensor_input(name, to_onnx_type(fake.dtype), shape)
        return name
    kind = SYM_KINDS.get(type(fake), type(fake))
    child.g.make_tensor_input(name, KIND_TYPES[kind], (1,))
    return SymScalar(name, kind)


def _initial(g: GraphWriter, value: Any) -> str:
    """The initial value of a loop variable."""
    if isinstance(value, str):
        return str(value)
    return g.make_initializer("", vector1d(g, value, KIND_TYPES[type(value)]))


def _fakes(module: torch.fx.GraphModule) -> list[Any]:
    """The fake values of the placeholders of a subgraph."""
    return [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]


def _while_loop(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """while_loop: a Loop; the condition is computed before it and at the end of its body."""
    cond_graph, body_graph, carried, captured = args
    g = interpreter.g
    first = scalar0d(g, _listed(interpreter.inline(cond_graph, [*carried, *captured]))[0], 9)
    child = interpreter.child()
    child.g.make_tensor_input(
        free_name(g.names, f"{interpreter.short_name(node)}_iteration"), TensorProto.INT64, ()
    )
    child.g.make_tensor_input(
        free_name(g.names, f"{interpreter.short_name(node)}_go_on"), TensorProto.BOOL, ()
    )
    fakes = _fakes(body_graph)[: len(carried)]
    inside = [
        _body_input(child, f"{interpreter.short_name(node)}_in_{i}", f) for i, f in enumerate(fakes)
    ]
    results = _listed(child.inline(body_graph, [*inside, *captured]))
    again = _listed(child.inline(cond_graph, [*results, *captured]))[0]
    again = scalar0d(child.g, again, TensorProto.BOOL)
    if not isinstance(again, str):
        again = child.g.make_initializer("", again)
    body = _finish(child, [str(again), *results], interpreter.short_name(node), True)
    fakes = node.meta["val"]
    found = g.make_node(
        "Loop",
        ["", _initial(g, first), *(_initial(g, v) for v in carried)],
        interpreter.allocate(node, fakes),
        attributes=[_attribute("body", body)],
    )
    return _recorded(interpreter, node, fakes, found)


def _map(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """map: a Scan without state."""
    body, xs, captured = args
    return _scan(interpreter, node, [body, [], xs, captured], kwargs)


def _associative_scan(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """associative_scan: a Scan whose first step keeps the first elements as they are.

    The first elements are the initial state too, which that step does not read. A Scan over the
    other elements would be empty if there is only one, and onnxruntime refuses an empty Scan.
    """
    combine_graph, xs, captured = args
    g, fakes, count = interpreter.g, _listed(node.meta["val"]), len(xs)
    child, name = interpreter.child(), interpreter.short_name(node)
    is_first = free_name(child.g.names, f"{name}_is_first")
    child.g.make_tensor_input(is_first, TensorProto.BOOL, ())
    placeholders = _fakes(combine_graph)[: 2 * count]
    inside = [_body_input(child, f"{name}_in_{i}", f) for i, f in enumerate(placeholders)]
    combined = _listed(child.inline(combine_graph, [*inside, *captured]))
    results = [
        choose(child.g, is_first, x, str(y), child.g.get_type(x))
        for x, y in zip(inside[count:], combined, strict=True)
    ]
    never = child.g.make_initializer("", np.array(False))
    # a state is also a result, under another name
    copies = [child.g.op.Identity(r) for r in results]
    body = _finish(child, [child.g.op.Identity(never), *results, *copies], name, True)
    zero = np.array(0, dtype=np.int64)
    begins = [g.op.Gather(x, zero, axis=0) for x in xs]
    names = interpreter.allocate(node, fakes)
    unread = [g.unique_name(f"{name}_state") for _ in range(count + 1)]
    g.make_node(
        "Scan",
        [g.make_initializer("", np.array(True)), *begins, *xs],
        [*unread, *names],
        attributes=[_attribute("body", body)],
        num_scan_inputs=count,
    )
    return _recorded(interpreter, node, fakes, names)


def _scan(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """scan: a Scan over the first dimension."""
    combine_graph, init, xs = args[:3]
    captured = args[3] if len(args) > 3 else []
    g, child = interpreter.g, interpreter.child()
    fakes = _fakes(combine_graph)[: len(init) + len(xs)]
    inside = [
        _body_input(child, f"{interpreter.short_name(node)}_in_{i}", f) for i, f in enumerate(fakes)
    ]
    results = _listed(child.inline(combine_graph, [*inside, *captured]))
    body = _finish(child, results, interpreter.short_name(node), True)
    fakes = node.meta["val"]
    found = g.make_node(
        "Scan",
        [_initial(g, v) for v in (*init, *xs)],
        interpreter.allocate(node, fakes),
        attributes=[_attribute("body", body)],
        num_scan_inputs=len(xs),
    )
    return _recorded(interpreter, node, fakes, found)


# torch's metadata of a region run with autocast already has the types it produces
HIGHER_ORDER: dict[str, Handler] = {
    "higher_order.wrap_with_set_grad_enabled": _wrap(1),
    "higher_order.wrap_with_autocast": _wrap(4),
    "higher_order.cond": _cond,
    "higher_order.while_loop": _while_loop,
    "higher_order.scan": _scan,
    "higher_order.map_impl": _map,
    "higher_order.associative_scan": _associative_scan,
}
