"""Rewrites the operators that modify a tensor as operators that return another one.

``run_decompositions`` does it by running the whole program again, which costs as much as the
export. Here the graph is walked once. A tensor and its views share a storage, as their fake values
do: an operator in place gives a new value to all of them, and a view that is read later is taken
again from the new value of its source.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from ..writing.storage import viewed
from .inverse_views import inverse

_ATEN: Any = torch.ops.aten
#: in-place for the schema, without side effect on a functional graph
_HARMLESS = ("aten.detach_.default", "aten.lift_fresh.default")
#: they change the storage itself
_RESIZED = ("resize_", "resize_as_", "set_")
#: their functional forms have the type of the tensor, whatever they write
_CASTING = ("copy_", "fill_")
#: operators in place whose functional forms have another name
_RENAMED = {
    "transpose_.default": "transpose.int",
    "bernoulli_.float": "bernoulli.p",
    "normal_.default": "normal_functional.default",
}
#: positions in the storage, not in the tensor
_ABSOLUTE = "aten.as_strided.default"


class NotRewritten(Exception):
    """An operator modifies a tensor in a way that is not followed in the graph."""


def is_in_place(node: Node) -> bool:
    """Whether a node modifies one of its arguments."""
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target._schema.is_mutable
        and str(target) not in _HARMLESS
    )


def changed_buffers(program: torch.export.ExportedProgram) -> list[str]:
    """The buffers that an exported program modifies, as attributes of the model."""
    signature = program.graph_signature
    found = list(signature.buffers_to_mutate.values())
    nodes = list(program.graph.nodes)
    owners = {
        storage: signature.inputs_to_buffers[n.name]
        for n in nodes
        if n.name in signature.inputs_to_buffers
        for storage in _storages(n)
    }
    for node in filter(is_in_place, nodes):
        written = zip(node.target._schema.arguments, node.args, strict=False)
        for argument, value in written:
            if argument.is_write and isinstance(value, Node):
                found.extend(owners[s] for s in _storages(value) if s in owners)
    return [f"self.{name}" for name in dict.fromkeys(found)]


def functional_form(op: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """The operator that returns what another one writes in its first argument.

    :param op: an operator in place
    :return: None if there is none

    >>> import torch
    >>> print(functional_form(torch.ops.aten.add_.Tensor))
    aten.add.Tensor
    """
    name = op._schema.name.split("::")[1]
    arguments = op._schema.arguments
    written = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    if op.namespace != "aten" or name in _RESIZED:
        return None
    if written != [arguments[0].name] or len(op._schema.returns) != 1:
        return None
    known = f"{_functional_name(name)}.{op._overloadname}"
    form_name, overload = _RENAMED.get(f"{name}.{op._overloadname}", known).split(".")
    form: Any = getattr(getattr(_ATEN, form_name, None), overload, None)
    if form is None or form._schema.is_mutable:
        return None
    same = [a.name for a in arguments] == [a.name for a in form._schema.arguments]
    return form if same else None


def _functional_name(name: str) -> str:
    """``add`` for ``add_``, ``__and__`` for ``__iand__``."""
    if name.endswith("__"):
        return name.replace("__i", "__", 1)
    return name.removesuffix("_")


def make_functional(graph: Graph, inputs_change: bool = True) -> dict[str, str]:
    """Rewrites the operators in place of a graph.

    :param graph: the graph, it is modified
    :param inputs_change: whether an input may be modified
    :return: names of outputs -> names of the nodes that hold their values
    :raises NotRewritten: an operator has no functional form, or a view cannot be taken again
    """
    return _Storages(graph, inputs_change).rewrite()


class _Storages:
    """The values of the tensors of a graph after the operators in place met so far.

    :param graph: the graph
    :param inputs_change: whether an input may be modified
    """

    def __init__(self, graph: Graph, inputs_change: bool) -> None:
        self.graph = graph
        self.inputs_change = inputs_change
        # view, or result of an operator in place -> the tensor it shares the storage of
        self.sources: dict[Node, Node] = {}
        # node -> its first argument before it was rewritten
        self.first: dict[Node, Node] = {}
        # the results of operators in place
        self.same: set[Node] = set()
        # tensors whose shape is not theirs any more -> the nodes they are now
        self.reshaped: dict[Node, Node] = {}
        # storage -> number of operators that modified it
        self.writes: dict[int, int] = {}
        self.inputs: set[int] = set()
        # node -> number of writes when it had this value
        self.values: dict[Node, tuple[int, Node | None]] = {}

    def rewrite(self) -> dict[str, str]:
        """Walks through the graph, see :func:`make_functional`."""
        renamed: dict[str, str] = {}
        for node in list(self.graph.nodes):
            if node.op == "placeholder":
                self.inputs.update(_storages(node))
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, Node):
                self.first[node] = first
            source = self._source(node)
            if source is not None:
                self.sources[node] = source
            with self.graph.inserting_before(node):
                if is_in_place(node):
                    self._write(node)
                    continue
                read = {n: self.value(n) for n in node.all_input_nodes}
            if any(n is not v for n, v in read.items()):
                node.args, node.kwargs = torch.fx.node.map_arg(
                    (node.args, node.kwargs), read.__getitem__
                )
            self.values[node] = self._count(node), node
            if node.op == "output":
                renamed = {n.name: v.name for n, v in read.items() if n is not v}
        return renamed

    def _source(self, node: Node) -> Node | None:
        """The tensor a node is a view of, or the one it modifies.

        :raises NotRewritten: the fake values of a view and its source have two storages
        """
        found = self.first.get(node)
        if node.target is operator.getitem and found is not None:
            found = self.first.get(found)
        if found is None or not isinstance(node.meta.get("val"), torch.Tensor):
            return None
        shared = _storages(found) == _storages(node)
        if not shared and (is_in_place(node) or viewed(node) is not None):
            raise NotRewritten(f"{node.name} does not share the storage of {found.name}")
        return found if shared else None

    def _count(self, node: Node) -> int:
        """The number of operators that have modified the storage of a tensor."""
        return max((self.writes.get(s, 0) for s in _storages(node)), default=0)

    def value(self, node: Node) -> Node:
        """The node that holds the content of a tensor at this place.

        :raises NotRewritten: none does
        """
        node = self.reshaped.get(node, node)
        if not self.writes:
            return node
        seen, value = self.values.get(node, (0, node))
        count = self._count(node)
        if seen < count:
            value = self._taken_again(node)
            self.values[node] = count, value
        if value is None:
            raise NotRewritten(f"{node.name} is read after one of its views was modified")
        return value

    def _taken_again(self, node: Node) -> Node:
        """A view of the new value of its source."""
        source = self.sources.get(node)
        if source is None or str(node.target) == _ABSOLUTE:
            raise NotRewritten(f"{node.name} is a view of nothing known")
        value = self.value(source)
        if node in self.same:
            return value
        if node.target is not operator.getitem:
            return self._with_source(node, value)
        pieces = node.args[0]
        assert isinstance(pieces, Node)
        return self._with_source(node, self._with_source(pieces, value))

    def _with_source(self, node: Node, source: Node) -> Node:
        """The same view of another tensor."""
        args, kwargs = (source, *node.args[1:]), dict(node.kwargs)
        made = self.graph.create_node(node.op, node.target, args, kwargs)
        made.meta = dict(node.meta)
        return made

    def _write(self, node: Node) -> None:
        """Makes an operator functional and gives new values to the sources of what it modifies."""
        assert isinstance(node.target, torch._ops.OpOverload)
        form, written = functional_form(node.target), node.args[0] if node.args else None
        storages = _storages(written) if isinstance(written, Node) else []
        if form is None or not isinstance(written, Node) or len(storages) != 1:
            raise NotRewritten(f"{node.target} has no functional form")
        if storages[0] in self.inputs and not self.inputs_change:
            raise NotRewritten(f"{node.name} modifies an input")
        if torch.Tag.inplace_view in node.target.tags:
            self._reshape(node, form, written)
            return
        if any(s in storages for n in self.reshaped for s in _storages(n)):
            raise NotRewritten(f"{node.name} modifies a tensor whose shape was changed")
        chain = [written]
        while chain[-1] in self.sources:
            chain.append(self.sources[chain[-1]])
        before = [self.value(n) for n in chain]
        node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.value)
        casts = node.target._schema.name.split("::")[1] in _CASTING
        node.target = form
        if not casts:
            _keep_type(self.graph, node, written.meta["val"].dtype)
        self.same.add(node)
        apart = self._apart(chain)
        count = self.writes[storages[0]] = self.writes.get(storages[0], 0) + 1
        self.values.update((n, (count, v)) for n, v in apart.items())
        self.values[node] = count, node
        value: Node | None = node
        with self.graph.inserting_before(node.next):
            for view, source in itertools.zip_longest(chain, before[1:]):
                self.values[view] = count, value
                if value is not None and source is not None and view not in self.same:
                    value = inverse(self.graph, view, source, value)

    def _apart(self, chain: list[Node]) -> dict[Node, Node | None]:
        """The known values of what does not change when a piece of a tensor does: other pieces."""
        lists = {n.args[0]: n for n in chain if n.target is operator.getitem}
        if not lists:
            return {}
        found: dict[Node, Node | None] = {}
        others: set[Node] = set()
        for node, source in self.sources.items():
            piece = node.args[0] if node.target is operator.getitem else None
            if (piece in lists and node is not lists[piece]) or source in others:
                others.add(node)
                seen, value = self.values.get(node, (0, node))
                if seen == self._count(node):
                    found[node] = value
        return found

    def _reshape(self, node: Node, form: torch._ops.OpOverload, written: Node) -> None:
        """Makes an operator that changes the shape of a tensor a view, which takes its place."""
        node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.value)
        node.target = form
        self.values[node] = self._count(node), node
        self.reshaped[written] = node


def _storages(node: Node) -> list[int]:
    """The storages of the tensors of a node."""
    leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    tensors = [v for v in leaves if isinstance(v, torch.Tensor)]
    found = list[int]()
    for value in tensors:
        with contextlib.suppress(NotImplementedError):  # a tensor of vmap has none
            found.append(value.untyped_storage()._cdata)
    return list(dict.fromkeys(found))


def _keep_type(graph: Graph, node: Node, dtype: torch.dtype) -> None:
    """Casts the result of a functional form to the type of the tensor that was modified."""
    values = [n.meta.get("val") for n in node.all_input_nodes]
    operands = [v for v in values if isinstance(v, torch.Tensor)]
    assert isinstance(node.target, torch._ops.OpOverload)
    if torch.Tag.pointwise not in node.target.tags or all(v.dtype == dtype for v in operands):
        if _is_comparison(node.target) and dtype != torch.bool:
            raise NotRewritten(f"{node.name} writes booleans in {dtype}")
        return
    if len(operands) != 2 or _is_comparison(node.target):
        raise NotRewritten(f"{node.name} has operands of several types")
    promoted = torch.result_type(operands[0], operands[1])
    if promoted == dtype:
        return
    made = graph.call_function(node.target, node.args, dict(node.kwargs))
    made.meta = {**node.meta, "val": node.meta["val"].to(promoted)}
    node.target, node.args, node.kwargs = _ATEN.to.dtype, (made, dtype), {}


def _is_comparison(op: torch._ops.OpOverload) -> bool:
    name = op._schema.name.split("::")[1]
    return name.startswith("logical_") or name in ("eq", "ne", "lt", "le", "gt", "ge")
