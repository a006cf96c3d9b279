"""Queries a pattern makes about the graph. None changes it, except to add constants and names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from onnx import AttributeProto, NodeProto

from xbuilder.dims import Constraints, Shape, is_static, same_shape
from xbuilder.errors import FactError, OptionError, UnknownAttributeError
from xbuilder.facts.facts import FactTable, Value
from xbuilder.graph.graph import Graph
from xbuilder.nodes.attributes import attribute_value, find_attribute
from xbuilder.nodes.making import make_node_proto
from xbuilder.nodes.record import NodeRecord
from xbuilder.runtimes.processors import processors_of
from xbuilder.store.graph_store import GraphStore
from xbuilder.support.names import result_prefix
from xbuilder.tensors.bits import is_known_type

T = TypeVar("T")


def _known_value(node: NodeProto, att: AttributeProto) -> Any:
    """Python value of an attribute.

    :raises UnknownAttributeError: it refers to an attribute of the function holding the node, or is
        a tensor of a type onnx does not know; the engine takes it as a refusal
    """
    if att.ref_attr_name:
        raise UnknownAttributeError(
            f"attribute {att.name!r} of {node.op_type} refers to {att.ref_attr_name!r}"
        )
    if att.type == AttributeProto.TENSOR and not is_known_type(att.t.data_type):
        raise UnknownAttributeError(f"attribute {att.name!r} of {node.op_type} has an unknown type")
    return attribute_value(att)


def is_one_of(record: NodeRecord, op_types: tuple[str, ...]) -> bool:
    """Whether a node is one of some operators: `"Add"` of the main domain, `"domain::Operator"` of
    another."""
    if not record.domain:
        return record.op_type in op_types
    return f"{record.domain}::{record.op_type}" in op_types


def until_change(g: GraphQueries, kind: type[T]) -> T:
    """The analysis of a class that patterns share until the graph changes.

    :param g: queries on the graph
    :param kind: the class, called without argument for the graph as it is now
    """
    state = g.store, g.store.generation
    known: tuple[Any, T] | None = g.shared.get(kind)
    if known is None or known[0] != state:
        known = g.shared[kind] = state, kind()
    return known[1]


class GraphQueries:
    """Queries about one graph; each costs O(1) unless it says otherwise.

    A fact is asked in two forms: `g.shape_or_none(name)` is None if it is not known,
    `g.shape_of(name)` refuses the rewrite, see :class:`.RewriteContext`. It is the same for
    `rank`, `type`, `constant`, `producer` and `reader`.
    """

    facts: FactTable
    graph: Graph
    store: GraphStore
    processor: str
    #: analyses of this graph that patterns share, by class
    shared: dict[type, Any]

    # -- neighbours

    def producer_or_none(self, name: str, *op_types: str) -> NodeProto | None:
        """The node producing a result, if it is one of *op_types*; None otherwise, for an input and
        a constant too. The rewrite does not visit it: it stays, unlike a node of
        :meth:`.RewriteContext.before_or_none`.

        :param name: the result
        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        """
        record = self.store.producers.get(name)
        if record is None or (op_types and not is_one_of(record, op_types)):
            return None
        return self.store.proto(record) if record.stale else record._proto

    def _producer_record(self, name: str, op_types: tuple[str, ...]) -> NodeRecord | None:
        record = self.store.producers.get(name)
        if record is None:
            return None
        if op_types and (record.domain or record.op_type not in op_types):
            return record if record.domain and is_one_of(record, op_types) else None
        return record

    def reader_or_none(self, name: str, *op_types: str) -> NodeProto | None:
        """The only node reading a result, if it is one of *op_types* and the result has no other
        use; None otherwise. The rewrite does not visit it, unlike a node of
        :meth:`.RewriteContext.after_or_none`.

        :param name: the result
        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        """
        record = self._reader_record(name, op_types)
        return None if record is None else self.store.proto(record)

    def _reader_record(self, name: str, op_types: tuple[str, ...]) -> NodeRecord | None:
        readers = self.store.readers(name)
        if len(readers) != 1 or self.store.is_used_more_than_once(name):
            return None
        record = next(iter(readers))
        if name in record.captured or (op_types and not is_one_of(record, op_types)):
            return None
        return record

    def either_order(self, node: NodeProto) -> tuple[tuple[str, str], tuple[str, str]]:
        """The operands of a commutative node of two operands, in both orders.

        ::

            for x, bias in g.either_order(add):
                if g.is_constant(bias):
                    ...
        """
        a, b = self.record(node).inputs
        return (a, b), (b, a)

    def next_nodes(self, name: str) -> list[NodeProto]:
        """The nodes reading a result, in graph order, those that read it from a subgraph
        included."""
        readers = self.store.readers(name)
        rows = sorted(readers, key=lambda r: r.order) if len(readers) > 1 else readers
        return [self.store.proto(r) for r in rows]

    def next_node(self, name: str) -> NodeProto | None:
        """The only node reading a result, None if there is none or several."""
        readers = self.store.readers(name)
        return self.store.proto(next(iter(readers))) if len(readers) == 1 else None

    def is_used(self, name: str) -> bool:
        """Whether a node reads a result or it is an output."""
        return self.store.is_used(name)

    def is_used_more_than_once(self, name: str) -> bool:
        """Whether removing one use leaves others; outputs and subgraphs count."""
        return self.store.is_used_more_than_once(name)

    def is_used_only_by(self, name: str, *nodes: NodeProto) -> bool:
        """Whether a result is read by these nodes only, and is not an output."""
        if name in self.store.outputs or self.is_used_by_subgraph(name):
            return False
        allowed = {id(self.store.record_of(n)) for n in nodes}
        return all(id(r) in allowed for r in self.store.readers(name))

    def is_used_by_subgraph(self, name: str) -> bool:
        """Whether a subgraph reads a result of this graph."""
        return name in self.store.captures

    def is_output(self, name: str) -> bool:
        """Whether a result is an output of the graph."""
        return name in self.store.outputs

    def record(self, node: NodeProto) -> NodeRecord:
        """The record of a node of the graph.

        :raises OptionError: the node is not in the graph
        """
        record = self.store.index.get(id(node))
        if record is None:
            raise OptionError(f"Node {node.op_type} ({node.name!r}) is not a node of this graph.")
        return record

    # -- facts

    def type_or_none(self, name: str) -> int | None:
        """Element type of a result, None if it is not known."""
        return self.facts[name].type or None

    def shape_or_none(self, name: str) -> Shape | None:
        """Shape of a result, None if it is not known."""
        return self.facts[name].shape

    def rank_or_none(self, name: str) -> int | None:
        """Rank of a result, None if it is not known."""
        facts = self.facts[name]
        return facts.rank if facts.shape is None else len(facts.shape)

    def value_as_shape(self, name: str) -> Value:
        """Known content of a shape-like result: a tuple, an int, an expression; None if unknown."""
        return self.facts[name].value

    def get_shape_renamed(self, name: str) -> Shape:
        """Shape where a dimension proven equal to one the user named takes this name."""
        constraints = self.facts.constraints
        return tuple(constraints.canonical(d) for d in self.graph.get_shape(name))

    def same_shape(self, a: str, b: str) -> bool:
        """Whether two results are proven to have the same shape."""
        sa, sb = self.facts[a].shape, self.facts[b].shape
        if sa is None or sb is None:
            return False
        return sa == sb or same_shape(sa, sb, self.facts.constraints) is True

    def get_registered_constraints(self) -> Constraints:
        """Known constraints between dimensions."""
        return self.facts.constraints

    # -- constants

    def constant_or_none(self, name: str) -> np.ndarray | None:
        """Value of a constant, None if the result is not constant or cannot be computed."""
        constants = self.graph.constants
        return constants.value(name) if name and constants.is_constant(name) else None

    def is_constant(self, name: str) -> bool:
        """Whether a result is the same whatever the inputs are."""
        return bool(name) and self.graph.constants.is_constant(name)

    def get_constant_shape(self, name: str, exc: bool = False) -> tuple[int, ...] | None:
        """Shape of a constant, None if the result is not constant. Nothing is computed.

        :param name: the result
        :param exc: raises an exception instead of returning None
        :raises FactError: *exc* is True and the result is not constant
        """
        is_constant = bool(name) and self.graph.constants.is_constant(name)
        shape = self.facts[name].shape if is_constant else None
        if shape is not None and is_static(shape):
            return shape
        if exc:
            raise FactError(f"{name!r} is no constant whose shape is known, see is_constant.")
        return None

    # -- attributes

    def get_attribute_with_default(self, node: NodeProto, name: str, default_value: Any) -> Any:
        """Python value of an attribute, *default_value* if the node lacks it."""
        att = find_attribute(node, name)
        return default_value if att is None else _known_value(node, att)

    def get_attributes_with_default(self, node: NodeProto, **defaults: Any) -> dict[str, Any]:
        """Python values of several attributes; a missing one whose default is None is left out."""
        found = {a.name: _known_value(node, a) for a in node.attribute[:] if a.name in defaults}
        rows = {k: found.get(k, v) for k, v in defaults.items()}
        return {k: v for k, v in rows.items() if v is not None}

    def get_constant_or_attribute(
        self,
        node: NodeProto,
        attribute: str,
        input_index: int,
        cvt: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Value given by an attribute in old opsets, by a constant input in new ones.

        :return: None if there is neither, or if the input is not constant; use `is_constant` before
        """
        att = find_attribute(node, attribute)
        value: Any = None
        if att is not None:
            value = _known_value(node, att)
        elif input_index < len(node.input) and node.input[input_index]:
            value = self.constant_or_none(node.input[input_index])
        return value if value is None or cvt is None else cvt(value)

    # -- making

    def unique_name(self, prefix: str) -> str:
        """Reserves an unused name."""
        return self.graph.unique_name(prefix)

    def make_initializer(self, name: str, value: Any, source: str = "", **kwargs: Any) -> str:
        """Adds a constant to the graph; an equal small one is reused. Returns its name."""
        if name and name in self.graph.names:
            kwargs.setdefault("give_unique", True)
        return self.graph.make_initializer(name, value, source=source, **kwargs)

    def make_node(
        self,
        op_type: str,
        inputs: str | Sequence[str],
        outputs: int | str | Sequence[str] = 1,
        domain: str = "",
        attributes: Sequence[AttributeProto] | None = None,
        name: str | None = None,
        doc_string: str = "",
        **kwargs: Any,
    ) -> NodeProto:
        """Makes a node which is *not* added to the graph: `apply` returns it.

        :param op_type: operator type
        :param inputs: names
        :param outputs: names, or how many names to generate
        :param domain: domain, registered when the match is applied
        :param attributes: attributes already made
        :param name: name of the node, made unique
        :param doc_string: documentation
        :param kwargs: attributes as python values
        """
        if isinstance(inputs, str):
            inputs = [inputs]
        if isinstance(outputs, int):
            prefix = result_prefix(op_type, inputs)
            outputs = [self.unique_name(prefix) for _ in range(outputs)]
        elif isinstance(outputs, str):
            outputs = [outputs]
        if doc_string:
            kwargs["doc_string"] = doc_string
        # an Identity is removed right after, it needs no name
        label = "" if op_type == "Identity" else self.graph.unique_node_name(name or op_type)
        return make_node_proto(op_type, inputs, outputs, domain, label, attributes, kwargs)

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""
        return self.graph.main_opset

    @property
    def opsets(self) -> dict[str, int]:
        """Version of every domain."""
        return self.graph.opsets

    def has_processor(self, processor: str) -> bool:
        """Whether the optimized model is meant for a processor (`CPU`, `CUDA`)."""
        return processor in processors_of(self.processor)
