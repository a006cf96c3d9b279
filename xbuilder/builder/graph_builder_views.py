"""Part of GraphBuilder: read-only views of its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from onnx import FunctionProto, NodeProto, ValueInfoProto

from ..constants.table import ConstantTable
from ..graph.graph import Graph
from ..nested.bodies import shadowing_names
from ..nodes.attributes import find_attribute, required_attribute
from ..nodes.functions import FunctionKey
from ..nodes.value_infos import IOSpec
from ..options import InferShapesOptions
from ..protos.exporting import export_io
from ..protos.pretty import pretty_value_info
from ..store.graph_store import GraphStore
from ..support.argument_types import check_type
from ..support.names import NameAllocator
from ..support.notebook import html_table
from ..tensors.sizes import initializer_bytes
from .optimization_options import OptimizationOptions, resolved_options

#: types of operators a notebook shows
_MOST_TYPES = 12


class BuilderViews:
    """The read-only views of :class:`xbuilder.GraphBuilder`: nodes, inputs, outputs, constants,
    options."""

    graph: Graph

    def __repr__(self) -> str:
        names = [", ".join(found) for found in (self.input_names, self.output_names)]
        return f"GraphBuilder(({names[0]}) -> ({names[1]}), {len(self.graph.store)} nodes)"

    def _repr_html_(self) -> str:
        """The signature and the number of nodes by operator, for a notebook."""
        counts = Counter(record.op_type for record in self.graph.store.nodes)
        weights = self.graph.constants.initializers
        size = sum(map(initializer_bytes, weights.values()))
        rows: list[tuple[str, str]] = [("input", pretty_value_info(i)) for i in self.inputs]
        rows += [("output", pretty_value_info(o)) for o in self.outputs]
        rows += [(op_type, f"{count:,}") for op_type, count in counts.most_common(_MOST_TYPES)]
        if len(counts) > _MOST_TYPES:
            rows.append(("other types", f"{len(counts) - _MOST_TYPES}"))
        rows.append(("initializers", f"{len(weights):,}, {size:,} bytes"))
        nodes = sum(counts.values())
        return html_table(f"GraphBuilder, {nodes:,} nodes", ["", ""], rows)

    # -- content

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes, in topological order; do not change them."""
        return self.graph.nodes

    @property
    def inputs(self) -> list[ValueInfoProto]:
        """The inputs."""
        return [export_io(self.graph, spec) for spec in self.graph.input_specs]

    @property
    def outputs(self) -> list[ValueInfoProto]:
        """The outputs."""
        return [export_io(self.graph, spec) for spec in self.graph.output_specs]

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return self.graph.input_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self.graph.output_names

    @property
    def input_specs(self) -> list[IOSpec]:
        """The inputs as they were declared."""
        return self.graph.input_specs

    @property
    def output_specs(self) -> list[IOSpec]:
        """The outputs as they were declared."""
        return self.graph.output_specs

    @property
    def initializers_dict(self) -> Mapping[str, Any]:
        """Initializers by name, as the user gave them (array or TensorProto)."""
        return dict(self.graph.constants.initializers)

    @property
    def constants_(self) -> Mapping[str, NodeProto | None]:
        """Names of constant results with the node computing them, None for an initializer."""
        table, store = self.graph.constants, self.graph.store
        rows: dict[str, NodeProto | None] = dict.fromkeys(
            n for n in table.initializers if n not in table.overridable
        )
        rows.update((n, store.proto(r)) for n, r in table.computed.items())
        return rows

    @property
    def dynamic_objects(self) -> Mapping[str, str]:
        """Symbols used by the inputs, with the first place they appear."""
        return self.graph.input_symbols

    @property
    def sources(self) -> Mapping[str, str]:
        """Origins of the initializers."""
        return self.graph.constants.sources

    @property
    def origin(self) -> Any:
        """The ModelProto, GraphProto or FunctionProto the graph was read from."""
        return self.graph.origin

    def get_attribute(
        self, node: NodeProto, name: str = "", exc: bool = True, *, att_name: str = ""
    ) -> Any:
        """An attribute of a node as an AttributeProto.

        :param node: a node
        :param name: name of the attribute
        :param exc: raises an exception if there is none
        :param att_name: another keyword for *name*
        :raises OptionError: there is none and *exc* is True, or *node* is not a node
        """
        check_type("node", node, NodeProto)
        return (required_attribute if exc else find_attribute)(node, name or att_name)

    def get_attribute_value(self, node: NodeProto, name: str, default: Any = None) -> Any:
        """The python value of an attribute, a default if the node does not have it."""
        check_type("node", node, NodeProto)
        return self.graph.get_attribute_value(node, name, default)

    def get_attribute_with_default(self, node: NodeProto, name: str, default_value: Any) -> Any:
        """:meth:`get_attribute_value`, as the patterns ask for it."""
        return self.get_attribute_value(node, name, default_value)

    def shadowing_names(self) -> set[str]:
        """Names of this graph that a subgraph defines again on its own."""
        return shadowing_names(self.graph)

    # -- the tables it is made of

    @property
    def store(self) -> GraphStore:
        """The nodes, their producers and their readers."""
        return self.graph.store

    @property
    def constants(self) -> ConstantTable:
        """Initializers and values of constant results."""
        return self.graph.constants

    @property
    def names(self) -> NameAllocator:
        """Names of results."""
        return self.graph.names

    @property
    def opsets(self) -> dict[str, int]:
        """Version of every domain."""
        return self.graph.opsets

    @property
    def functions(self) -> dict[FunctionKey, FunctionProto]:
        """Local functions, by domain and name."""
        return self.graph.functions

    # -- options

    @property
    def optimization_options(self) -> OptimizationOptions:
        """The options of the optimization."""
        return resolved_options(self.graph.scope)

    @property
    def infer_shapes_options(self) -> InferShapesOptions:
        """The options of the inference of types and shapes, when a model is read."""
        return self.graph.scope.infer_options

    @property
    def verbose(self) -> int:
        """Verbosity."""
        return self.graph.scope.verbose

    @property
    def as_function(self) -> bool:
        """Whether the graph is the body of a local function."""
        return self.graph.is_function

    @property
    def infer_nodes(self) -> bool:
        """Whether the results of new nodes are inferred."""
        return self.graph.infer_nodes

    @infer_nodes.setter
    def infer_nodes(self, value: bool) -> None:
        self.graph.infer_nodes = value
