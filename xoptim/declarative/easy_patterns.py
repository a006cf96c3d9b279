"""Patterns written as the graph to find and the graph to put instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.nodes.protos import (
    attribute_value,
    attributes_of,
    copy_with_edges,
    has_reference,
    tensor_array,
)
from xbuilder.opsets import newest_opset

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from .pattern_sources import (
    captured_by,
    check_pattern_model,
    check_results,
    check_same_inputs,
    input_types,
    why_not_matchable,
)
from .unification import Binding, PatternGraph, Reasons, is_convex, root_key, unify


def _write(function: Callable[..., Any], opset: int, what: str) -> PatternGraph:
    """Runs `match_pattern` or `apply_pattern` on an empty builder, returns the graph it wrote."""
    types = input_types(function, what)
    builder = GraphBuilder(opset, as_function=True)
    builder.infer_nodes = False
    for name in types:
        builder.make_tensor_input(name)
    outputs = check_results(function(builder, *types), what)
    builder.make_tensor_output(outputs, allow_untyped_output=True)
    constants = {n: builder.constants.value(n) for n in builder.constants.initializers}
    graph = PatternGraph(
        builder.nodes, list(types), outputs, constants, types, dict(builder.opsets)
    )
    reason = captured_by(graph.nodes)
    if reason:
        raise OptionError(f"The graph {what} writes cannot be used: {reason}.")
    return graph


class EasyPatternOptimization(PatternOptimization):
    """A pattern given by two graphs.

    A subclass writes :meth:`match_pattern` and :meth:`apply_pattern`, with the same results. What
    is not an input of `match_pattern` is matched exactly: operators, constants, attributes; both
    orders of the inputs of a commutative operator are tried; a missing optional input stays
    missing. A constant matches a constant of its type, up to the precision of this type: a pattern
    written with float32 constants (a python float is one) leaves float16 or double models alone,
    those of `apply_pattern` would not have the type of the model. An argument of `match_pattern`
    may be annotated with the element type it must have, `x: TensorProto.FLOAT`; any other
    annotation than `str` is refused. It is needed when only `apply_pattern` has constants.

    ::

        class AddAddToAddMul(EasyPatternOptimization):
            def match_pattern(self, g, x: TensorProto.FLOAT):
                return g.op.Add(x, x)

            def apply_pattern(self, g, x):
                return g.op.Mul(x, np.array([2], dtype=np.float32))

            def validate_mapping(self, g, deleted_nodes, pattern_nodes=None):
                return g.has_rank(deleted_nodes[0].input[0])  # a scalar would get a dimension
    """

    def __init__(self, verbose: int = 0, priority: int | None = None, min_opset: int | None = None):
        super().__init__(verbose, priority, min_opset)
        self._graphs: dict[tuple[str, int], PatternGraph] = {}
        self._params: dict[str, Any] = {}

    # -- to write

    def match_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the graph to find, returns the name(s) of its results."""
        raise NotImplementedError(f"{type(self).__name__} must define match_pattern.")

    def apply_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the graph to put instead, with the same inputs and results."""
        raise NotImplementedError(f"{type(self).__name__} must define apply_pattern.")

    def validate_mapping(
        self,
        g: GraphQueries,
        deleted_nodes: list[NodeProto],
        pattern_nodes: list[NodeProto] | None = None,
    ) -> bool:
        """Accepts or refuses what was found.

        :param g: the optimizer
        :param deleted_nodes: nodes of the graph, in the order of the pattern
        :param pattern_nodes: nodes of the pattern
        """
        return True

    def validate_attribute_mapping(
        self, g: GraphQueries, deleted_nodes: list[NodeProto], pattern_nodes: list[NodeProto]
    ) -> bool:
        """Compares attributes: they must be the same, a missing one has its default value."""
        return all(same_attributes(a, b) for a, b in zip(deleted_nodes, pattern_nodes, strict=True))

    def post_apply_pattern(
        self, g: GraphQueries, matched_nodes: list[NodeProto], nodes: list[NodeProto]
    ) -> list[NodeProto]:
        """Changes the new nodes before they are added, returns the ones to add."""
        return nodes

    # -- parameters found while validating

    def add_validate_param(self, name: str, value: Any) -> None:
        """Keeps a value found by :meth:`validate_mapping` for `apply_pattern`."""
        self._params[name] = value

    def get_validate_param(self, name: str) -> Any:
        """Returns a value kept by :meth:`add_validate_param`."""
        if name not in self._params:
            raise OptionError(f"Pattern {self.name} kept no value {name!r}: {list(self._params)}.")
        return self._params[name]

    # -- what the engine uses

    @property
    def roots(self) -> tuple[str, ...]:  # type: ignore[override]
        """The operator of the node giving the first result."""
        node = self._graph("match", max(self.min_opset, newest_opset() - 1)).root()
        return (root_key(node),)

    def _graph(self, kind: str, opset: int) -> PatternGraph:
        key = kind, opset
        if key not in self._graphs:
            graph = self._written(kind, opset)
            if kind == "match":
                self._check_match_graph(graph)
            self._graphs[key] = graph
        return self._graphs[key]

    def _apply_graph(self, opset: int) -> PatternGraph:
        """What `apply_pattern` writes: it may depend on what was found while validating."""
        return self._written("apply", opset)

    def _written(self, kind: str, opset: int) -> PatternGraph:
        return _write(self._method(kind), opset, f"{type(self).__name__}.{kind}_pattern")

    def _method(self, kind: str) -> Callable[..., Any]:
        name = f"{kind}_pattern"
        if getattr(type(self), name) is getattr(EasyPatternOptimization, name):
            raise NotImplementedError(f"{type(self).__name__} must define {name}.")
        return getattr(self, name)

    def _check_match_graph(self, graph: PatternGraph) -> None:
        """Checks what `match_pattern` wrote can be found, and `apply_pattern` has its inputs."""
        name = type(self).__name__
        reason = why_not_matchable(graph.nodes, graph.inputs, graph.outputs)
        if reason:
            raise OptionError(f"The graph of {name}.match_pattern cannot be looked for: {reason}.")
        applied = input_types(self._method("apply"), f"{name}.apply_pattern")
        check_same_inputs(graph.types, applied, self.name)

    def display_pattern(self, opset: int | None = None) -> str:
        """Both graphs as text."""
        from xbuilder.protos.pretty import pretty_node

        opset = opset or max(self.min_opset, newest_opset() - 1)
        rows = []
        for kind in ("match", "apply"):
            try:
                graph = self._graph(kind, opset)
            except OptionError:
                if kind == "match":
                    raise
                rows.append("apply depends on what validate_mapping keeps")
                continue
            rows.append(f"{kind}({', '.join(graph.inputs)}) -> {', '.join(graph.outputs)}")
            rows.extend(f"  {name} = {value}" for name, value in graph.constants.items())
            rows.extend(f"  {pretty_node(n)}" for n in graph.nodes)
        return "\n".join(rows)

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks for the graph of :meth:`match_pattern` ending at a node."""
        graph = self._graph("match", g.main_opset)
        reasons = Reasons()
        for binding in unify(g, graph, node, reasons):
            records = [binding.nodes[i] for i in range(len(graph.nodes))]
            nodes = [g.store.proto(r) for r in records]
            self._params = {}
            reason = self._refusal(g, graph, binding, nodes)
            if not reason:
                return self._result(g, graph, binding, nodes)
            reasons.say(len(nodes) + 1, "{}", reason)
        return self.none(node, None, reasons.best)

    def _refusal(
        self, g: GraphQueries, graph: PatternGraph, binding: Binding, nodes: list[NodeProto]
    ) -> str:
        """Why what was found is not a match, an empty string if it is one."""
        made = {binding.names[o] for n in graph.nodes for o in n.output if o in binding.names}
        results = {binding.names[o] for o in graph.outputs}
        if any(not g.is_used_only_by(name, *nodes) for name in made - results):
            return "an inner result is used elsewhere"
        if any(binding.names.get(i) in made for i in graph.inputs):
            return "an input of the pattern is one of its inner results"
        if len(results) > 1 and not is_convex(g, binding.nodes):
            return "a result is needed to compute an input"
        if not self.validate_attribute_mapping(g, nodes, graph.nodes):
            return "attributes differ"
        if not self.validate_mapping(g, nodes, graph.nodes):
            return "validate_mapping refuses"
        return ""

    def _result(
        self, g: GraphQueries, graph: PatternGraph, binding: Binding, nodes: list[NodeProto]
    ) -> MatchResult:
        params = self._params
        order = sorted(range(len(nodes)), key=lambda i: g.get_position(nodes[i]))

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            self._params = params
            return self._new_nodes(g, graph, binding, nodes)

        return MatchResult(self, [nodes[i] for i in order], apply)

    def apply(self, g: GraphQueries, *nodes: NodeProto) -> list[NodeProto]:
        """The nodes of :meth:`apply_pattern`; a match holds everything that is needed."""
        raise OptionError("The match of an EasyPatternOptimization holds its own apply function.")

    def _new_nodes(
        self, g: GraphQueries, graph: PatternGraph, binding: Binding, nodes: list[NodeProto]
    ) -> list[NodeProto]:
        new = self._apply_graph(g.main_opset)
        if len(new.outputs) != len(graph.outputs):
            raise OptionError(
                f"Pattern {self.name}: match_pattern gives {len(graph.outputs)} results, "
                f"apply_pattern {len(new.outputs)}."
            )
        for domain, version in new.opsets.items():
            g.graph.add_domain(domain, version)
        names = {i: binding.names[j] for i, j in zip(new.inputs, graph.inputs, strict=True)}
        direct = [(o, p) for o, p in zip(new.outputs, graph.outputs, strict=True)]
        rows: list[NodeProto] = []
        for name, value in new.constants.items():
            names[name] = g.make_initializer("", value, source=self.name)
        for output, result in direct:
            if output in names:
                rows.append(g.make_node("Identity", [names[output]], [binding.names[result]]))
            else:
                names[output] = binding.names[result]
        for node in new.nodes:
            for o in node.output:
                if o and o not in names:
                    names[o] = g.unique_name(o)
            inputs = tuple(names[i] if i else "" for i in node.input)
            copy = copy_with_edges(node, inputs, tuple(names[o] if o else "" for o in node.output))
            copy.name = g.graph.unique_node_name(self.name)
            rows.append(copy)
        return self.post_apply_pattern(g, nodes, rows)


