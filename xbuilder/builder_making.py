"""Adding inputs, outputs, initializers and nodes to a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, TensorProto, ValueInfoProto

from .constants.table import ConstantTable, as_initializer, initializer_type_shape
from .dims import Dim, normalize
from .errors import InvalidModelError, OptionError
from .facts import FactTable, ResultFacts
from .inference.function_calls import infer_call
from .inference.node_inference import NodeInference
from .names import NameAllocator
from .nested.subgraphs import infer_owner
from .nodes.making import make_node_proto
from .nodes.protos import (
    function_key,
    has_reference,
    is_deterministic,
    main_domain,
    may_own_graph,
    reserve_names,
    subgraphs_of,
)
from .op_traits import DEQUANTIZERS, GRAPH_OWNERS
from .opsets import newest_ml
from .store.graph_store import GraphStore, NodeRecord

#: is told what was inferred for a node before it is kept
Check = Callable[[NodeRecord, "list[ResultFacts | None] | None"], None]


@dataclass(slots=True)
class IOSpec:
    """An input or an output: the proto of the file when it comes from one, else what was
    declared."""

    name: str
    proto: ValueInfoProto | None = None
    doc_string: str = ""


class NodeMaking:
    """Part of :class:`xbuilder.GraphBuilder`: everything that adds to a graph."""

    store: GraphStore
    facts: FactTable
    constants: ConstantTable
    inference: NodeInference
    names: NameAllocator
    node_names: NameAllocator
    opsets: dict[str, int]
    input_specs: list[IOSpec]
    output_specs: list[IOSpec]
    sparse_initializers: list[Any]
    infer_nodes: bool

    # -- names

    def unique_name(self, prefix: str) -> str:
        """Reserves a name of result that neither this graph, its subgraphs nor its owner use."""
        return self.names.unique(prefix)

    def unique_node_name(self, prefix: str) -> str:
        """Reserves a name of node."""
        return self.node_names.unique(prefix)

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
        """
        if not name or name in self.names:
            raise OptionError(
                f"Input {name!r} uses a name that is already taken."
                if name
                else "An input needs a name, got an empty one."
            )
        self._check_debugged(name)
        self.names.reserve(name)
        cleaned = None if shape is None else self.clean_shape(shape)  # type: ignore[attr-defined]
        value = None
        if is_dimension:
            value = normalize(name) if not cleaned else (normalize(name),)
        self.facts.refine(name, ResultFacts(elem_type or 0, cleaned, None, value), "an input")
        self.input_specs.append(IOSpec(name, None, marker))
        if default_initializer is not None:
            self.constants.overridable.add(name)
            self.constants.add_initializer(name, as_initializer(default_initializer))
        if device is not None:
            self.set_device(name, device)  # type: ignore[attr-defined]
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
        """
        if not isinstance(name, str):
            return [
                self.make_tensor_output(
                    n, elem_type, shape, indexed, is_dimension, allow_untyped_output, doc_string
                )
                for n in name
            ]
        if not self.has_name(name):
            raise OptionError(f"Output {name!r} is not a result of the graph; add its node first.")
        if elem_type:
            self.facts.refine(name, ResultFacts(elem_type), "make_tensor_output")
        if shape is not None:
            self.set_shape(name, shape)  # type: ignore[attr-defined]
        facts = self.facts[name]
        typed = facts.type or facts.sequence or facts.optional
        if not typed and not allow_untyped_output and not self.as_function:  # type: ignore[attr-defined]
            raise OptionError(
                f"The type of output {name!r} is not known; "
                "give elem_type or allow_untyped_output=True."
            )
        self.output_specs.append(IOSpec(name, None, doc_string))
        self.store.add_outputs([name])
        if device is not None:
            self.set_device(name, device)  # type: ignore[attr-defined]
        return name

    def has_name(self, name: str) -> bool:
        """Tells if a result of this graph, or of the outer one, has this name."""
        if name in self.store.producers or self.is_given(name):
            return True
        parent = self.parent  # type: ignore[attr-defined]
        return parent is not None and parent.has_name(name)

    def is_given(self, name: str) -> bool:
        """Tells if a name is an input or an initializer (sparse ones included) of this graph."""
        if name in self.constants.initializers:
            return True
        if not self.facts.is_local(name):  # inputs and sparse initializers always have facts
            return False
        if any(spec.name == name for spec in self.input_specs):
            return True
        return any(s.values.name == name for s in self.sparse_initializers)

    def _check_debugged(self, name: str) -> None:
        """Raises an exception if the user wants to know where a result is made."""
        if name in self.raise_list:  # type: ignore[attr-defined]
            raise OptionError(
                f"Result {name!r} is made here and belongs to raise_list.\n{self.get_debug_msg()}"  # type: ignore[attr-defined]
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
        :param external: the content should stay out of the model when it is saved
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
        value = as_initializer(value)
        self._check_content(name, value, allow_empty, source or parameter_name or "", msg)
        self._check_debugged(name)
        if not name and parameter_name:
            name = self.unique_name(parameter_name)
        elif not name:
            name, new = self.constants.shared_name(value, lambda: self.unique_name("init_"))
            if not new:
                return name
        elif name in self.names:
            if not give_unique:
                raise OptionError(
                    f"Initializer {name!r} uses a name that is already taken{msg and ', ' + msg}; "
                    "use give_unique=True to get another one."
                )
            name = self.unique_name(name)
        else:
            self.names.reserve(name)
        self.constants.add_initializer(name, value)
        if source:
            self.sources[name] = source  # type: ignore[attr-defined]
        if external:
            self.external_names.add(name)  # type: ignore[attr-defined]
        if parameter_name:
            self.parameter_names.add(name)  # type: ignore[attr-defined]
        return name

    def _check_content(
        self, name: str, value: Any, allow_empty: bool, source: str, msg: str
    ) -> None:
        elem_type, shape = initializer_type_shape(value)
        integers = elem_type == TensorProto.INT64 and len(shape) == 1
        if 0 in shape and not integers and not allow_empty:
            raise OptionError(
                f"Initializer {name!r} of shape {shape} has no element{msg and ', ' + msg}; "
                "use allow_empty=True if this is what you want."
            )
        if self.check_empty_source and not source:  # type: ignore[attr-defined]
            raise OptionError(
                f"Initializer {name!r} has no source{msg and ', ' + msg}; "
                "check_empty_source=True asks for one, give source or parameter_name."
            )

    # -- nodes

    def add_domain(self, domain: str, version: int | None = None) -> None:
        """Registers a domain, nothing happens if it is known.

        :param domain: the domain
        :param version: its version, the newest one of onnx for `ai.onnx.ml` and 1 for others by
            default
        """
        domain = main_domain(domain)
        if domain not in self.opsets:
            default = newest_ml() if domain == "ai.onnx.ml" else 1
            self.opsets[domain] = default if version is None else version

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
        :param do_not_remove: the node stays even if nothing uses it
        :param insert_position: position in the list of nodes, at the end by default
        :param metadata_props: metadata stored in the node
        :param kwargs: attributes; None is skipped
        :return: name of the output, or a tuple of names if there are several
        :raises OptionError: an input does not exist

        ::

            y = g.make_node("Transpose", ["x"], perm=[1, 0])
        """
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        if check is not False:
            self._check_inputs(op_type, inputs)
        self._check_domain(op_type, domain)
        outputs = self._output_names(op_type, inputs, outputs)
        proto = make_node_proto(
            op_type,
            inputs,
            outputs,
            domain,
            self.unique_node_name(name or op_type),
            attributes,
            kwargs,
            metadata_props,
        )
        record = self.add_node(proto, insert_position, infer=not sts)
        if do_not_remove:
            self.kept_nodes.update(filter(None, record.outputs))  # type: ignore[attr-defined]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _check_inputs(self, op_type: str, inputs: Sequence[str]) -> None:
        for i in inputs:
            if i and not self.has_name(i):
                raise OptionError(
                    f"Input {i!r} of the new node {op_type} does not exist; "
                    "add the input, the initializer or the node giving it first."
                )

    def _output_names(
        self, op_type: str, inputs: Sequence[str], outputs: int | str | Sequence[str]
    ) -> list[str]:
        """Names of the results of a new node, they are reserved."""
        if isinstance(outputs, int):
            prefix = f"_onx_{op_type.lower()}_{inputs[0] if inputs else ''}"
            return [self.unique_name(prefix) for _ in range(outputs)]
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        for name in names:
            if name and (self.is_given(name) or name in self.store.producers):
                raise OptionError(
                    f"Result {name!r} of the new node {op_type} is already an input, an "
                    "initializer or a result of the graph; use unique_name to get a free one."
                )
            self.names.reserve(name)
        return names

    def _check_domain(self, op_type: str, domain: str) -> None:
        if main_domain(domain) not in self.opsets:
            functions = getattr(self, "functions", {})
            if domain in ("ai.onnx.ml", "com.microsoft") or (domain, op_type) in functions:
                self.add_domain(domain)
                return
            raise OptionError(
                f"Domain {domain!r} of operator {op_type!r} is not registered; "
                "call add_domain first, or use anyop."
            )

    def add_node(
        self, proto: NodeProto, position: int | None = None, infer: bool = True
    ) -> NodeRecord:
        """Adds a node that is already made (it is kept, not copied)."""
        for name in proto.output:
            self._check_debugged(name)
        record = self.store.append(proto, position)
        if record.captured or may_own_graph(record.op_type, record.domain):
            for _, graph in subgraphs_of(proto):
                reserve_names(self.names, self.node_names, graph)
        self.learn(record, infer)
        return record

    def learn(self, record: NodeRecord, infer: bool = True, check: Check | None = None) -> bool:
        """Infers the results of a node of the store, and whether they are constant.

        A constant result is always inferred, nothing is folded without its type and its shape.

        :param record: the node
        :param infer: False if types and shapes are already known
        :param check: is told what was inferred before it is kept, may raise an exception
        :return: True if the results are constant
        """
        constant = self._is_computable(record)
        if not constant and not (infer and self.infer_nodes):
            return False
        answer = self.infer_record(record)
        if check is not None:
            check(record, answer)
        if constant:
            self.constants.note_node(record)
        self.inference.store(record, answer)
        return constant

    def learn_constant(self, record: NodeRecord) -> bool:
        """Remembers a node whose inputs are all constant, which may happen after it was added.

        :return: True if the results are constant
        """
        return self.learn(record, infer=False)

    def _is_computable(self, record: NodeRecord) -> bool:
        """Tells if the results of a node depend on constants only, and may be computed."""
        is_constant = self.constants.is_constant
        for name in record.inputs:
            if name and not is_constant(name):
                return False
        if record.key in DEQUANTIZERS:
            return False
        if record.captured or record.op_type in GRAPH_OWNERS:
            return False
        if record.domain not in ("", "ai.onnx.ml") or self.calls_function(record):
            return False
        proto = self.store.proto(record)
        return not has_reference(proto) and is_deterministic(
            proto, record.op_type, record.domain, self.main_opset
        )

    def calls_function(self, record: NodeRecord) -> bool:
        """Tells if a node calls a local function."""
        functions = self.functions  # type: ignore[attr-defined]
        return bool(functions) and function_key(self.store.proto(record)) in functions

    def infer_record(self, record: NodeRecord) -> list[ResultFacts | None] | None:
        """Facts of the results of a node, nothing is stored.

        An attribute that refers to an attribute of a function is not known: neither is the result.
        """
        if record.domain == "" and record.op_type in GRAPH_OWNERS:
            return infer_owner(self, record)  # type: ignore[arg-type]
        if self.calls_function(record):
            return infer_call(self, record)  # type: ignore[arg-type]
        proto = self.store.proto(record)
        if self.in_function and has_reference(proto):  # type: ignore[attr-defined]
            return None
        return self.inference.infer(record, proto)

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""
        return self.opsets.get("", 0)

    def get_opset(self, domain: str, exc: bool = True) -> int:
        """Version of a domain.

        :raises OptionError: the domain is not registered
        """
        domain = main_domain(domain)
        if domain not in self.opsets:
            if exc:
                raise OptionError(f"Domain {domain!r} is not registered, known: {self.opsets}.")
            return 0
        return self.opsets[domain]


def require_unique(names: Sequence[str], what: str) -> None:
    """Raises an exception if a name appears twice."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise InvalidModelError(f"{what} {name!r} appears twice; every name must be unique.")
        seen.add(name)
