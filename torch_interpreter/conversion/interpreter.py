"""Walks through an fx graph and calls one converter per node.

Invariants:

* only live nodes are converted, so a dead branch or a runtime assertion never stops a conversion,
* torch's metadata gives type and shape of every result, the interpreter records them,
* a weight becomes an initializer without copy, the first time it is needed.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from onnx import helper

from xbuilder import GraphBuilder
from xbuilder.nodes.sources import NodeSource
from xbuilder.nodes.value_infos import IOSpec

from ..aten import find_converter
from ..aten.symbolic import tensor_form
from ..checking.missing_weights import WEIGHT
from ..common.errors import ConversionError, FunctionNotFoundError, add_note
from ..common.types import not_dense, to_onnx_type
from ..dispatch.convertible import CHECKS
from ..dispatch.dispatcher import AsLibraryConverter, Dispatcher, candidate_names, canonical_name
from ..inputs.dynamic_shapes import DimensionNamer
from ..writing.complex_names import COMPLEX, Complex, is_complex, real_facts, real_tensor
from ..writing.fx_nodes import fake_value, has_complex, live_nodes, python_value, source_line
from ..writing.graph_writer import Shape
from ..writing.naming import name_results
from ..writing.registry import Converter, OutputFacts, call_converter, is_registered
from ..writing.sources import node_source, write_sources
from ..writing.storage import storage_arguments
from ..writing.symbols import KIND_TYPES, SYM_KINDS, SymScalar, scalar0d, vector1d
from .accepted_types import check_types
from .empty_results import empty_results
from .function_plan import FunctionPlan, Group
from .kernels import KernelWriter
from .older_opsets import advice

#: ONNX operators neither read nor make a complex tensor
_COMPLEX_EDGE = "The {} {!r} is complex, give torch.view_as_real of it to the model or return that."


@contextlib.contextmanager
def _explained(explain: Callable[[], str], by_user: bool = False) -> Iterator[None]:
    """Adds the failing node to errors; an error raised by the user's code only gets a note."""
    try:
        yield
    except Exception as e:
        if by_user:
            add_note(e, explain())
            raise
        if isinstance(e, FunctionNotFoundError | ConversionError):
            raise
        what, _, details = explain().partition("\n")
        raise ConversionError(f"{what}: {type(e).__name__}: {e}\n{details}") from e


@dataclass(frozen=True, slots=True)
class Region:
    """A graph and the nodes to convert in it.

    :param module: the owner of the graph
    :param live: the nodes to convert
    :param wanted: nodes needed outside of the graph, besides those that live nodes use
    """

    module: torch.fx.GraphModule
    live: set[torch.fx.Node]
    wanted: set[torch.fx.Node]


