"""Queries that users of other optimizers know and that no rewrite of the project uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from onnx import AttributeProto, NodeProto

from xbuilder.builder.graph_builder import GraphBuilder
from xbuilder.dims import Shape
from xbuilder.errors import OptionError
from xbuilder.facts.fact_reading import FactReading
from xbuilder.nodes.attributes import find_attribute, required_attribute
from xbuilder.operators.op_traits import AXES_INPUT_SINCE
from xbuilder.options import FunctionOptions
from xbuilder.protos.pretty import pretty_node

from .patterns import PatternOptimization
from .queries import GraphQueries
from .roots import Sweep


class SeedQueries(GraphQueries, FactReading):
    """The queries of every `g`: those of :class:`.GraphQueries`, which a new rewrite uses, and
    other names of the same facts, which existing patterns use."""

    @property
    def builder(self) -> GraphBuilder:
        """The builder of the graph, for questions no query answers."""
        if GraphBuilder not in self.shared:
            self.shared[GraphBuilder] = GraphBuilder.of(self.graph)
        return cast(GraphBuilder, self.shared[GraphBuilder])

    def node_before(self, name: str) -> NodeProto | None:
        """The node producing a result; None for an input, an initializer or an outer result."""
        return self.producer_or_none(name)

    def get_position(self, node: NodeProto) -> int:
        """A number that increases with the position of the node in the graph."""
        return self.record(node).order

    def try_infer_type(self, name: str, exc: bool = False) -> int:
        """Element type; if it is unknown, 0 or, when *exc* is True, an exception."""
        return self.get_type(name) if exc else self.facts[name].type

    def try_infer_shape(self, name: str, exc: bool = False) -> Shape | None:
        """Shape; if it is unknown, None or, when *exc* is True, an exception."""
        return self.get_shape(name) if exc else self.facts[name].shape

    def get_computed_constant(self, name: str, statistics: Sequence[str] | None = None) -> Any:
        """Value of a constant, None if the result is not constant or cannot be computed.

        :param name: the result
        :param statistics: `["min", "max"]` returns these instead of the array
        :raises OptionError: another statistic is requested
        """
        value = self.constant_or_none(name)
        if value is None or statistics is None:
            return value
        known = {"min": np.min, "max": np.max}
        unknown = [s for s in statistics if s not in known]
        if unknown:
            raise OptionError(f"Unknown statistics {unknown}, known: {sorted(known)}.")
        return [known[s](value) for s in statistics] if value.size else None

    def is_constant_scalar(self, name: str, value: Any = None, broadcast: bool = False) -> bool:
        """Whether a result is a constant of one element.

        :param name: the result
        :param value: the value it must have
        :param broadcast: accepts any rank (every dimension is 1), otherwise rank 0 or 1
        """
        shape = self.get_constant_shape(name)
        if shape is None or any(d != 1 for d in shape) or (len(shape) > 1 and not broadcast):
            return False
        if value is None:
            return True
        found = self.constant_or_none(name)
        return found is not None and bool((found == value).all())

    def get_constant_scalar(self, name: str, broadcast: bool = False) -> Any:
        """Python value of a constant of one element.

        :raises OptionError: it is not one
        """
        if not self.is_constant_scalar(name, broadcast=broadcast):
            raise OptionError(f"{name!r} is not a scalar constant.")
        value = self.get_computed_constant(name)
        if value is None:
            raise OptionError(f"The value of {name!r} cannot be computed.")
        item = value.ravel()[0]
        return item.item() if hasattr(item, "item") and value.dtype.kind in "biuf" else float(item)

    def get_attribute(
        self, node: NodeProto, name: str = "", exc: bool = True, *, att_name: str = ""
    ) -> AttributeProto | None:
        """Attribute of a node (AttributeProto).

        :param node: a node
        :param name: name of the attribute
        :param exc: raises an exception if there is none
        :param att_name: another keyword for *name*
        :raises OptionError: there is none and *exc* is True
        """
        return (required_attribute if exc else find_attribute)(node, name or att_name)

    def get_axis(self, node: NodeProto, default_axis: int | None = None) -> int:
        """Attribute axis.

        :raises OptionError: there is none, and no default
        """
        axis = self.get_attribute_with_default(node, "axis", default_axis)
        if axis is None:
            raise OptionError(f"Node {node.op_type} has no attribute axis and there is no default.")
        return int(axis)

    def make_node_check_opset(
        self,
        op_type: str,
        inputs: str | Sequence[str],
        outputs: int | str | Sequence[str] = 1,
        domain: str = "",
        axes: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> NodeProto:
        """Same as :meth:`make_node`, for operators whose axes moved from an attribute to an input.

        :param op_type: operator type
        :param inputs: names
        :param outputs: names, or how many names to generate
        :param domain: domain
        :param axes: the axes, written as the opset of the graph requires
        """
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        if axes is None:
            return self.make_node(op_type, inputs, outputs, domain, **kwargs)
        if self.main_opset < AXES_INPUT_SINCE.get(op_type, 0):
            return self.make_node(op_type, inputs, outputs, domain, axes=list(axes), **kwargs)
        name = self.make_initializer("", np.array(axes, dtype=np.int64))
        return self.make_node(op_type, [*inputs, name], outputs, domain, **kwargs)


class EngineQueries(SeedQueries):
    """The names that only the `g` of `match` and `apply` has, the engine. A function of a rewrite
    has no use for them."""

    def is_input(self, name: str) -> bool:
        """Whether a name is an input of the graph. Cost: O(number of inputs)."""
        return name in self.graph.input_names

    def iter_nodes(self) -> Iterator[NodeProto]:
        """Nodes in graph order. Cost: O(N), a pattern should declare roots instead."""
        for record in list(self.store.nodes):
            yield self.store.proto(record)

    def iter_roots(self, pattern: PatternOptimization) -> Iterator[NodeProto]:
        """Nodes whose type is a root of a pattern, in graph order."""
        for record in list(Sweep(self.store).of(pattern.roots)):
            yield self.store.proto(record)

    def has_local_function(self, name: str, domain: str = "") -> bool:
        """Whether a local function exists, see
        :meth:`xbuilder.builder.graph_builder_names.BuilderNames.has_local_function`."""
        return self.builder.has_local_function(name, domain)

    def make_local_function(
        self, builder: GraphBuilder, function_options: FunctionOptions, optimize: bool = False
    ) -> tuple[list[str], tuple[str, str]]:
        """Turns another builder into a local function that new nodes may call, see
        :meth:`xbuilder.GraphBuilder.make_local_function`. Only `apply` does it: matching changes
        nothing."""
        return self.builder.make_local_function(builder, function_options, optimize)

    def pretty_node(self, node: NodeProto | None, limit: int = 80) -> str:
        """A node on one line, for messages.

        :param node: a node, or None
        :param limit: number of characters from which the text is cut
        """
        text = "None" if node is None else pretty_node(node)
        return text if len(text) <= limit else f"{text[: limit - 3]}..."


class NodeFactory:
    """`g.op.Transpose(x, perm=[1, 0], outputs=["y"])` makes a node for `apply` to return.

    :param queries: the optimizer
    """

    def __init__(self, queries: GraphQueries):
        self._queries = queries

    def __getattr__(self, op_type: str) -> Callable[..., NodeProto]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)

        def make(*inputs: Any, outputs: Any = 1, **kwargs: Any) -> NodeProto:
            names = [
                ""
                if i is None
                else (i if isinstance(i, str) else self._queries.make_initializer("", i))
                for i in inputs
            ]
            return self._queries.make_node(op_type, names, outputs, **kwargs)

        return make