def same_attributes(node: NodeProto, pattern: NodeProto) -> bool:
    """Tells if two nodes of one type have the same attributes, defaults included.

    An attribute that refers to the one of a function has no known value: they are not the same.
    """
    if has_reference(node) or has_reference(pattern):
        return False
    a, b = _with_defaults(node), _with_defaults(pattern)
    return a.keys() == b.keys() and all(_same_value(a[k], b[k]) for k in a)


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, type(b)) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.float32(a) == np.float32(b))
    return bool(a == b)


def _with_defaults(node: NodeProto) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    if onnx.defs.has(node.op_type, node.domain):
        for name, att in onnx.defs.get_schema(node.op_type, node.domain).attributes.items():
            if att.default_value.type:
                rows[name] = attribute_value(att.default_value)
    rows.update(attributes_of(node))
    return rows


def same_signatures(model: ModelProto, opset: int) -> bool:
    """Tells if the operators of the main domain take the same inputs and attributes in an opset.

    :param model: the model, written for an opset of its own
    :param opset: the other opset
    """
    own = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), opset)
    for op_type in {n.op_type for n in model.graph.node if n.domain in ("", "ai.onnx")}:
        try:
            a, b = (onnx.defs.get_schema(op_type, v, "") for v in (own, opset))
        except onnx.defs.SchemaError:
            return False
        if set(a.attributes) != set(b.attributes) or len(a.inputs) != len(b.inputs):
            return False
    return True


