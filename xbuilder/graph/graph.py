"""One graph of a model, or the body of one of its nodes: nodes, facts, constants, inputs and
outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from onnx import FunctionProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from ..constants.initializers import as_initializer, initializer_type_shape
from ..constants.table import ConstantTable
from ..dims import Constraints, Dim, Shape, normalize, symbols
from ..dims.scope import DimensionScope, as_written
from ..errors import OptionError
from ..facts.fact_reading import FactReading
from ..facts.facts import FactTable
from ..nodes.attributes import attribute_value, attributes_of, find_attribute
from ..nodes.functions import FunctionKey, function_key
from ..nodes.record import NodeRecord
from ..nodes.value_infos import IOSpec
from ..operators.domains import main_domain
from ..operators.opsets import ir_version_for, newest_ml
from ..shapes.context import FactSources
from ..store.graph_store import GraphStore
from ..support.names import NameAllocator
from .model_scope import ModelScope
from .notes import Notes


class Graph(FactReading):
    """The main graph of a model, the body of a node, or the body of a local function.

    It holds data and answers small questions. The functions that change it are in the packages
    above: inference, importing, passes, the pattern engine.

    :param scope: state shared with the other graphs of the model
    :param parent: the outer graph, for the body of a node; see :meth:`child`
    :param meanings: the dimensions of the outer graph that those declared by a body stand for
    :param constraints: constraints on dimensions, none by default
    """

    def __init__(
        self,
        scope: ModelScope,
        parent: Graph | None = None,
        meanings: Mapping[str, Dim] | None = None,
        constraints: Constraints | None = None,
    ):
        self.scope = scope
        self.parent = parent
        constraints = Constraints() if constraints is None else constraints
        self.dimensions = DimensionScope(scope.dimensions, constraints, meanings)
        self.store = GraphStore()
        self.facts = FactTable(
            constraints,
            self.dimensions.is_generated,
            None if parent is None else parent.facts,
            scope.warn_wrong_declaration,
            self.store.producers.get,
        )
        self.constants: ConstantTable = ConstantTable(
            self.store,
            self.facts,
            scope.opsets,
            scope.folder,
            None if parent is None else parent.constants,
            scope.totals.budget,
        )
        self.store.subscribe(self.facts)
        self.store.subscribe(self.constants)
        #: sources of facts the shape functions read
        self.sources = FactSources(
            self.facts.__getitem__,
            self.constants.value,
            _attributes_reader(self.store),
            self.dimensions.new,
            constraints,
        )
        self.input_specs: list[IOSpec] = []
        self.output_specs: list[IOSpec] = []
        self.sparse_initializers: list[SparseTensorProto] = []
        #: types and shapes of results the file declares
        self.declared: dict[str, ValueInfoProto] = {}
        #: ModelProto, GraphProto or FunctionProto it was read from
        self.origin: Any = None
        #: False to add nodes without inferring anything
        self.infer_nodes = True
        #: True when the nodes of the file were added without inferring anything
        self.is_uninferred = False
        #: what passes and the engine remember about this graph
        self.notes = Notes()

    def child(self, meanings: Mapping[str, Dim] | None = None) -> Graph:
        """An empty graph for the body of a node of this one; it sees the results of this one.

        :param meanings: the dimensions of this graph that those declared by the body stand for
        """
        return Graph(self.scope, self, meanings or {}, self.facts.constraints.copy())

    def for_call(self, key: FunctionKey, opsets: Mapping[str, int]) -> Graph:
        """An empty graph for the body of a function this one calls; it only sees its arguments.

        :param key: the function
        :param opsets: versions of its domains
        """
        return Graph(self.scope.for_call(key, opsets), constraints=self.facts.constraints.copy())

    def declare_input_shape(self, shape: Shape | None) -> None:
        """Takes the names of the dimensions of an input, and notes those the options declare
        positive, see `positive_dims` of :class:`xbuilder.OptimizationOptions`.

        :param shape: its shape, None if it is not known
        """
        self.dimensions.take(shape)
        wanted = self.scope.options.positive_dims
        if self.parent is not None or not wanted:
            return
        named = set() if isinstance(wanted, bool) else set(map(normalize, wanted))
        for dim in shape or ():
            for name in {dim, *symbols(dim)} if isinstance(dim, str) else ():
                if name == dim if wanted is True else normalize(as_written(name)) in named:
                    self.facts.constraints.add_at_least(name, 1)

    # -- its place in the model

    @property
    def root(self) -> Graph:
        """The outermost graph."""
        graph = self
        while graph.parent is not None:
            graph = graph.parent
        return graph

    @property
    def is_function(self) -> bool:
        """Whether the graph is the body of a local function, not a body nested in one."""
        return self.scope.is_function and self.parent is None

    @property
    def opsets(self) -> dict[str, int]:
        """Version of every domain."""
        return self.scope.opsets

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""
        return self.scope.opsets.get("", 0)

    @property
    def ir_version(self) -> int:
        """IR version written in the model."""
        return self.scope.ir_version or ir_version_for(self.main_opset)

    def add_domain(self, domain: str, version: int | None = None) -> None:
        """Registers a domain, nothing happens if it is known.

        :param domain: the domain
        :param version: its version, the newest one of onnx for `ai.onnx.ml` and 1 for others by
            default
        """
        domain = main_domain(domain)
        if domain not in self.scope.opsets:
            default = newest_ml() if domain == "ai.onnx.ml" else 1
            self.scope.opsets[domain] = default if version is None else version

    @property
    def functions(self) -> dict[FunctionKey, FunctionProto]:
        """Local functions of the model."""
        return self.scope.functions

    def calls_function(self, record: NodeRecord) -> bool:
        """Whether a node calls a local function."""
        functions = self.scope.functions
        return bool(functions) and function_key(self.store.proto(record)) in functions

    # -- names

    @property
    def names(self) -> NameAllocator:
        """Names of results, taken in any graph of the model."""
        return self.scope.names

    def unique_name(self, prefix: str) -> str:
        """Reserves a name of result that no graph of the model uses."""
        return self.scope.names.unique(prefix)

    def unique_node_name(self, prefix: str) -> str:
        """Reserves a name of node."""
        return self.scope.node_names.unique(prefix)

    def has_name(self, name: str) -> bool:
        """Whether a result of this graph, or of an outer one, has this name."""
        if name in self.store.producers or self.is_given(name):
            return True
        return self.parent is not None and self.parent.has_name(name)

    def has_any_name(self, names: Set[str]) -> bool:
        """Whether :meth:`has_name` is true of one of some names. Cost: O(names)."""
        for table in (self.store.producers, self.constants.initializers):
            if not table.keys().isdisjoint(names):
                return True
        if any(map(self.is_given, self.facts.keys() & names)):
            return True
        return self.parent is not None and self.parent.has_any_name(names)

    def is_given(self, name: str) -> bool:
        """Whether a name is an input or an initializer (sparse ones included) of this graph."""
        if name in self.constants.initializers:
            return True
        if not self.facts.is_local(name):  # inputs and sparse initializers always have facts
            return False
        if any(spec.name == name for spec in self.input_specs):
            return True
        return any(s.values.name == name for s in self.sparse_initializers)

    # -- content

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes, in topological order; do not change them."""
        return [self.store.proto(record) for record in self.store.nodes]

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [spec.name for spec in self.input_specs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [spec.name for spec in self.output_specs]

    @property
    def input_symbols(self) -> dict[str, str]:
        """Symbols of the shapes of the inputs, with the first place they appear: `x[0]`."""
        found: dict[str, str] = {}
        for spec in self.input_specs:
            for axis, dim in enumerate(self.facts[spec.name].shape or ()):
                if isinstance(dim, str):
                    for symbol in sorted(symbols(dim)):
                        found.setdefault(symbol, f"{spec.name}[{axis}]")
        return found

    def get_attribute_value(self, node: NodeProto, name: str, default: Any = None) -> Any:
        """The python value of an attribute, a default if the node does not have it."""
        att = find_attribute(node, name)
        return default if att is None else attribute_value(att, self.constants.read_tensor)

    def make_initializer(
        self,
        name: str,
        value: Any,
        external: bool = False,
        msg: str = "",
        parameter_name: str | None = None,
        source: str = "",
        allow_empty: bool = True,
        give_unique: bool = False,
    ) -> str:
        """Adds a constant, see :meth:`xbuilder.GraphBuilder.make_initializer`.

        :raises OptionError: the name is taken, or the array is empty
        """
        value = as_initializer(value)
        if not allow_empty:
            _check_not_empty(name, value, msg)
        if not name and parameter_name:
            name = self.unique_name(parameter_name)
        elif not name:
            name = self.constants.shared_name(value)
            if name:
                return name
            name = self.unique_name("init_")
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
            self.constants.sources[name] = source
        if external:
            self.constants.external_names.add(name)
        if parameter_name:
            self.constants.parameter_names.add(name)
        return name

    def derived_initializer(self, old: str, value: Any) -> str:
        """Adds a constant derived from another one, unless an equal small one exists. Returns its
        name.

        The pass that runs the patterns gives it the name of the old one, see
        :func:`xbuilder.passes.derived_names.take_original_names`.
        """
        table = self.constants
        name = table.shared_name(value)
        if not name:
            origin = table.derived.get(old, old)
            name = self.make_initializer(origin, value, give_unique=True)
            table.derived[name] = origin
        return name


def _attributes_reader(store: GraphStore) -> Callable[[NodeRecord], dict[str, Any]]:
    return lambda record: attributes_of(store.proto(record))


def _check_not_empty(name: str, value: Any, msg: str) -> None:
    """Refuses an array without element, unless it is a list of integers: a shape, axes."""
    elem_type, shape = initializer_type_shape(value)
    if 0 in shape and (elem_type != TensorProto.INT64 or len(shape) != 1):
        raise OptionError(
            f"Initializer {name!r} of shape {shape} has no element{msg and ', ' + msg}; "
            "use allow_empty=True if this is what you want."
        )