#: converts a node that owns other graphs: interpreter, node, arguments, named arguments
Handler = Callable[["Interpreter", torch.fx.Node, list[Any], dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class NestedConverters:
    """The converters of nodes that need an interpreter of another graph.

    :param operators: name of a higher-order operator -> its converter
    :param group: converts a group of nodes into a local function: interpreter, graph, nodes, values
    """

    operators: Mapping[str, Handler]
    group: Callable[[Interpreter, Region, Group, dict[torch.fx.Node, Any]], None]


def _check_dense(name: str, value: torch.Tensor) -> None:
    """Refuses a sparse tensor, even one that a graph only reads as a dense one."""
    if problem := not_dense(value):
        raise ConversionError(f"{name} {problem}")


class Interpreter:
    """Converts the nodes of an fx graph into ONNX nodes.

    :param builder: the GraphBuilder that receives the nodes
    :param namer: prints the dimensions
    :param nested: the converters of nodes that own other graphs
    :param dispatcher: the user's converters, they come first
    :param progress: wraps the iteration over the nodes
    :param plan: the nodes that become local functions, none by default
    :param cpu_kernels: casts around the operators without kernel on CPU
    :param sources: writes where each node comes from in its metadata, its module in its name
    """

    def __init__(
        self,
        builder: GraphBuilder,
        namer: DimensionNamer,
        nested: NestedConverters,
        dispatcher: Dispatcher | None = None,
        progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
        plan: FunctionPlan | None = None,
        cpu_kernels: bool = True,
        sources: bool = True,
    ) -> None:
        self.g = builder
        self.cpu_kernels = cpu_kernels
        self.sources = sources
        # the builder that receives the local functions
        self.root = builder
        self.namer = namer
        self.nested = nested
        self.dispatcher = dispatcher
        self.progress = progress
        self.plan = plan or FunctionPlan()
        # the first module of the stack of a node is the model itself
        self.depth: int | None = 1 if plan is not None else None
        # in a function, the prefix of the names in the model; it is removed from the names, and
        # numbers are too, so that two functions doing the same are equal
        self.prefix = ""
        self.output_names: dict[tuple[torch.fx.Node, int | None], str] = {}
        # the node whose conversion began last, and the one that owns the graph if it is a body
        self.current: torch.fx.Node | None = None
        self.owner: torch.fx.Node | None = None

    # -- graph ---------------------------------------------------------------------------

    def run(
        self,
        module: torch.fx.GraphModule,
        values: dict[torch.fx.Node, Any],
        outputs: Iterable[Any] | None = None,
    ) -> Any:
        """Converts a graph whose placeholders already have a value.

        :param module: the module owning the graph
        :param values: value of each placeholder, completed with every node converted
        :param outputs: the nodes to compute, the outputs of the graph by default
        :return: the outputs, fx nodes being replaced by results
        """
        outputs = None if outputs is None else list(outputs)
        live = live_nodes(module.graph, outputs)
        wanted = {n for n in outputs or () if isinstance(n, torch.fx.Node)}
        nodes = [n for n in module.graph.nodes if n in live and n.op != "placeholder"]
        return self.convert_nodes(Region(module, live, wanted), nodes, values)

    def convert_nodes(
        self, region: Region, nodes: Sequence[torch.fx.Node], values: dict[torch.fx.Node, Any]
    ) -> Any:
        """Converts some nodes of a graph in order, see :meth:`run`."""
        for step in self.progress(self.plan.steps(nodes, self.depth)):
            size = len(self.g.store)
            if isinstance(step, Group):
                self.nested.group(self, region, step, values)
            elif step.op == "output":
                return self._map(step.args[0], values)
            elif step.op == "get_attr":
                values[step] = self._get_attr(region.module, str(step.target))
            elif step.op in ("call_function", "call_method"):
                self.current = step
                values[step] = self._convert(region.module, step, values)
            else:
                raise ConversionError(
                    f"Unexpected fx node {step.format_node()}: a graph with {step.op!r} must go "
                    f"through torch.export first."
                )
            if self.sources and len(self.g.store) > size:
                write_sources(self.g, size, self._source(step))
        return None

    def _source(self, step: torch.fx.Node | Group) -> NodeSource:
        """The source of a node or of the call of a function."""
        node = step.nodes[0] if isinstance(step, Group) else step
        source = node_source(node, self.short_name(node), self.prefix, self.owner)
        if isinstance(step, Group) and step.path:
            return source.called(step.path.removeprefix(self.prefix), step.name)
        return source

    def inline(self, module: torch.fx.GraphModule, args: Iterable[Any]) -> Any:
        """Inlines the graph of a submodule at this place, with the given arguments."""
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        return self.run(module, dict(zip(placeholders, args, strict=True)))

    def child(self) -> Interpreter:
        """An interpreter for a subgraph, which sees the results of this graph."""
        child = self._with(self.g.child())
        child.root, child.depth, child.prefix = self.root, self.depth, self.prefix
        has_modules = self.current is not None and self.current.meta.get("nn_module_stack")
        child.owner = self.current if has_modules else self.owner
        return child

    def for_function(self, builder: GraphBuilder, group: Group) -> Interpreter:
        """An interpreter for the body of a function, which sees nothing of this graph.

        :param builder: receives the body
        :param group: the nodes of the body
        """
        body = self._with(builder)
        body.root, body.depth, body.prefix = self.root, group.depth, f"{group.path}."
        return body

    def _with(self, builder: GraphBuilder) -> Interpreter:
        """An interpreter with the same options for another builder."""
        return Interpreter(
            builder,
            self.namer,
            self.nested,
            self.dispatcher,
            plan=self.plan,
            cpu_kernels=self.cpu_kernels,
            sources=self.sources,
        )

    def _get_attr(self, module: torch.fx.GraphModule, target: str) -> Any:
        value: Any = module
        for part in target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            return self.initializer(target, value)
        return value

    def initializer(self, name: str, value: torch.Tensor) -> str:
        """Adds a weight or a constant, under its own name when that name is free."""
        _check_dense(name, value)
        held = real_tensor(value.detach())
        made = self.g.make_initializer(
            name, held, parameter_name=name, give_unique=True, allow_empty=True
        )
        return Complex(made) if is_complex(value) else made

    def _map(self, arg: Any, values: Mapping[torch.fx.Node, Any]) -> Any:
        """Replaces fx nodes by results in the arguments of a node."""
        if isinstance(arg, torch.fx.Node):
            return values[arg]
        if isinstance(arg, list | tuple):
            return [self._map(a, values) for a in arg]
        if isinstance(arg, Mapping):
            return {k: self._map(v, values) for k, v in arg.items()}
        if isinstance(arg, slice):
            return slice(*(self._map(v, values) for v in (arg.start, arg.stop, arg.step)))
        known = python_value(arg)
        return arg if known is None else known

    # -- nodes ---------------------------------------------------------------------------

    def _convert(
        self, module: torch.fx.GraphModule, node: torch.fx.Node, values: dict[torch.fx.Node, Any]
    ) -> Any:
        fake = fake_value(node)
        known = python_value(fake)
        if known is not None:
            return known
        args = self._arguments(node, values)
        kwargs = self._map(dict(node.kwargs), values)
        name = canonical_name(node.target)
        if name in CHECKS:
            return None
        if node.target is operator.getitem and isinstance(args[0], list | tuple):
            return args[0][args[1]]
        on_complex = has_complex(node)
        if (special := self.nested.operators.get(name)) is not None and not on_complex:
            return special(self, node, args, kwargs)
        converter = self._find(node, name, on_complex, args, kwargs)
        registered = is_registered(converter)
        if registered and (empty := empty_results(node, fake)) is not None:
            return self.record(node, fake, self._constants(node, empty))
        names = self.allocate(node, fake)
        expected, size = self.facts(node, fake, names), len(self.g.store)

        def explain() -> str:
            return (
                f"The conversion of {name} failed on fx node {node.name!r}\n"
                f"  arguments: {args} {kwargs}\n"
                f"  converter: {converter.__module__}.{converter.__name__}\n"
                f"  source: {source_line(node)}{advice(self.g.main_opset)}"
            )

        with _explained(explain, isinstance(converter, AsLibraryConverter)):
            writer = KernelWriter(self.g, self.cpu_kernels) if registered else self.g
            result = call_converter(converter, writer, expected, args, kwargs)
        with _explained(explain):
            check_types(self.g.graph, size)
            return self.record(node, fake, name_results(self.g, size, result, names))

    def _constants(self, node: torch.fx.Node, values: list[torch.Tensor] | torch.Tensor) -> Any:
        if isinstance(values, list):
            return [self._constants(node, v) for v in values]
        return self.initializer(self.short_name(node), values)

    def _arguments(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any]) -> list[Any]:
        """The results that a node reads.

        :raises ConversionError: the storage belongs to a tensor outside of its function
        """
        args = storage_arguments(node)
        try:
            mapped: list[Any] = self._map(args, values)
        except KeyError as e:
            raise ConversionError(
                f"{canonical_name(node.target)} reads the storage of a tensor which is outside of "
                f"its function: fx node {node.name!r}\n  source: {source_line(node)}"
            ) from e
        return mapped

    def _find(
        self, node: torch.fx.Node, name: str, on_complex: bool, args: Any, kwargs: Any
    ) -> Converter:
        """Looks for a converter: the user's dispatcher, the library, the dispatcher's fallback.

        :param node: the node
        :param name: the canonical name of its target
        :param on_complex: it has a complex tensor, for which converters have their own names
        :param args: its arguments
        :param kwargs: its named arguments
        :raises FunctionNotFoundError: no converter is found
        """
        is_method = node.op == "call_method"
        known = f"method.{name}" if is_method else tensor_form(name, args)
        fct = find_converter(f"{COMPLEX}{known}" if on_complex else known)
        if self.dispatcher is not None:

            def explain() -> str:
                return f"The dispatcher fails on {name}, fx node {node.name!r}: {source_line(node)}"

            with _explained(explain, by_user=True):
                fct = self.dispatcher.choose(node.target, is_method, fct, args, kwargs, self.g)
        if fct is None:
            raise FunctionNotFoundError(self._not_found(node, on_complex))
        return fct

    def _not_found(self, node: torch.fx.Node, on_complex: bool) -> str:
        names = [n for n in candidate_names(node.target) if isinstance(n, str)]
        key = names[1] if len(names) > 1 else names[0]
        what = " on complex tensors, write it with torch.view_as_real" if on_complex else ""
        return (
            f"No converter for operator {canonical_name(node.target)!r}{what}, "
            f"fx node {node.name!r} = {node.format_node()}\n"
            f"  source: {source_line(node)}\n"
            f"  Register one: to_onnx(..., dispatcher=Dispatcher({{{key!r}: fct}})) with\n"
            f"  def fct(g, sts, outputs, *args, **kwargs): "
            f"return g.op.SomeOperator(*args, outputs=outputs)\n"
            f"  or decompose the operator: "
            f"to_onnx(..., export_options=ExportOptions(strategy='nostrict-dec')),\n"
            f"  or let torch.onnx try: to_onnx(..., dispatcher=OnnxScriptDispatcher())."
        )

    # -- outputs -------------------------------------------------------------------------

    def allocate(self, node: torch.fx.Node, fake: Any) -> list[str]:
        """Chooses the names of the results; an output of the model gets its final name."""
        prefix = self.short_name(node)
        if not isinstance(fake, list | tuple):
            found = self.output_names.get((node, None))
            return [found or self.g.unique_name(prefix)]
        return [
            self.output_names.get((node, i)) or self.g.unique_name(f"{prefix}_{i}")
            for i in range(len(fake))
        ]

    def short_name(self, node: torch.fx.Node) -> str:
        """The name of a node, without number in a function."""
        return re.sub(r"(_\d+)+$", "", node.name) if self.prefix else node.name

    def facts(self, node: torch.fx.Node, fake: Any, names: Sequence[str]) -> OutputFacts:
        """The facts of torch about the results of a node, and their names."""
        types: list[int] = []
        shapes: list[Shape | None] = []
        for value in fake if isinstance(fake, list | tuple) else [fake]:
            is_tensor = isinstance(value, torch.Tensor)
            itype, shape = real_facts(self.namer, value) if is_tensor else (0, None)
            types.append(itype)
            shapes.append(shape)
        return OutputFacts(types, shapes, node, names)

    def record(self, node: torch.fx.Node, fake: Any, result: Any) -> Any:
        """Records types and shapes of the results a converter returned."""
        if isinstance(fake, list | tuple):
            results = list(result) if isinstance(result, list | tuple) else [result]
            if len(results) != len(fake):
                raise ConversionError(
                    f"The converter of {canonical_name(node.target)} returns {len(results)} "
                    f"results for fx node {node.name!r}, torch has {len(fake)}."
                )
            return [self.record(node, f, r) for f, r in zip(fake, results, strict=True)]
        if result is None or not isinstance(result, str):
            return result
        if (kind := SYM_KINDS.get(type(fake))) is not None:
            return result if isinstance(result, SymScalar) else SymScalar(result, kind)
        if isinstance(fake, torch.Tensor):
            itype, shape = real_facts(self.namer, fake)
            self.g.set_type(result, itype)
            self.g.set_shape(result, shape)
        return Complex(result) if is_complex(fake) else result

    # -- inputs and outputs of the model -------------------------------------------------

    def declare_input(self, name: str, fake: Any) -> Callable[[], Any]:
        """Declares an input of the model and returns a function giving its result."""
        if is_complex(fake):
            raise ConversionError(_COMPLEX_EDGE.format("input", name))
        if isinstance(fake, torch.Tensor):
            _check_dense(name, fake)
            self.g.make_tensor_input(name, to_onnx_type(fake.dtype), self.namer.shape(fake.shape))
            return lambda: name
        kind = SYM_KINDS[type(fake)]
        itype = KIND_TYPES[kind]
        is_dimension = kind is int and self.namer.dim(fake) == name
        self.g.make_tensor_input(name, itype, (), is_dimension=is_dimension)
        return lambda: SymScalar(vector1d(self.g, name, itype), kind)

    def declare_weight(self, name: str, value: torch.Tensor) -> str:
        """Declares a weight without data as an input of the model."""
        declared = name
        while declared in self.g.names:
            declared += "_"
        itype, shape = to_onnx_type(value.dtype), self.namer.shape(value.shape)
        return self.g.make_tensor_input(declared, itype, shape, marker=f"{WEIGHT}{name}")

    def declare_output(
        self,
        name: str,
        value: Any,
        allow_untyped: bool = False,
        shape: Sequence[int | str] | None = None,
    ) -> None:
        """Declares an output of the model.

        :param name: name of the output
        :param value: a result or a python number
        :param allow_untyped: accepts an output whose type is unknown
        :param shape: the declared shape, the known one by default
        """
        g = self.g
        if isinstance(value, Complex):
            raise ConversionError(_COMPLEX_EDGE.format("output", name))
        if not isinstance(value, str):
            value = g.make_initializer("", torch.tensor(value))
        elif isinstance(value, SymScalar):
            value = scalar0d(g, value, g.get_type(value))
        if value != name:
            g.op.Identity(value, outputs=[name])
            if g.has_type(value):
                g.set_type(name, g.get_type(value))
            if g.has_shape(value):
                g.set_shape(name, g.get_shape(value))
        g.make_tensor_output(
            name,
            g.get_type(name) if g.has_type(name) else None,
            g.get_shape(name) if g.has_shape(name) else None,
            indexed=False,
            allow_untyped_output=allow_untyped,
        )
        if shape is not None:
            info = helper.make_tensor_value_info(name, g.get_type(name), shape)
            g.output_specs[-1] = IOSpec(name, info)
