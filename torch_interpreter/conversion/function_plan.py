"""Chooses the nodes of an fx graph that become local functions: modules and chosen operators."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.utils._pytree as pytree

from xbuilder import FunctionOptions
from xbuilder.errors import OptionError

from ..dispatch.dispatcher import candidate_names
from ..dispatch.operator_names import checked_operators

_COND = torch.ops.higher_order.cond
_DEFAULT_OPTIONS = FunctionOptions(
    export_as_function=True, name="function", merge_allowed=True, rename_allowed=True
)
_DEFAULT_OPERATORS = (
    "aten.histc.default",
    "aten.index_copy.default",
    "aten.index_put.default",
    "aten._grouped_mm.default",
    "aten.setitem",
    "operator.setitem",
)


def get_default_aten_as_function() -> set[str]:
    """The operators whose definition in ONNX is long: they are clearer as local functions.

    ``ExportOptions(aten_as_function=True)`` makes a function of every operator.

    ::

        names = get_default_aten_as_function() | {"aten.scaled_dot_product_attention.default"}
        to_onnx(model, (x,), export_options=ExportOptions(aten_as_function=names))
    """
    return set(_DEFAULT_OPERATORS)


@dataclass(slots=True)
class Group:
    """Nodes that become the body of one local function.

    :param nodes: consecutive nodes, in the order of the graph
    :param name: name of the function
    :param domain: its domain, empty to use the domain of the options
    :param path: path of the module in the model, empty for an operator
    :param depth: position, in the stack of modules of a node, of the modules this one calls;
        None if nothing inside can be a function
    """

    nodes: list[torch.fx.Node]
    name: str
    domain: str = ""
    path: str = ""
    depth: int | None = None


@dataclass(slots=True)
class _Call:
    """One call of one module: two calls of the same module have different *key*."""

    key: str
    path: str
    type: str
    position: int


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """Cuts a list of nodes into single nodes and functions.

    :param types: qualified names of the classes that become functions, None for all
    :param operators: names of the operators that become functions, None for all
    :param options: domain of the functions, and what happens to the weights
    """

    types: frozenset[str] | None = frozenset()
    operators: frozenset[str] | None = frozenset()
    options: FunctionOptions = field(default_factory=lambda: _DEFAULT_OPTIONS)

    @property
    def has_branches(self) -> bool:
        """Whether the branches of torch.cond become functions: `cond` is one of the operators."""
        return not frozenset(self.operators or ()).isdisjoint(candidate_names(_COND))

    def steps(
        self, nodes: Sequence[torch.fx.Node], depth: int | None
    ) -> list[torch.fx.Node | Group]:
        """The nodes in order, those of a function replaced by a :class:`Group`.

        A node that no module owns and that falls between those of a function is moved before it,
        unless it needs its results: the function is then cut in two. Cost: linear.

        :param nodes: the nodes to convert
        :param depth: number of modules of the stack of a node which are functions already; None if
            nothing becomes a function
        """
        if depth is None:
            return list(nodes)
        calls = [self._call(node, depth) for node in nodes]
        last = {call.key: i for i, call in enumerate(calls) if call is not None}
        steps: list[torch.fx.Node | Group] = []
        group: Group | None = None
        key, inside = "", set[torch.fx.Node]()
        for i, (node, call) in enumerate(zip(nodes, calls, strict=True)):
            needed = bool(inside.intersection(node.all_input_nodes))
            follows = call is None and needed and node.target is operator.getitem
            if group is not None and (follows or (call is not None and call.key == key)):
                group.nodes.append(node)
                inside.add(node)
            elif group is not None and call is None and not needed and i < last[key]:
                steps.insert(len(steps) - 1, self._single(node))
            elif call is None:
                group, inside = None, set()
                steps.append(self._single(node))
            else:
                group = self._module(node, call)
                key, inside = call.key, {node}
                steps.append(group)
        return steps

    def _call(self, node: torch.fx.Node, depth: int) -> _Call | None:
        """The outermost call of a module to keep as a function, among the calls of a node."""
        stack = list((node.meta.get("nn_module_stack") or {}).items())
        for position, (key, entry) in enumerate(stack[depth:], start=depth):
            if not isinstance(entry, tuple):
                continue
            path, kind = entry
            name = kind if isinstance(kind, str) else type_name(kind)
            if self.types is None or name in self.types:
                return _Call(key, path.split("@")[0], name, position)
        return None

    def _module(self, node: torch.fx.Node, call: _Call) -> Group:
        name = _identifier(call.type.split(".")[-1])
        depth = None if self.options.inline else call.position + 1
        return Group([node], name, "", call.path, depth)

    def _single(self, node: torch.fx.Node) -> torch.fx.Node | Group:
        if node.op != "call_function" or node.target is _COND:
            return node
        if self.operators is None:
            if not _is_operator_of_tensors(node):
                return node
        elif self.operators.isdisjoint(candidate_names(node.target)):
            return node
        parts = str(node.target).split(".")
        return Group([node], _identifier("_".join(parts[1:])), parts[0])


def _is_operator_of_tensors(node: torch.fx.Node) -> bool:
    """Whether a node is an operator that gives tensors: not a number, not a region."""
    values = pytree.tree_leaves(node.meta.get("val"))
    return isinstance(node.target, torch._ops.OpOverload) and any(
        isinstance(v, torch.Tensor) for v in values
    )


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name) or "function"


def type_name(kind: type) -> str:
    """The name torch.export gives to a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def make_plan(
    mod: Any,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]],
    aten_as_function: bool | Collection[str] | None,
    function_options: FunctionOptions | None,
) -> FunctionPlan | None:
    """The plan of local functions, None if nothing becomes one.

    :param mod: the model, to check the classes are there
    :param export_modules_as_functions: True for all submodules, or a set of classes
    :param aten_as_function: True for every operator, or names of operators
    :param function_options: domain of the functions, what happens to the weights
    :raises OptionError: the option is not a set of classes, no submodule is an instance of one, or
        torch has no operator of this name
    """
    types: frozenset[str] | None = frozenset()
    if export_modules_as_functions is True:
        types = None
    elif export_modules_as_functions:
        types = _checked_types(mod, export_modules_as_functions)
    names = None
    if aten_as_function is not True:
        checked = checked_operators(aten_as_function or (), _DEFAULT_OPERATORS, "aten_as_function")
        names = frozenset(checked)
    if types == frozenset() and names == frozenset():
        return None
    options = _DEFAULT_OPTIONS
    if function_options is not None:
        options = replace(
            function_options,
            export_as_function=True,
            name=function_options.name or "function",
            merge_allowed=True,
            rename_allowed=True,
        )
    return FunctionPlan(types, names, options)


def _checked_types(mod: Any, classes: Any) -> frozenset[str]:
    if isinstance(classes, str | type) or not isinstance(classes, Collection):
        raise OptionError(
            f"export_modules_as_functions must be True, False or a set of classes, not {classes!r}."
        )
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
            raise OptionError(
                f"export_modules_as_functions expects subclasses of torch.nn.Module, not {kind!r}."
            )
    if isinstance(mod, torch.nn.Module):
        found = {type(m) for m in mod.modules() if m is not mod}
        missing = sorted(type_name(kind) for kind in set(classes) - found)
        if missing:
            raise OptionError(
                f"export_modules_as_functions: no submodule of the model is a {missing}, "
                f"it has {sorted(type_name(kind) for kind in found)}."
            )
    return frozenset(type_name(kind) for kind in classes)
