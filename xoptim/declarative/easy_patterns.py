"""Patterns written as two functions: the graph to match and the graph to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from onnx import NodeProto

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.nodes.copies import copy_with_edges
from xbuilder.operators.opsets import newest_opset

from ..authoring.context import context_of
from ..authoring.patterns import MatchResult
from ..authoring.queries import GraphQueries
from .attributes import same_attributes
from .compiled import AFTER_SEARCH, Reasons, SearchedPattern, roots_and_filters
from .pattern_sources import check_same_inputs, input_types, matchability_error
from .written_graphs import (
    CompiledTemplate,
    GraphTemplate,
    compiled_pattern,
    template_from_function,
)


class EasyPatternOptimization(SearchedPattern):
    """A pattern given by two graphs.

    A subclass defines :meth:`match_pattern` and :meth:`apply_pattern`, with the same results.
    Everything but the inputs of `match_pattern` is matched exactly: operators, constants,
    attributes. Both orders of the inputs of a commutative operator are tried; a missing optional
    input stays missing. A constant matches a constant of its type, up to the precision of this
    type. A pattern written with float32 constants (a python float is one) therefore ignores
    float16 or double models, since the constants of `apply_pattern` would not have the type of the
    model. An argument of `match_pattern` may be annotated with the element type it must have,
    `x: TensorProto.FLOAT`, which is needed when only `apply_pattern` has constants; `str | None` or
    the default value None lets the input be missing; any other annotation than `str` is refused.
    The domains of the operators that are written are registered; a Split has as many results as
    `num_outputs` or its sizes say.

    ::

        class AddAddToAddMul(EasyPatternOptimization):
            def match_pattern(self, g, x: TensorProto.FLOAT):
                return g.op.Add(x, x)

            def apply_pattern(self, g, x):
                return g.op.Mul(x, np.array([2], dtype=np.float32))

            def validate_mapping(self, g, deleted_nodes, pattern_nodes=None):
                return g.has_rank(deleted_nodes[0].input[0])  # a scalar would get a dimension
    """

    def __init__(
        self, verbose: int = 0, priority: int | str | None = None, min_opset: int | None = None
    ):
        super().__init__(verbose, priority, min_opset)
        self._patterns: dict[int, CompiledTemplate] = {}
        self._applied: dict[int, GraphTemplate] = {}
        self._places: tuple[tuple[str, ...], ...] | None = None
        self._params: dict[str, Any] = {}

    # -- overridden by subclasses

    def match_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the graph to match, returns the name(s) of its results."""
        raise NotImplementedError(f"{type(self).__name__} must define match_pattern.")

    def apply_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the replacement, with the same inputs and results."""
        raise NotImplementedError(f"{type(self).__name__} must define apply_pattern.")

    def validate_mapping(
        self,
        g: GraphQueries,
        deleted_nodes: list[NodeProto],
        pattern_nodes: list[NodeProto] | None = None,
    ) -> bool:
        """Accepts or refuses a match.

        :param deleted_nodes: nodes of the graph, in the order of the pattern
        :param pattern_nodes: nodes of the pattern
        """
        return True

    def validate_attribute_mapping(
        self, g: GraphQueries, deleted_nodes: list[NodeProto], pattern_nodes: list[NodeProto]
    ) -> bool:
        """Compares attributes, which must be the same; a missing one has its default value."""
        return all(same_attributes(a, b) for a, b in zip(deleted_nodes, pattern_nodes, strict=True))

    def post_apply_pattern(
        self, g: GraphQueries, matched_nodes: list[NodeProto], nodes: list[NodeProto]
    ) -> list[NodeProto]:
        """Changes the new nodes before they are added, returns the nodes to add."""
        return nodes

    # -- parameters set by the validation

    def add_validate_param(self, name: str, value: Any) -> None:
        """Stores a value found by :meth:`validate_mapping` for `apply_pattern`."""
        self._params[name] = value

    def get_validate_param(self, name: str) -> Any:
        """The value given to :meth:`add_validate_param`.

        :raises OptionError: the value is unknown
        """
        if name not in self._params:
            raise OptionError(f"Pattern {self.name} has no value {name!r}: {list(self._params)}.")
        return self._params[name]

    # -- called by the engine

    def _where(self) -> tuple[tuple[str, ...], ...]:
        """The roots and the filters; the graph is written when they are first needed."""
        if self._places is None:
            pattern = self._pattern(max(self.min_opset, newest_opset() - 1))
            self._places = roots_and_filters([pattern.compiled])
        return self._places

    #: the operator of the node producing the first result
    roots: ClassVar[tuple[str, ...]] = cast(Any, property(lambda self: self._where()[0]))
    #: the operators one of which must give the first input of a root, any if it is empty
    after: ClassVar[tuple[str, ...]] = cast(Any, property(lambda self: self._where()[1]))
    #: the operators one of which must give an input of a root, any if it is empty
    reads: ClassVar[tuple[str, ...]] = cast(Any, property(lambda self: self._where()[2]))

    def _pattern(self, opset: int) -> CompiledTemplate:
        """The compiled graph to match, for an opset."""
        if opset not in self._patterns:
            graph = self._written("match", opset)
            self._check_match_graph(graph)
            self._patterns[opset] = compiled_pattern(graph)
        return self._patterns[opset]

    def _apply_graph(self, opset: int) -> GraphTemplate:
        """The replacement, written again for each match if it may depend on values found by the
        validation."""
        if opset not in self._applied:
            graph = self._written("apply", opset)
            if self._depends_on_match:
                return graph
            self._applied[opset] = graph
        return self._applied[opset]

    @property
    def _depends_on_match(self) -> bool:
        base, cls = EasyPatternOptimization, type(self)
        hooks = ("validate_mapping", "validate_attribute_mapping")
        return any(getattr(cls, h) is not getattr(base, h) for h in hooks)

    def _written(self, kind: str, opset: int) -> GraphTemplate:
        what = f"{type(self).__name__}.{kind}_pattern"
        return template_from_function(self._method(kind), opset, what)

    def _method(self, kind: str) -> Callable[..., Any]:
        name = f"{kind}_pattern"
        if getattr(type(self), name) is getattr(EasyPatternOptimization, name):
            raise NotImplementedError(f"{type(self).__name__} must define {name}.")
        method: Callable[..., Any] = getattr(self, name)
        return method

    def _check_match_graph(self, graph: GraphTemplate) -> None:
        """Checks that `match_pattern` can match and that `apply_pattern` has its inputs."""
        name = type(self).__name__
        reason = matchability_error(graph.nodes, graph.inputs, graph.outputs)
        if reason:
            raise OptionError(f"The graph of {name}.match_pattern cannot be looked for: {reason}.")
        applied, _ = input_types(self._method("apply"), f"{name}.apply_pattern")
        check_same_inputs(graph.types, applied, self.name)

    def display_pattern(
        self,
        g: GraphQueries | None = None,
        fct: Callable[..., Any] | None = None,
        opset: int | None = None,
    ) -> str:
        """Both graphs as text, or one of them.

        :param g: the optimizer, whose opset is used if *opset* is not given
        :param fct: `self.match_pattern` or `self.apply_pattern`, both if it is None
        :param opset: the opset of the graphs
        """
        from xbuilder.protos.pretty import pretty_node

        shown = {"match": self.match_pattern, "apply": self.apply_pattern}
        kinds = [kind for kind, graph in shown.items() if fct in (None, graph)]
        if not kinds:
            raise OptionError("fct is self.match_pattern or self.apply_pattern.")
        opset = opset or (g.main_opset if g else max(self.min_opset, newest_opset() - 1))
        lines = []
        for kind in kinds:
            try:
                graph = self._pattern(opset).graph if kind == "match" else self._apply_graph(opset)
            except OptionError:
                if kind == "match":
                    raise
                lines.append("apply depends on what validate_mapping keeps")
                continue
            lines.append(f"{kind}({', '.join(graph.inputs)}) -> {', '.join(graph.outputs)}")
            lines.extend(f"  {name} = {value}" for name, value in graph.constants.items())
            lines.extend(f"  {pretty_node(n)}" for n in graph.nodes)
        return "\n".join(lines)

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks for the graph of :meth:`match_pattern` with a node as its root."""
        pattern = self._pattern(g.main_opset)
        reasons = None if self.listener is None else Reasons()
        for records, bound in pattern.compiled.matches(g, g.record(node), reasons):
            nodes = [g.store.proto(records[i]) for i in pattern.order]
            self._params = {}
            reason = self._refusal(g, pattern.graph, bound, nodes)
            if not reason:
                return self._result(g, pattern.graph, bound, nodes)
            if reasons is not None:
                reasons.say(AFTER_SEARCH, records, "{}", reason)
        if reasons is None:
            return None
        context_of(g).visited = reasons.nodes or [g.record(node)]
        return self.none(node, None, reasons.best)

    def _refusal(
        self,
        g: GraphQueries,
        graph: GraphTemplate,
        bound: dict[str, str],
        nodes: list[NodeProto],
    ) -> str:
        """The reason why a candidate is not a match, an empty string if it is one."""
        made = {bound[o] for n in graph.nodes for o in n.output if bound.get(o)}
        results = {bound[o] for o in graph.outputs}
        if any(not g.is_used_only_by(name, *nodes) for name in made - results):
            return "an inner result is used elsewhere"
        if any(bound.get(i) in made for i in graph.inputs):
            return "an input of the pattern is one of its inner results"
        if not self.validate_attribute_mapping(g, nodes, graph.nodes):
            return "attributes differ"
        if not self.validate_mapping(g, nodes, graph.nodes):
            return "validate_mapping refuses"
        return ""

    def _result(
        self,
        g: GraphQueries,
        graph: GraphTemplate,
        bound: dict[str, str],
        nodes: list[NodeProto],
    ) -> MatchResult:
        params = self._params
        order = sorted(range(len(nodes)), key=lambda i: g.record(nodes[i]).order)

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            self._params = params
            return self._new_nodes(g, graph, bound, nodes)

        return MatchResult(self, [nodes[i] for i in order], apply)

    def apply(self, g: GraphQueries, *nodes: NodeProto) -> list[NodeProto]:
        """The nodes of :meth:`apply_pattern`; the match holds everything they need."""
        raise OptionError("The match of an EasyPatternOptimization holds its own apply function.")

    def _new_nodes(
        self,
        g: GraphQueries,
        graph: GraphTemplate,
        bound: dict[str, str],
        nodes: list[NodeProto],
    ) -> list[NodeProto]:
        new = self._apply_graph(g.main_opset)
        if len(new.outputs) != len(graph.outputs):
            raise OptionError(
                f"Pattern {self.name}: match_pattern gives {len(graph.outputs)} results, "
                f"apply_pattern {len(new.outputs)}."
            )
        for domain, version in new.opsets.items():
            g.graph.add_domain(domain, version)
        names = {i: bound[j] for i, j in zip(new.inputs, graph.inputs, strict=True)}
        new_nodes: list[NodeProto] = []
        for name, value in new.constants.items():
            names[name] = g.make_initializer("", value, source=self.name)
        for output, result in zip(new.outputs, graph.outputs, strict=True):
            if output in names:
                new_nodes.append(g.make_node("Identity", [names[output]], [bound[result]]))
            else:
                names[output] = bound[result]
        for node in new.nodes:
            names.update({o: g.unique_name(o) for o in node.output if o and o not in names})
            inputs = [names[i] if i else "" for i in node.input]
            while inputs and not inputs[-1]:
                inputs.pop()
            outputs = tuple(names[o] if o else "" for o in node.output)
            copy = copy_with_edges(node, tuple(inputs), outputs)
            copy.name = g.graph.unique_node_name(self.name)
            new_nodes.append(copy)
        return self.post_apply_pattern(g, nodes, new_nodes)