def remove_constants_for_initializers(model: ModelProto) -> ModelProto:
    """Returns a copy of a model whose Constant nodes became initializers, subgraphs left alone."""
    from xbuilder.constants.evaluation import constant_node_value

    copy = ModelProto()
    copy.CopyFrom(model)
    kept = []
    for node in copy.graph.node:
        value = constant_node_value(node) if node.op_type == "Constant" else None
        if value is None:
            kept.append(node)
        else:
            copy.graph.initializer.append(onnx.numpy_helper.from_array(value, name=node.output[0]))
    nodes = [NodeProto.FromString(n.SerializeToString()) for n in kept]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _copy_graph(g: GraphBuilder, model: ModelProto, inputs: Sequence[str]) -> Any:
    """Adds the nodes of a model to a builder, returns the names of its results."""
    names = dict(zip((i.name for i in model.graph.input), inputs, strict=True))
    for opset in model.opset_import:
        if opset.domain:
            g.add_domain(opset.domain, opset.version)
    for init in model.graph.initializer:
        names[init.name] = g.make_initializer("", tensor_array(init))
    for node in model.graph.node:
        for o in node.output:
            if o:
                names[o] = g.unique_name(o)
        edges = tuple(names[i] if i else "" for i in node.input)
        g.add_node(copy_with_edges(node, edges, tuple(names[o] if o else "" for o in node.output)))
    return [names[o.name] for o in model.graph.output]


