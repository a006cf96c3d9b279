"""`RewriteContext`, the `g` of a rewrite: queries, refusals and new operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
import onnx.helper as oh
from onnx import NodeProto

from xbuilder.dims import Shape, is_static
from xbuilder.nodes.record import NodeRecord

from .deduction import Refusal
from .outlining import INTERMEDIATE, InlinedBack, body_of, function_of
from .queries import GraphQueries, is_one_of
from .right_side import NewNode, NewNodeFactory, NewResult, Operand, Replacement
from .seed_queries import SeedQueries

T = TypeVar("T")
#: a constant with more elements is computed by the model instead
_SMALL = 64
#: everything a rewrite may return
RewriteResult: TypeAlias = (
    "Replacement | Sequence[Replacement | None] | Mapping[str, Replacement] | Refusal"
)


class RewriteContext(SeedQueries):
    """The `g` of a rewrite: queries, refusals and new operators. It remembers the nodes it
    returned.

    Every query of :class:`GraphQueries` is available. Those of this class refuse the rewrite by
    themselves when there is no answer, so the author writes the conditions in a straight line.

    :param queries: the optimizer
    :param even_slower: the pattern also applies where it was measured slower
    """

    def __init__(self, queries: GraphQueries, even_slower: bool = False):
        self.even_slower = even_slower
        self.graph = queries.graph
        self.store = queries.store
        self.facts = queries.facts
        self.processor = queries.processor
        self.shared = queries.shared
        self.op = NewNodeFactory(queries.main_opset)
        #: what each pattern calls on its roots, by `id`, kept from one iteration to the next
        self.looks: dict[int, Any] = {}
        #: nodes the rewrite visited, its root first
        self.visited: list[NodeRecord] = []

    # -- refusing

    def refuse(self, reason: str) -> NoReturn:
        """Refuses the rewrite: it does not apply.

        :param reason: why not, shown to whoever asks
        """
        raise Refusal(reason)

    def no(self, reason: str) -> Refusal:
        """A refusal to return. It costs less than the exception of :meth:`refuse`: use it for the
        condition most roots fail.

        ::

            if before != after:
                return g.no("the shape changes")
        """
        return Refusal(reason)

    def require(self, condition: Any, reason: str) -> None:
        """Refuses the rewrite unless a condition holds."""
        if not condition:
            raise Refusal(reason)

    def known(self, value: T | None, reason: str) -> T:
        """The value itself, if it is not None; refuses the rewrite otherwise."""
        if value is None:
            raise Refusal(reason)
        return value

    def require_sole_use(self, reason: str, *names: str) -> None:
        """Refuses the rewrite if a result has several uses, as `is_used_more_than_once` says.

        :param reason: why not
        :param names: the results
        """
        if any(map(self.store.is_used_more_than_once, names)):
            raise Refusal(reason)

    # -- neighbours

    def inputs(self, node: NodeProto) -> tuple[str, ...]:
        """Names of the inputs of a node, read faster than `node.input`."""
        return (self.store.index.get(id(node)) or self.record(node)).inputs

    def look_at(self, *nodes: NodeProto | None) -> None:
        """Adds to the rewrite nodes found in another way. Those that nothing reads after the
        rewrite are removed."""
        for node in nodes:
            if node is not None:
                self.visited.append(self.record(node))

    def before_or_none(
        self, source: NodeProto | str, *op_types: str, index: int = 0
    ) -> NodeProto | None:
        """The node producing an input of a node, or a result; None unless it is one of *op_types*.

        :param source: a node, or the name of a result
        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        :param index: which input, if *source* is a node
        """
        record = self._producer(source, op_types, index)
        if record is None:
            return None
        return self.store.proto(record) if record.stale else record._proto

    def before(self, source: NodeProto | str, *op_types: str, index: int = 0) -> NodeProto:
        """Same as :meth:`before_or_none`, but refuses the rewrite if there is none."""
        record = self._producer(source, op_types, index)
        if record is None:
            raise Refusal("no {} before", op_types)
        return self.store.proto(record) if record.stale else record._proto

    def _producer(
        self, source: NodeProto | str, op_types: tuple[str, ...], index: int
    ) -> NodeRecord | None:
        if isinstance(source, str):
            name = source
        else:
            inputs = (self.store.index.get(id(source)) or self.record(source)).inputs
            name = inputs[index] if index < len(inputs) else ""
        record = self._producer_record(name, op_types)
        if record is not None:
            self.visited.append(record)
        return record

    def before_each(self, node: NodeProto, *op_types: str) -> list[NodeProto | None]:
        """For each input of a node, the node producing it; None unless it is one of *op_types*."""
        store = self.store
        producers, visited = store.producers, self.visited
        found: list[NodeProto | None] = []
        for name in (store.index.get(id(node)) or self.record(node)).inputs:
            record = producers.get(name)
            wanted = record is not None and (
                not op_types
                or (is_one_of(record, op_types) if record.domain else record.op_type in op_types)
            )
            if record is None or not wanted:
                found.append(None)
                continue
            visited.append(record)
            found.append(store.proto(record) if record.stale else record._proto)
        return found

    def producer_of(self, name: str, *op_types: str, reason: str = "") -> NodeProto:
        """Same as :meth:`producer_or_none`, but refuses the rewrite if there is none. The node is
        not visited: it stays, unlike that of :meth:`before`."""
        node = self.producer_or_none(name, *op_types)
        if node is None:
            raise Refusal(reason) if reason else Refusal("no {} before", op_types)
        return node

    def reader_of(self, name: str, *op_types: str, reason: str = "") -> NodeProto:
        """Same as :meth:`reader_or_none`, but refuses the rewrite if there is none. The node is
        not visited, unlike that of :meth:`after`."""
        node = self.reader_or_none(name, *op_types)
        if node is None:
            raise Refusal(reason) if reason else Refusal("{} is not the only use", op_types)
        return node

    def after_or_none(self, source: NodeProto | str, *op_types: str) -> NodeProto | None:
        """The only node reading a result, if it is one of *op_types* and the result has no other
        use; None otherwise.

        :param source: a node, for its first result, or the name of a result
        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        """
        name = source if isinstance(source, str) else self.record(source).outputs[0]
        record = self._reader_record(name, op_types)
        if record is None:
            return None
        self.visited.append(record)
        return self.store.proto(record)

    def after(self, source: NodeProto | str, *op_types: str) -> NodeProto:
        """Same as :meth:`after_or_none`, but refuses the rewrite if there is none."""
        node = self.after_or_none(source, *op_types)
        if node is None:
            raise Refusal("{} is not the only use", op_types)
        return node

    # -- facts

    def type_of(self, name: str, reason: str = "the type is not known") -> int:
        """Element type of a result; refuses if it is not known."""
        found = self.facts[name].type
        if not found:
            raise Refusal(reason)
        return found

    def shape_of(self, name: str, reason: str = "the shape is not known") -> Shape:
        """Shape of a result; refuses if it is not known."""
        shape = self.facts[name].shape
        if shape is None:
            raise Refusal(reason)
        return shape

    def static_shape(self, name: str, reason: str = "a shape is not static") -> tuple[int, ...]:
        """Shape of a result; refuses unless every dimension is an integer."""
        shape = self.facts[name].shape
        if shape is None or not is_static(shape):
            raise Refusal(reason)
        return shape

    def rank_of(self, name: str, reason: str = "the rank is not known") -> int:
        """Rank of a result; refuses if it is not known."""
        return self.known(self.rank_or_none(name), reason)

    def constant_of(self, name: str, reason: str = "an operand is not constant") -> np.ndarray:
        """Value of a constant; refuses if the result is not constant or cannot be computed."""
        return self.known(self.constant_or_none(name), reason)

    # -- writing

    def scalar(self, value: Any, like: str) -> np.ndarray:
        """A rank-0 constant of the same type as a result.

        :param value: a number
        :param like: the result
        """
        return np.array(value, dtype=oh.tensor_dtype_to_np_dtype(self.type_of(like)))

    def filled(self, value: Any, like: str) -> np.ndarray | NewNode:
        """A tensor filled with one number, of the type and shape of a result. It is a constant if
        it is small, an Expand otherwise.

        :param value: a number
        :param like: the result
        """
        number, shape = self.scalar(value, like), self.facts[like].shape
        if shape is not None and is_static(shape) and prod(shape) <= _SMALL:
            return np.full(shape, number)
        return self.op.Expand(number, self.op.Shape(like))

    def like(self, node: NodeProto, *inputs: Operand, **attributes: Any) -> NewNode:
        """The same operator on other inputs, with the same number of results.

        :param node: a node of the graph, its attributes are kept
        :param inputs: the new inputs, all of them
        :param attributes: attributes to change, axes as in `g.op`; None removes one
        """
        make = getattr(self.op, node.op_type)
        kept: dict[str, Any] = {a.name: a for a in node.attribute if a.name not in attributes}
        results = node.output[:]
        missing = [i for i, name in enumerate(results) if not name]
        kept.update(domain=node.domain, outputs=len(results), missing=missing)
        new: NewNode = make(*inputs, **kept, **attributes)
        new.overload = node.overload
        return new

    def rewired(self, node: NodeProto, names: Mapping[str, Operand]) -> NewNode:
        """The same operator, with some inputs replaced.

        :param node: a node of the graph, its attributes are kept
        :param names: replacement of each result it reads
        """
        return self.like(node, *(names.get(name, name) for name in node.input))

    def outline(
        self, name: str, inputs: Sequence[str], results: Sequence[str], **attributes: Any
    ) -> dict[str, NewResult]:
        """Outlines the visited nodes between some results: they become a call to a local function
        of domain `intermediate`. A rewrite rooted at this function finishes the work. The engine
        inlines back the calls no rewrite takes; then this method refuses to outline them again.

        :param name: name of the function
        :param inputs: first inputs of the call; anything else its nodes read comes after
        :param results: outputs of the call
        :param attributes: values for the next rewrite, the body does not read them
        :return: the replacements, for the rewrite to return

        ::

            return g.outline("HalfRotary", [x, cos, sin], [add.output[0]], width=8)
        """
        if results[0] in self.graph.notes[InlinedBack]:
            raise Refusal("no other rewrite takes the function")
        body = body_of(self.store, self.visited, inputs, results)
        function, others = function_of(self.graph, name, body, inputs, list(results))
        operands = [*inputs, *others]
        call = NewNode(name, operands, attributes, INTERMEDIATE, len(results), function=function)
        return dict(zip(results, call, strict=True))


class _UngatedContext(RewriteContext):
    """The one of patterns that also apply where they were measured slower."""


def context_of(queries: GraphQueries, even_slower: bool = False) -> RewriteContext:
    """The context of an optimizer, created once, and another one for the patterns that also apply
    where they were measured slower."""
    kind = _UngatedContext if even_slower else RewriteContext
    found: RewriteContext | None = queries.shared.get(kind)
    if found is None:
        found = queries.shared[kind] = kind(queries, even_slower)
    return found
