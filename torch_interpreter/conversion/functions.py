"""Converts a group of fx nodes into a local function and its call.

Invariants:

* every result of the outer graph that the nodes need is an input of the function, created when it
  is first needed; the weights come last, under their name in the module, so two modules of one
  class with different weights share one function,
* every result needed outside is an output,
* a number stays a tensor of shape ``(1,)`` when it goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from xbuilder import GraphBuilder
from xbuilder.tensors.bits import pretty_type

from ..patches.fake_tensors import has_no_data
from ..writing.complex_names import Complex
from ..writing.naming import free_name
from ..writing.symbols import SymScalar
from .function_plan import Group
from .interpreter import Interpreter, Region

Weights = Mapping[torch.fx.Node, tuple[str, torch.Tensor]]


class NodeResults(dict[torch.fx.Node, Any]):
    """Maps every fx node to its result; placeholders are created when they are first needed.

    :param lazy: functions that create the placeholders
    :param weights: name and tensor of the placeholders which are weights
    """

    def __init__(
        self, lazy: Mapping[torch.fx.Node, Callable[[], Any]], weights: Weights | None = None
    ) -> None:
        super().__init__()
        self.lazy = lazy
        self.weights = weights or {}

    def __missing__(self, node: torch.fx.Node) -> Any:
        """Creates a placeholder."""
        value = self[node] = self.lazy[node]()
        return value


class BodyValues(dict[torch.fx.Node, Any]):
    """Maps fx nodes to results inside a function; a result of the outer graph becomes an input.

    :param outer: the results of the nodes outside
    :param interpreter: the interpreter of the outer graph
    :param body: the interpreter of the function
    :param threshold: weights below this size in bytes are constants of the function
    """

    def __init__(
        self, outer: Any, interpreter: Interpreter, body: Interpreter, threshold: int
    ) -> None:
        super().__init__()
        self.outer, self.interpreter, self.body = outer, interpreter, body
        self.threshold = threshold
        self.weights: Weights = getattr(outer, "weights", {})
        # outer name -> name in the function, in the order of the inputs
        self.inputs: dict[str, str] = {}
        self.parameters: dict[str, str] = {}

    def __missing__(self, node: torch.fx.Node) -> Any:
        """Passes a result of the outer graph to the function."""
        name, tensor = self.weights.get(node, ("", None))
        prefix = self.body.prefix
        is_small = tensor is not None and tensor.nbytes < self.threshold
        if tensor is not None and is_small and not has_no_data(tensor):
            value: Any = self.body.initializer(name.removeprefix(prefix), tensor)
        elif name.startswith(prefix):
            value = self._given(self.outer[node], name.removeprefix(prefix), self.parameters)
        elif tensor is not None:
            value = self._given(self.outer[node], "weight", self.parameters)
        else:
            value = self._given(self.outer[node], "input", self.inputs)
        self[node] = value
        return value

    def _given(self, value: Any, name: str, inputs: dict[str, str]) -> Any:
        if isinstance(value, list | tuple):
            return [self._given(v, name, inputs) for v in value]
        if not isinstance(value, str):
            return value
        known = {**self.inputs, **self.parameters}.get(value)
        if known is None:
            known = inputs[str(value)] = free_name(self.body.g.names, name)
            outer = self.interpreter.g
            shape = outer.get_shape(value) if outer.has_shape(value) else None
            itype = outer.get_type(value) if outer.has_type(value) else None
            self.body.g.make_tensor_input(known, itype, shape)
        if isinstance(value, SymScalar):
            return SymScalar(known, value.kind)
        return Complex(known) if isinstance(value, Complex) else known

    def finish(self) -> list[str]:
        """Puts the weights after the other inputs and returns the arguments of a call."""
        order = [*self.inputs.values(), *self.parameters.values()]
        specs = {spec.name: spec for spec in self.body.g.input_specs}
        self.body.g.input_specs[:] = [specs[name] for name in order]
        return [*self.inputs, *self.parameters]


def convert_group(
    interpreter: Interpreter, region: Region, group: Group, values: dict[torch.fx.Node, Any]
) -> None:
    """Converts nodes into a local function of the model, and calls it.

    :param interpreter: converts the graph that calls the function
    :param region: the graph the nodes belong to
    :param group: the nodes
    :param values: results of the nodes, completed with those needed after the group
    """
    root, members = interpreter.root, set(group.nodes)
    body = interpreter.for_function(GraphBuilder(dict(root.opsets), as_function=True), group)
    options = interpreter.plan.options
    threshold = options.external_threshold if options.move_initializer_to_constant else 0
    inner = BodyValues(values, interpreter, body, threshold)
    wanted = {
        n
        for n in group.nodes
        if n in region.wanted or any(u in region.live and u not in members for u in n.users)
    }
    body.convert_nodes(replace(region, wanted=wanted), group.nodes, inner)
    exported = [n for n in group.nodes if n in wanted]
    made = {n: _returned(interpreter, body, n, inner[n]) for n in exported}
    given = inner.finish()
    outputs = [name for names in made.values() for name in names if name is not None]
    if outputs:
        function = replace(options, name=group.name, domain=group.domain or options.domain)
        results = _signature(body.g, body.g.output_names)
        added, (domain, name) = root.make_local_function(
            body.g, function, metadata_props=_operator_name(group)
        )
        added = _received(interpreter, added)
        interpreter.g.add_domain(domain)
        path = group.path.removeprefix(interpreter.prefix)
        arguments = _signature(interpreter.g, [*given, *added])
        metadata = {"aten_inputs": arguments, "aten_outputs": results} if not group.path else None
        interpreter.g.make_node(
            name, [*given, *added], outputs, domain=domain, name=path, metadata_props=metadata
        )
    for node, names in made.items():
        values[node] = _outer_value(interpreter, node, inner[node], names)


def _operator_name(group: Group) -> dict[str, str] | None:
    """The metadata of the function of an operator; the one of a module has none."""
    return {"aten_name": str(group.nodes[0].target)} if not group.path else None


def _signature(g: GraphBuilder, names: Sequence[str]) -> str:
    """Types and shapes of results, ``float[batch,8], int64[1]``."""
    found = []
    for name in names:
        itype = g.get_type(name) if g.has_type(name) else 0
        shape = ",".join(map(str, g.get_shape(name))) if g.has_shape(name) else "..."
        found.append(f"{pretty_type(itype)}[{shape}]")
    return ", ".join(found)


def _received(interpreter: Interpreter, added: list[str]) -> list[str]:
    """Moves the initializers that became inputs of the function to the graph that calls it."""
    root, g = interpreter.root, interpreter.g
    if g.graph.scope is root.graph.scope:
        return added
    tables = root.graph.constants
    return [
        g.make_initializer(name, tables.take_initializer(name), give_unique=True) for name in added
    ]


def _returned(
    interpreter: Interpreter, body: Interpreter, node: torch.fx.Node, value: Any
) -> list[str | None]:
    """Declares the outputs of the function for a node and returns their names outside.

    None stands for a python number, which is not a result.
    """
    g, names = body.g, interpreter.allocate(node, node.meta.get("val"))
    found: list[str | None] = []
    listed = value if isinstance(value, list) else [value]
    for result, name in zip(listed, names, strict=True):
        if not isinstance(result, str):
            found.append(None)
            continue
        result = str(result)
        if result in g.store.outputs or g.is_given(result):
            result = g.op.Identity(result)
        g.make_tensor_output(result, allow_untyped_output=True)
        found.append(name)
    return found


def _outer_value(
    interpreter: Interpreter, node: torch.fx.Node, inner: Any, names: list[str | None]
) -> Any:
    """The value of a node after the call."""
    if not isinstance(inner, list):
        return interpreter.record(node, node.meta.get("val"), names[0] or inner)
    values = [v if name is None else name for v, name in zip(inner, names, strict=True)]
    return interpreter.record(node, node.meta.get("val"), values)