class OnnxEasyPatternOptimization(EasyPatternOptimization):
    """A pattern given by two models: the first one is replaced by the second one.

    :param match_model: the graph to find; initializers must have the same value in both graphs
    :param apply_model: the graph to put instead, same inputs in the same order, same results
    :param verbose: verbosity
    :raises OptionError: one of them is no model, is empty or not valid, or they do not have the
        same number of inputs or outputs

    Types of the inputs and of the constants are compared with those of the graph, shapes are not.
    """

    def __init__(self, match_model: ModelProto, apply_model: ModelProto, verbose: int = 0):
        super().__init__(verbose)
        check_pattern_model(match_model, "first model")
        check_pattern_model(apply_model, "second model")
        for kind in ("input", "output"):
            a, b = (len(getattr(m.graph, kind)) for m in (match_model, apply_model))
            if a != b:
                raise OptionError(f"The two models must have as many {kind}s, got {a} and {b}.")
        self.match_model = remove_constants_for_initializers(match_model)
        self.apply_model = remove_constants_for_initializers(apply_model)
        graph = self.match_model.graph
        names = [[i.name for i in values] for values in (graph.input, graph.output)]
        reason = why_not_matchable(graph.node, *names)
        if reason:
            raise OptionError(f"The first model of a pattern cannot be looked for: {reason}.")
        self._same_meaning: dict[int, bool] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OnnxEasyPatternOptimization):
            return False
        return self.match_model == other.match_model and self.apply_model == other.apply_model

    def __hash__(self) -> int:
        return hash((type(self), self.match_model.SerializeToString(deterministic=True)))

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks for the first model, if its operators mean the same in the opset of the graph."""
        opset = g.main_opset
        if opset not in self._same_meaning:
            models = self.match_model, self.apply_model
            self._same_meaning[opset] = all(same_signatures(m, opset) for m in models)
        if not self._same_meaning[opset]:
            return self.none(node, f"an operator of the models changed before opset {opset}")
        return super().match(g, node, matched)

    def _graph(self, kind: str, opset: int) -> PatternGraph:
        key = kind, opset
        if key not in self._graphs:
            model = self.match_model if kind == "match" else self.apply_model
            self._graphs[key] = self._from_model(model, opset)
        return self._graphs[key]

    def _apply_graph(self, opset: int) -> PatternGraph:
        return self._graph("apply", opset)

    def _from_model(self, model: ModelProto, opset: int) -> PatternGraph:
        names = [i.name for i in model.graph.input]
        builder = GraphBuilder(opset, as_function=True)
        builder.infer_nodes = False
        for name in names:
            builder.make_tensor_input(name)
        outputs = _copy_graph(builder, model, names)
        types = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
        constants = {n: builder.constants.value(n) for n in builder.constants.initializers}
        return PatternGraph(builder.nodes, names, outputs, constants, types, dict(builder.opsets))

    def match_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """The first model."""
        return _copy_graph(g, self.match_model, inputs)

    def apply_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """The second model."""
        return _copy_graph(g, self.apply_model, inputs)


def make_pattern_from_onnx(
    name: str, match_model: ModelProto, apply_model: ModelProto, verbose: int = 0
) -> OnnxEasyPatternOptimization:
    """Makes a pattern, with a class of its own, from two models.

    :param name: name of the class
    :param match_model: the graph to find
    :param apply_model: the graph to put instead
    :param verbose: verbosity
    :return: an instance
    :raises OptionError: the name is empty, or see :class:`OnnxEasyPatternOptimization`

    ::

        pattern = make_pattern_from_onnx("MulAddToFused", onnx.load("a.onnx"), onnx.load("b.onnx"))
    """
    if not isinstance(name, str) or not name:
        raise OptionError(f"A pattern needs a name, not {name!r}.")
    doc = f"Pattern {name}, from two models."
    cls = type(name, (OnnxEasyPatternOptimization,), {"__doc__": doc})
    return cls(match_model, apply_model, verbose=verbose)


__all__ = [
    "EasyPatternOptimization",
    "OnnxEasyPatternOptimization",
    "make_pattern_from_onnx",
    "remove_constants_for_initializers",
]
