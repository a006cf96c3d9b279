"""GraphBuilder: builds a graph, holds a model, knows its results. A facade, it holds no
algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from .builder_facts import FactQueries
from .builder_functions import FunctionMaking
from .builder_making import IOSpec, NodeMaking
from .builder_passes import PassRunning
from .constants.table import ConstantTable
from .dims import Constraints, Dim
from .errors import OptionError
from .facts import FactTable, ResultFacts
from .graph_builder_opset import Opset
from .inference.node_inference import NodeInference
from .names import NameAllocator
from .nodes.protos import attribute_value, find_attribute
from .opsets import check_opset, ir_version_for
from .options import FunctionOptions, InferShapesOptions, OptimizationOptions
from .store.graph_store import GraphStore


class GraphBuilder(FactQueries, NodeMaking, FunctionMaking, PassRunning):
    """Builds, holds, knows and optimizes one graph.

    :param target_opset_or_existing_proto: an opset, `{domain: version}`, a ModelProto, GraphProto,
        FunctionProto, a path to a file, an `onnx_ir.Model` or a `torch.onnx.ONNXProgram`;
        a proto that is given is never modified
    :param input_names: names of the inputs that will be added, checked at the end
    :param as_function: the graph is the body of a local function, its inputs may have no type
    :param optimization_options: :class:`OptimizationOptions`
    :param args: example of arguments, kept for the caller
    :param kwargs: example of named arguments, kept for the caller
    :param ir_version: IR version to write, the lowest possible by default
    :param verbose: verbosity
    :param infer_shapes_options: bool or :class:`InferShapesOptions`
    :param raise_list: an exception is raised when a result of this name is made (debugging)
    :param dynamic_shapes: kept for the caller
    :param local_domain: domain of the local functions made by this builder
    :param signature: kept for the caller
    :param check_empty_source: every initializer must have a source
    :param graph_module: kept for the caller
    :param exe_path: how the graph was obtained, written in error messages
    :param output_names: names of the outputs that will be added, checked at the end
    :param output_dynamic_shapes: kept for the caller
    :param opsets: versions of the domains, for a GraphProto, which does not hold them
    :param allowed_roots: folders external data may be read from, beside the model's
    :param parent: builder of the outer graph, when this one is a subgraph
    :param base_dir: folder of the external data a proto refers to; a file implies its own folder.
        Without it, external data is not read: the proto that is written keeps the references

    ::

        import onnx
        from xbuilder import GraphBuilder

        g = GraphBuilder(18)
        g.make_tensor_input("x", onnx.TensorProto.FLOAT, ("batch", 3))
        g.op.Relu("x", outputs=["y"])
        g.make_tensor_output("y")
        model = g.to_onnx()
    """

    def __init__(
        self,
        target_opset_or_existing_proto: Any,
        input_names: Sequence[str] | None = None,
        as_function: bool = False,
        optimization_options: OptimizationOptions | None = None,
        args: Any = None,
        kwargs: Any = None,
        ir_version: int | None = None,
        verbose: int = 0,
        infer_shapes_options: bool | InferShapesOptions = InferShapesOptions.NONE,
        raise_list: set[str] | None = None,
        dynamic_shapes: Any = None,
        local_domain: str = "local_function",
        signature: Any = None,
        check_empty_source: bool = False,
        graph_module: Any = None,
        exe_path: str = "",
        output_names: Sequence[str] | None = None,
        output_dynamic_shapes: Any = None,
        opsets: Mapping[str, int] | None = None,
        allowed_roots: Sequence[str | Path] = (),
        parent: GraphBuilder | None = None,
        base_dir: str | Path | None = None,
    ):
        self.optimization_options = optimization_options or OptimizationOptions()
        self.as_function = as_function
        self.in_function = as_function or (parent is not None and parent.in_function)
        self.verbose = verbose
        self.parent = parent
        self.ir_version = ir_version
        self.local_domain = local_domain
        self.args, self.kwargs = args, kwargs
        self.dynamic_shapes, self.output_dynamic_shapes = dynamic_shapes, output_dynamic_shapes
        self.signature, self.graph_module, self.exe_path = signature, graph_module, exe_path
        self.expected_inputs, self.expected_outputs = input_names, output_names
        self.raise_list = raise_list or set()
        self.check_empty_source = check_empty_source
        self.allowed_roots = tuple(allowed_roots)
        self._init_tables(parent, dict(opsets or {}))
        if parent is None:
            self.constants.set_folder(base_dir, self.allowed_roots)
        if isinstance(infer_shapes_options, bool):
            infer_shapes_options = (
                InferShapesOptions.BUILDER if infer_shapes_options else InferShapesOptions.NONE
            )
        self.infer_shapes_options = InferShapesOptions(infer_shapes_options)
        if isinstance(target_opset_or_existing_proto, int):
            self.opsets[""] = check_opset(target_opset_or_existing_proto)
        elif isinstance(target_opset_or_existing_proto, Mapping):
            self.opsets.update(target_opset_or_existing_proto)
        else:
            from .protos.importing import import_any

            import_any(self, target_opset_or_existing_proto)
        self.op = Opset(self)
        self.anyop = Opset(self, allow_unknown=True)

    def _init_tables(self, parent: GraphBuilder | None, opsets: dict[str, int]) -> None:
        root = self if parent is None else parent
        if parent is None:
            self.names, self.node_names = NameAllocator(), NameAllocator()
            self.dimension_names = NameAllocator()
            self.generated_dimensions: set[str] = set()
            self.body_dimensions: set[str] = set()
            self.changed_symbols: dict[tuple[str, str], set[str]] = {}
            self.opsets = opsets
            self.functions: dict[tuple[str, str], FunctionProto] = {}
            self.told: set[str] = set()
            self.counts: Counter[str] = Counter()  # rewrites applied, subgraphs included
            self.function_calls: tuple[tuple[str, str], ...] = ()
            self.function_facts: dict[tuple[Any, ...], list[ResultFacts | None]] = {}
            constraints = Constraints()
        else:
            self.names, self.node_names = root.names, root.node_names
            self.dimension_names = root.dimension_names
            self.generated_dimensions = root.generated_dimensions
            self.body_dimensions = root.body_dimensions
            self.changed_symbols = root.changed_symbols
            self.opsets, self.functions, self.told = root.opsets, root.functions, root.told
            self.counts = root.counts
            self.function_calls, self.function_facts = root.function_calls, root.function_facts
            constraints = root.facts.constraints.copy()
        self.store = GraphStore()
        self.facts = FactTable(
            constraints,
            self.is_generated,
            None if parent is None else parent.facts,
            self._tell_declared,
            self.store.producers.get,
        )
        self.constants = ConstantTable(
            self.store, self.facts, self.opsets, None if parent is None else parent.constants
        )
        self.store.subscribe(self.facts)
        self.store.subscribe(self.constants)
        self.inference = NodeInference(
            self.facts, self.constants, self.opsets, self.new_dimension, self.normalize_dimension
        )
        self.infer_nodes = True
        self.input_specs: list[IOSpec] = []
        self.output_specs: list[IOSpec] = []
        self.devices, self.kept_nodes = self.facts.devices, self.store.kept
        self.sources, self.external_names = self.constants.sources, self.constants.external_names
        self.parameter_names = self.constants.parameter_names
        #: the graph had no dead node then: its generation, number of nodes that are kept
        self.without_dead: tuple[int, int] | None = None
        self.declared: dict[str, ValueInfoProto] = {}
        self.sparse_initializers: list[Any] = []
        self.origin: Any = None
        self.was_renamed = self.was_optimized = False
        self.scope: dict[str, Dim] = {}
        self.path: str | None = None  # the file it comes from
        self.spells_main_domain = parent is not None and parent.spells_main_domain

    def _tell_declared(self, name: str, reason: str) -> None:
        from .protos.importing import tell_once

        tell_once(self, name, reason)

    # -- views

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes, in topological order; do not change them."""
        return [self.store.proto(record) for record in self.store.nodes]

    @property
    def inputs(self) -> list[ValueInfoProto]:
        """The inputs."""
        from .protos.exporting import export_io

        return [export_io(self, spec) for spec in self.input_specs]

    @property
    def outputs(self) -> list[ValueInfoProto]:
        """The outputs."""
        from .protos.exporting import export_io

        return [export_io(self, spec) for spec in self.output_specs]

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [spec.name for spec in self.input_specs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [spec.name for spec in self.output_specs]

    @property
    def initializers_dict(self) -> Mapping[str, Any]:
        """Initializers by name, as they were given (array or TensorProto)."""
        return dict(self.constants.initializers)

    @property
    def constants_(self) -> Mapping[str, NodeProto | None]:
        """Names of constant results with the node computing them, None for an initializer."""
        rows: dict[str, NodeProto | None] = dict.fromkeys(
            n for n in self.constants.initializers if n not in self.constants.overridable
        )
        rows.update((n, self.store.proto(r)) for n, r in self.constants.computed.items())
        return rows

    @property
    def dynamic_objects(self) -> Mapping[str, str]:
        """Symbols used by the inputs, with the first place they appear."""
        from .dims import symbols

        found: dict[str, str] = {}
        for spec in self.input_specs:
            for axis, dim in enumerate(self.facts[spec.name].shape or ()):
                if isinstance(dim, str):
                    for symbol in sorted(symbols(dim)):
                        found.setdefault(symbol, f"{spec.name}[{axis}]")
        return found

    def iter_subgraph_builders(self) -> Iterator[GraphBuilder]:
        """Builders of the subgraphs, at every depth."""
        from .nested.subgraphs import children_of

        for record in self.store.nodes:
            for child in children_of(self, record).values():
                yield child
                yield from child.iter_subgraph_builders()

    def get_attribute(self, node: NodeProto, name: str, exc: bool = True) -> Any:
        """Returns an attribute of a node as an AttributeProto.

        :raises OptionError: there is none and *exc* is True
        """
        att = find_attribute(node, name)
        if att is None and exc:
            known = [a.name for a in node.attribute]
            raise OptionError(f"Node {node.op_type!r} has no attribute {name!r}, it has {known}.")
        return att

    def get_attribute_value(self, node: NodeProto, name: str, default: Any = None) -> Any:
        """Returns the python value of an attribute, a default if the node does not have it."""
        att = find_attribute(node, name)
        return default if att is None else attribute_value(att, self.constants.read_tensor)

    def shadowing_names(self) -> set[str]:
        """Names of this graph that a subgraph defines again on its own."""
        from .nested.subgraphs import shadowing_names

        return shadowing_names(self)

    def pretty_text(self, add_fx_graph: bool = False, recursive: bool = True) -> str:
        """The graph as readable text.

        :param add_fx_graph: adds the fx graph it comes from, if there is one
        :param recursive: shows subgraphs
        """
        from .protos.pretty import pretty_builder

        text = pretty_builder(self, recursive)
        if add_fx_graph and self.graph_module is not None:
            text = f"{text}\n\n{self.graph_module.graph}"
        return text

    def get_debug_msg(self, limit: int = 1000) -> str:
        """A long text for error messages: inputs, constraints, the last nodes.

        :param limit: maximum number of lines
        """
        from .protos.pretty import debug_text

        return debug_text(self, limit)

    # -- the end

    def to_onnx(
        self,
        optimize: bool = True,
        large_model: bool = False,
        external_threshold: int = 1024,
        return_optimize_report: bool = False,
        inline: bool = True,
        function_options: FunctionOptions | None = None,
        mask_outputs: Sequence[bool] | None = None,
        as_graph_proto: bool = False,
    ) -> Any:
        """Ends the construction: inlines local functions, optimizes, and returns a proto.

        :param optimize: runs the passes of the options
        :param large_model: returns a :class:`ModelContainer`, big initializers stay out of the
            proto
        :param external_threshold: bytes from which an initializer is big
        :param return_optimize_report: also returns the statistics
        :param inline: inlines local functions
        :param function_options: makes a FunctionProto
        :param mask_outputs: outputs to keep
        :param as_graph_proto: returns a GraphProto
        :return: ModelProto, FunctionProto, GraphProto or container; with the statistics if asked
        :raises OptionError: two options contradict each other
        """
        from .nested.local_functions import inline_rows
        from .passes import complete_rows
        from .protos.exporting import export

        if as_graph_proto and (large_model or function_options is not None):
            raise OptionError("as_graph_proto cannot be used with large_model or function_options.")
        if mask_outputs is not None:
            self.select_outputs(mask_outputs)
        self._check_expected()
        statistics = []
        if inline and self.functions and self.parent is None:
            statistics.extend(complete_rows(inline_rows(self)))
        statistics.extend(self.optimize() if optimize else [])
        proto: ModelProto | GraphProto | FunctionProto = export(
            self, large_model, external_threshold, function_options, as_graph_proto
        )
        return (proto, statistics) if return_optimize_report else proto

    def select_outputs(self, mask: Sequence[bool]) -> None:
        """Keeps the outputs whose mask is true."""
        if len(mask) != len(self.output_specs):
            raise OptionError(
                f"mask_outputs has {len(mask)} values for {len(self.output_specs)} outputs."
            )
        self.output_specs = [s for s, keep in zip(self.output_specs, mask, strict=True) if keep]
        self.store.keep_outputs(s.name for s in self.output_specs)

    def _check_expected(self) -> None:
        for kind, expected, found in (
            ("input", self.expected_inputs, self.input_names),
            ("output", self.expected_outputs, self.output_names),
        ):
            if expected is not None and list(expected) != found:
                raise OptionError(f"Expected {kind} names {list(expected)}, the graph has {found}.")

    @property
    def effective_ir_version(self) -> int:
        """IR version written in the model."""
        return self.ir_version or ir_version_for(self.main_opset)
