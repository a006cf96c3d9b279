"""Part of GraphBuilder: adds inputs, outputs, initializers and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto

from ..constants.initializers import as_initializer
from ..dims import Dim, Shape, normalize
from ..errors import FactError, OptionError
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..inference.graph_inference import add_node
from ..nodes.making import make_node_proto
from ..nodes.record import NodeRecord
from ..nodes.schema_check import check_node
from ..nodes.value_infos import IOSpec
from ..operators.domains import main_domain
from ..protos.pretty import debug_text
from ..support.argument_types import check_elem_type, check_names, check_type, shown
from ..support.names import result_prefix


class BuilderMaking:
    """The methods of :class:`xbuilder.GraphBuilder` that add inputs, outputs, constants, nodes."""

    graph: Graph
    raise_list: set[str]
    check_empty_source: bool

    # -- names

    def unique_name(self, prefix: str) -> str:
        """Reserves a name of result that neither this graph, its subgraphs nor its owner use."""
        return self.graph.unique_name(prefix)

    def unique_node_name(self, prefix: str) -> str:
        """Reserves a name of node."""
        return self.graph.unique_node_name(prefix)

    # -- inputs, outputs

    def make_tensor_input(
        self,
        name: str,
        elem_type: int | None = None,
        shape: Sequence[Dim | None] | None = None,
        is_dimension: bool = False,
        marker: str = "",
        default_initializer: Any = None,
        device: Any = None,
    ) -> str:
        """Declares an input.

        :param name: its name
        :param elem_type: element type, may be unknown inside a function
        :param shape: dimensions: int, name, expression, or None if unknown
        :param is_dimension: the input is an integer used as a dimension, its content is `name`
        :param marker: a comment for debugging, stored as documentation
        :param default_initializer: default value; the user of the model may override it
        :param device: where it lives
        :return: the name
        :raises OptionError: there is no name, or it is taken
        """
        graph = self.graph
        check_type("name", name, str, "the name of the input")
        if not name or name in graph.names:
            raise OptionError(
                f"Input {name!r} uses a name that is already taken."
                if name
                else "An input needs a name, got an empty one."
            )
        self.check_watched(name)
        graph.names.reserve(name)
        kind = check_elem_type(elem_type)
        cleaned = None if shape is None else graph.dimensions.clean_shape(shape)
        value = None
        if is_dimension:
            value = normalize(name) if not cleaned else (normalize(name),)
        graph.facts.refine(name, ResultFacts(kind, cleaned, None, value), "an input")
        graph.declare_input_shape(cleaned)
        graph.input_specs.append(IOSpec(name, None, marker))
        if default_initializer is not None:
            graph.constants.overridable.add(name)
            graph.constants.add_initializer(name, as_initializer(default_initializer))
        if device is not None:
            graph.facts.devices[name] = device
        return name

    def make_tensor_output(
        self,
        name: str | Sequence[str],
        elem_type: int | None = None,
        shape: Sequence[Dim | None] | None = None,
        indexed: bool = True,
        is_dimension: bool | None = None,
        allow_untyped_output: bool = False,
        doc_string: str = "",
        device: Any = None,
    ) -> str | list[str]:
        """Declares an output (or several).

        :param name: name of an existing result, or a list
        :param elem_type: element type, the inferred one by default
        :param shape: dimensions, the inferred ones by default
        :param indexed: kept for compatibility of signatures, a name is never changed
        :param is_dimension: the output holds a dimension
        :param allow_untyped_output: accepts an output whose type is not known
        :param doc_string: documentation
        :param device: where it lives
        :return: the name(s)
        :raises OptionError: the result does not exist or its type is not known
        :raises FactError: it has another type; a shape that is not the one of the result is told,
            the inferred one is kept
        """
        rest = elem_type, shape, allow_untyped_output, doc_string, device
        if isinstance(name, str):
            return self._make_output(name, *rest)
        check_names("name", name)
        return [self._make_output(n, *rest) for n in name]

    def _make_output(
        self,
        name: str,
        elem_type: int | None,
        shape: Sequence[Dim | None] | None,
        allow_untyped_output: bool,
        doc_string: str,
        device: Any,
    ) -> str:
        graph = self.graph
        if not graph.has_name(name):
            raise OptionError(f"Output {name!r} is not a result of the graph; add its node first.")
        kind = check_elem_type(elem_type)
        if kind:
            graph.facts.refine(name, ResultFacts(kind), "make_tensor_output")
        if shape is not None:
            _declare_shape(graph, name, graph.dimensions.clean_shape(shape))
        facts = graph.facts[name]
        typed = facts.type or facts.sequence or facts.optional
        if not typed and not allow_untyped_output and not graph.is_function:
            raise OptionError(
                f"The type of output {name!r} is not known; "
                "give elem_type or allow_untyped_output=True."
            )
        graph.output_specs.append(IOSpec(name, None, doc_string))
        graph.store.add_outputs([name])
        if device is not None:
            graph.facts.devices[name] = device
        return name

    def has_name(self, name: str) -> bool:
        """Whether a result of this graph, or of the outer one, has this name."""
        return self.graph.has_name(name)

    def is_given(self, name: str) -> bool:
        """Whether a name is an input or an initializer (sparse ones included) of this graph."""
        return self.graph.is_given(name)

    def check_watched(self, name: str) -> None:
        """Raises an exception if the name belongs to `raise_list` (debugging)."""
        if name in self.raise_list:
            raise OptionError(
                f"Result {name!r} is made here and belongs to raise_list.\n{debug_text(self.graph)}"
            )

    # -- initializers

    def make_initializer(
        self,
        name: str,
        value: Any,
        external: bool = False,
        msg: str = "",
        parameter_name: str | None = None,
        source: str = "",
        allow_empty: bool = False,
        give_unique: bool = False,
    ) -> str:
        """Adds a constant.

        :param name: its name; when empty a name is generated and an equal small constant is reused
        :param value: numpy array, TensorProto, torch tensor, int, float, list of int; not copied
        :param external: the content should be stored outside of the model when it is saved
        :param msg: added to error messages
        :param parameter_name: name of the torch parameter it comes from, used if `name` is empty;
            it is never merged into another parameter
        :param source: where it comes from, for debugging
        :param allow_empty: accepts an array without element; a list of integers (a shape, axes)
            is accepted in any case
        :param give_unique: makes the name unique if it is taken instead of raising an exception
        :return: the name
        :raises OptionError: the name is taken, the array is empty, the source is missing while
            the graph was made with `check_empty_source=True`

        ::

            g.make_initializer("", np.array([0, -1], dtype=np.int64))
        """
        if self.check_empty_source and not (source or parameter_name):
            raise OptionError(
                f"Initializer {name!r} has no source{msg and ', ' + msg}; "
                "check_empty_source=True asks for one, give source or parameter_name."
            )
        check_type("name", name, str, "the name of the initializer", optional=True)
        self.check_watched(name)
        return self.graph.make_initializer(
            name, value, external, msg, parameter_name, source, allow_empty, give_unique
        )

    # -- nodes

    def add_domain(self, domain: str, version: int | None = None) -> None:
        """Registers a domain, nothing happens if it is known.

        :param domain: the domain
        :param version: its version, the newest one of onnx for `ai.onnx.ml` and 1 for others by
            default
        """
        self.graph.add_domain(domain, version)

    def make_node(
        self,
        op_type: str,
        inputs: str | Sequence[str],
        outputs: int | str | Sequence[str] = 1,
        domain: str = "",
        attributes: Sequence[Any] | None = None,
        check: bool | None = None,
        name: str | None = None,
        sts: dict[str, Any] | None = None,
        do_not_remove: bool = False,
        insert_position: int | None = None,
        metadata_props: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> str | tuple[str, ...]:
        """Adds a node, infers types and shapes of its results.

        :param op_type: operator type
        :param inputs: names, an empty string for a missing optional input
        :param outputs: number of outputs, their names are generated; or their name(s)
        :param domain: domain of the operator
        :param attributes: AttributeProto already made
        :param check: checks that the inputs exist, default True
        :param name: name of the node, made unique
        :param sts: shapes and types are already known, not inferred, if not None and not empty
        :param do_not_remove: the node is kept even if nothing uses it
        :param insert_position: position in the list of nodes, at the end by default (`list.insert`)
        :param metadata_props: metadata stored in the node
        :param kwargs: attributes; None is skipped
        :return: name of the output, or a tuple of names if there are several
        :raises OptionError: an input does not exist, an argument has another type
        :raises InvalidModelError: the number of inputs, of outputs, or an attribute is wrong

        ::

            y = g.make_node("Transpose", ["x"], perm=[1, 0])
        """
        graph = self.graph
        _check_node_arguments(attributes, name, insert_position, metadata_props)
        inputs = _names_of("inputs", inputs)
        if check is not False:
            _check_inputs(graph, op_type, inputs)
        _check_operator(graph, op_type, domain, name)
        outputs = _output_names(graph, op_type, inputs, outputs)
        proto = make_node_proto(
            op_type,
            inputs,
            outputs,
            domain,
            graph.unique_node_name(name or op_type),
            attributes,
            kwargs,
            metadata_props,
        )
        if (domain, op_type) not in graph.functions:
            check_node(proto, graph.opsets[main_domain(domain)])
        record = self.add_node(proto, insert_position, infer=not sts)
        if do_not_remove:
            graph.store.pinned.update(filter(None, record.outputs))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def add_node(
        self, proto: NodeProto, position: int | None = None, infer: bool = True
    ) -> NodeRecord:
        """Adds an existing NodeProto, without copying it."""
        check_type("proto", proto, NodeProto)
        for name in proto.output:
            self.check_watched(name)
        return add_node(self.graph, proto, position, infer)

    def rename_result(self, old: str, new: str) -> None:
        """Renames a result of a node. Its readers and its facts follow.

        :param old: result of a node of this graph, not one of its outputs
        :param new: a name no result of the graph has
        :raises OptionError: no node gives the result, or it is an output
        :raises PatternError: a node already gives a result of this name
        """
        check_type("new", new, str, "the name of a result")
        if old not in self.graph.store.producers:
            raise OptionError(f"No node gives {old!r}: only results of nodes are renamed.")
        if old in self.graph.output_names:
            raise OptionError(
                f"{old!r} is an output, it keeps its name; an Identity gives another."
            )
        self.check_watched(new)
        self.graph.names.reserve(new)
        self.graph.store.rename_result(old, new)

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""
        return self.graph.main_opset

    def get_opset(self, domain: str, exc: bool = True) -> int:
        """Version of a domain.

        :raises OptionError: the domain is not registered
        """
        opsets, domain = self.graph.opsets, main_domain(domain)
        if domain not in opsets:
            if exc:
                raise OptionError(f"Domain {domain!r} is not registered, known: {opsets}.")
            return 0
        return opsets[domain]


def _declare_shape(graph: Graph, name: str, shape: Shape) -> None:
    """Refines the shape of an output; warns and keeps the inferred one if they differ."""
    facts, constraints = graph.facts, graph.facts.constraints
    saved = constraints.copy()
    try:
        facts.refine(name, ResultFacts(shape=shape), "make_tensor_output")
    except FactError:
        constraints.restore(saved)
        graph.scope.warn_wrong_declaration(
            name, f"shape {facts[name].shape} against {shape}, the second one is declared"
        )


def _check_inputs(graph: Graph, op_type: str, inputs: Sequence[str]) -> None:
    for i in inputs:
        if i and not graph.has_name(i):
            raise OptionError(
                f"Input {i!r} of the new node {op_type} does not exist; "
                "add the input, the initializer or the node giving it first."
            )


def _check_node_arguments(
    attributes: Any, name: Any, insert_position: Any, metadata_props: Any
) -> None:
    """Refuses arguments no NodeProto can hold, before anything is added."""
    positions = int, np.integer
    check_type("insert_position", insert_position, positions, "a position", optional=True)
    check_type("name", name, str, "the name of the node", optional=True)
    check_type("metadata_props", metadata_props, Mapping, "a dictionary of strings", optional=True)
    for key, value in (metadata_props or {}).items():
        check_type(f"metadata_props[{key!r}]", value, str, "a string")
    listed = isinstance(attributes, Collection) or attributes is None
    if not listed or not all(isinstance(a, AttributeProto) for a in attributes or ()):
        raise OptionError(f"attributes expects several AttributeProto, not {shown(attributes)}.")


def _names_of(name: str, given: str | Sequence[str]) -> list[str]:
    """One name, or several."""
    if isinstance(given, str):
        return [given]
    check_names(name, given)
    return list(given)


def _output_names(
    graph: Graph, op_type: str, inputs: Sequence[str], outputs: int | str | Sequence[str]
) -> list[str]:
    """Names of the results of a new node, which are reserved."""
    if isinstance(outputs, int):
        prefix = result_prefix(op_type, inputs)
        return [graph.unique_name(prefix) for _ in range(outputs)]
    names = _names_of("outputs", outputs)
    for name in names:
        if name and (graph.is_given(name) or name in graph.store.producers):
            raise OptionError(
                f"Result {name!r} of the new node {op_type} is already an input, an "
                "initializer or a result of the graph; use unique_name to get a free one."
            )
        graph.names.reserve(name)
    return names


def _check_operator(graph: Graph, op_type: str, domain: str, name: str | None) -> None:
    check_type("op_type", op_type, str)
    check_type("domain", domain, str)
    check_type("name", name, str, "the name of the node", optional=True)
    if main_domain(domain) in graph.opsets:
        return
    if domain in ("ai.onnx.ml", "com.microsoft") or (domain, op_type) in graph.functions:
        graph.add_domain(domain)
        return
    raise OptionError(
        f"Domain {domain!r} of operator {op_type!r} is not registered; "
        "call add_domain first, or use anyop."
    )
