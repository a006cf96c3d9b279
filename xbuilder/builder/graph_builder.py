"""GraphBuilder, the facade of the package: builds a graph, holds a model and the facts about its
results. It holds no algorithm."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto

from ..errors import OptionError
from ..files.data_folder import DataFolder
from ..graph.graph import Graph
from ..graph.model_scope import ModelScope
from ..nested.bodies import iter_bodies
from ..nested.inlining import inline_rows
from ..operators.opsets import check_opset
from ..options import FunctionOptions, InferShapesOptions, PassOptions
from ..protos.exporting import export
from ..protos.importing import import_any
from ..protos.pretty import debug_text, pretty_graph
from ..support.argument_types import PATH, check_names, check_type, shown
from ..support.gc_pause import without_gc
from ..support.rows import Row, complete_rows
from .export_origin import ExportOrigin
from .graph_builder_functions import BuilderFunctions
from .graph_builder_names import BuilderNames
from .graph_builder_opset import Opset
from .graph_builder_passes import BuilderPasses
from .graph_builder_views import BuilderViews
from .optimization_options import OptimizationOptions, as_options

_ALL_FLAGS = sum(InferShapesOptions)


class GraphBuilder(BuilderViews, BuilderNames, BuilderFunctions, BuilderPasses):
    """Builds, holds, queries and optimizes one graph, which is :attr:`graph`.

    :param target_opset_or_existing_proto: an opset, `{domain: version}`, a ModelProto, GraphProto,
        FunctionProto, a path to a file, an `onnx_ir.Model` or a `torch.onnx.ONNXProgram`;
        a proto is never modified
    :param input_names: names of the inputs that will be added, checked at the end
    :param as_function: the graph is the body of a local function, its inputs may have no type
    :param optimization_options: :class:`OptimizationOptions`, or `"default+onnxruntime"`
    :param args: see :class:`ExportOrigin`, as all parameters an exporter gives
    :param kwargs: see :class:`ExportOrigin`
    :param ir_version: IR version to write, the lowest possible by default
    :param verbose: verbosity
    :param infer_shapes_options: bool or :class:`InferShapesOptions`; None infers types and shapes
        (`BUILDER`) when a model is given
    :param raise_list: an exception is raised when a result of this name is made (debugging)
    :param dynamic_shapes: see :class:`ExportOrigin`
    :param local_domain: domain of the local functions made by this builder
    :param signature: see :class:`ExportOrigin`
    :param check_empty_source: every initializer must have a source
    :param graph_module: see :class:`ExportOrigin`, shown by :meth:`pretty_text`
    :param exe_path: how the graph was obtained, written in error messages
    :param output_names: names of the outputs that will be added, checked at the end
    :param output_dynamic_shapes: see :class:`ExportOrigin`
    :param opsets: versions of the domains, for a GraphProto, which does not hold them
    :param allowed_roots: folders external data may be read from, beside the model's
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
        optimization_options: OptimizationOptions | str | None = None,
        args: Any = None,
        kwargs: Any = None,
        ir_version: int | None = None,
        verbose: int = 0,
        infer_shapes_options: bool | InferShapesOptions | None = None,
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
        base_dir: str | Path | None = None,
    ):
        for name, names in (
            ("input_names", input_names),
            ("output_names", output_names),
            ("raise_list", raise_list),
        ):
            check_names(name, names, optional=True)
        check_type("exe_path", exe_path, str, optional=True)
        scope = _new_scope(
            opsets,
            optimization_options,
            infer_shapes_options,
            verbose,
            local_domain,
            as_function,
            ir_version,
            _folder(base_dir, allowed_roots),
        )
        self._hold(Graph(scope))
        self.export_origin = ExportOrigin(
            args, kwargs, dynamic_shapes, output_dynamic_shapes, signature, graph_module, exe_path
        )
        self.expected_inputs, self.expected_outputs = input_names, output_names
        self.raise_list = raise_list or set()
        self.check_empty_source = check_empty_source
        if isinstance(target_opset_or_existing_proto, int):
            scope.opsets[""] = check_opset(target_opset_or_existing_proto)
        elif isinstance(target_opset_or_existing_proto, Mapping):
            scope.opsets.update(_versions(target_opset_or_existing_proto))
        else:
            _check_no_opsets(target_opset_or_existing_proto, opsets)
            import_any(self.graph, target_opset_or_existing_proto)

    @classmethod
    def of(cls, graph: Graph) -> GraphBuilder:
        """A builder of a graph that exists, the body of a node for instance."""
        builder = cls.__new__(cls)
        builder._hold(graph)
        builder.export_origin = ExportOrigin()
        builder.expected_inputs = builder.expected_outputs = None
        builder.raise_list = set()
        builder.check_empty_source = False
        return builder

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise OptionError(
            "A GraphBuilder is not copied, nor pickled: make another one of its model, "
            "GraphBuilder(builder.to_onnx(optimize=False, inline=False))."
        )

    def child(self) -> GraphBuilder:
        """A builder for the body of a node of this graph, which sees the results of this one."""
        return GraphBuilder.of(self.graph.child())

    def _hold(self, graph: Graph) -> None:
        self.graph, self.facts = graph, graph.facts
        self.op = Opset(self)
        self.anyop = Opset(self, allow_unknown=True)

    def iter_subgraph_builders(self) -> Iterator[GraphBuilder]:
        """Builders of the subgraphs, at every depth."""
        return map(GraphBuilder.of, iter_bodies(self.graph))

    def pretty_text(self, add_fx_graph: bool = False, recursive: bool = True) -> str:
        """The graph as readable text.

        :param add_fx_graph: adds the fx graph it comes from, if there is one
        :param recursive: shows subgraphs
        """
        text = pretty_graph(self.graph, recursive)
        module = self.export_origin.graph_module
        return f"{text}\n\n{module.graph}" if add_fx_graph and module is not None else text

    def get_debug_msg(self, limit: int = 1000) -> str:
        """A long text for error messages: inputs, constraints, the last nodes.

        :param limit: maximum number of lines
        """
        return debug_text(self.graph, limit, self.export_origin.exe_path)

    # -- ending the construction

    @without_gc
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
        :param large_model: returns a :class:`ModelContainer`, big initializers are kept out of the
            proto
        :param external_threshold: bytes from which an initializer is big
        :param return_optimize_report: also returns the statistics
        :param inline: inlines local functions
        :param function_options: makes a FunctionProto; with `return_initializer=True`, whose
            weights are inputs, and a dictionary of what a model needs to call it, see
            :func:`xbuilder.protos.exporting.export_weighted_function`
        :param mask_outputs: outputs to keep
        :param as_graph_proto: returns a GraphProto
        :return: ModelProto, FunctionProto, GraphProto or container; with the statistics if asked
        :raises OptionError: two options contradict each other
        """
        if as_graph_proto and (large_model or function_options is not None):
            raise OptionError("as_graph_proto cannot be used with large_model or function_options.")
        check_type("function_options", function_options, FunctionOptions, optional=True)
        check_type("external_threshold", external_threshold, int, "a number of bytes")
        if mask_outputs is not None:
            self.select_outputs(mask_outputs)
        self._check_expected()
        statistics: list[Row] = []
        if inline and self.graph.functions and self.graph.parent is None:
            statistics.extend(complete_rows(inline_rows(self.graph)))
        statistics.extend(self.optimize() if optimize else [])
        proto: ModelProto | GraphProto | FunctionProto = export(
            self.graph, large_model, external_threshold, function_options, as_graph_proto
        )
        return (proto, statistics) if return_optimize_report else proto

    def select_outputs(self, mask: Sequence[bool]) -> None:
        """Keeps the outputs whose mask is true.

        :param mask: one value for each output
        :raises OptionError: there are more or fewer values
        """
        specs = self.graph.output_specs
        check_type("mask_outputs", mask, Collection, "one bool for each output")
        for value in mask:
            check_type("mask_outputs", value, (bool, np.bool_), "one bool for each output")
        if len(mask) != len(specs):
            raise OptionError(f"mask_outputs has {len(mask)} values for {len(specs)} outputs.")
        specs[:] = [s for s, keep in zip(specs, mask, strict=True) if keep]
        self.graph.store.keep_outputs(s.name for s in specs)

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
        return self.graph.ir_version


def _new_scope(
    opsets: Mapping[str, int] | None,
    options: OptimizationOptions | str | None,
    infer_options: bool | InferShapesOptions | None,
    verbose: int,
    local_domain: str,
    is_function: bool,
    ir_version: int | None,
    folder: DataFolder,
) -> ModelScope:
    """Checks the arguments of a builder that all graphs of its model share, and holds them."""
    check_type("opsets", opsets, Mapping, "a dictionary {domain: version}", optional=True)
    check_type("verbose", verbose, int, optional=True)
    check_type("local_domain", local_domain, str, optional=True)
    check_type("ir_version", ir_version, int, optional=True)
    if ir_version is not None and ir_version < 1:
        raise OptionError(f"ir_version expects an integer >= 1, not {ir_version}.")
    return ModelScope(
        opsets=dict(opsets or {}),
        options=as_options(options) or PassOptions(),
        infer_options=_infer_options(infer_options),
        verbose=verbose,
        local_domain=local_domain,
        is_function=is_function,
        ir_version=ir_version,
        folder=folder,
    )


def _folder(base_dir: str | Path | None, allowed_roots: Sequence[str | Path]) -> DataFolder:
    """Checks the folders external data may be read from, and holds them."""
    check_type("base_dir", base_dir, PATH, "a folder", optional=True)
    check_type("allowed_roots", allowed_roots, Collection, "several folders", optional=True)
    if isinstance(allowed_roots, PATH) or not all(isinstance(r, PATH) for r in allowed_roots):
        raise OptionError(f"allowed_roots expects several folders, not {shown(allowed_roots)}.")
    return DataFolder(base_dir, tuple(allowed_roots))


def _versions(opsets: Mapping[str, int]) -> Mapping[str, int]:
    for domain, version in opsets.items():
        check_type("A domain of opsets", domain, str)
        if domain == "":
            check_opset(version)
        elif not isinstance(version, int):
            raise OptionError(f"The version of domain {domain!r} is an integer, not {version!r}.")
    return opsets


def _check_no_opsets(proto: Any, opsets: Mapping[str, int] | None) -> None:
    if opsets and not isinstance(proto, GraphProto):
        raise OptionError(
            f"opsets={dict(opsets)} is for a GraphProto: {type(proto).__name__} holds its versions."
        )


def _infer_options(options: bool | InferShapesOptions | None) -> InferShapesOptions:
    if options is None:
        return InferShapesOptions.BUILDER
    if isinstance(options, bool):
        return InferShapesOptions.BUILDER if options else InferShapesOptions.NONE
    if not isinstance(options, int) or options & ~_ALL_FLAGS:
        raise OptionError(
            f"infer_shapes_options expects a bool or InferShapesOptions, not {options!r}."
        )
    return InferShapesOptions(options)
