"""Patterns given by two models, the one to match and its replacement."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder
from xbuilder.constants.evaluation import constant_node_value
from xbuilder.errors import OptionError
from xbuilder.operators.op_schemas import schema_of
from xbuilder.support.argument_types import check_type

from ..authoring.patterns import MatchResult
from ..authoring.queries import GraphQueries
from .easy_patterns import EasyPatternOptimization
from .pattern_sources import check_pattern_model, matchability_error
from .written_graphs import GraphTemplate, copy_graph, template_from_model


def changed_operator(model: ModelProto, opset: int) -> str:
    """The first operator of the main domain that takes other inputs or attributes in another opset.

    An operator onnx does not know is the same everywhere.

    :param model: the model, written for an opset of its own
    :param opset: the other opset
    :return: its type, an empty string if there is none
    """
    own: int = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), opset)
    types: set[str] = {n.op_type for n in model.graph.node if n.domain in ("", "ai.onnx")}
    for op_type in sorted(types):
        a, b = (_signature(op_type, version) for version in (own, opset))
        if a != b:
            return op_type
    return ""


def _signature(op_type: str, opset: int) -> tuple[set[str], int] | None:
    schema = schema_of(op_type, "", opset)
    return None if schema is None else (set(schema.attributes), len(schema.inputs))


def remove_constants_for_initializers(model: ModelProto, verbose: int = 0) -> ModelProto:
    """A copy of a model whose Constant nodes became initializers, subgraphs left alone.

    :param model: the model, which is not modified
    :param verbose: prints how many did
    """
    check_type("model", model, ModelProto)
    copy = ModelProto()
    copy.CopyFrom(model)
    kept = []
    for node in copy.graph.node:
        value = constant_node_value(node) if node.op_type == "Constant" else None
        if value is None:
            kept.append(node)
        else:
            copy.graph.initializer.append(onnx.numpy_helper.from_array(value, name=node.output[0]))
    if verbose:
        moved = len(copy.graph.node) - len(kept)
        print(f"[remove_constants_for_initializers] {moved} Constant nodes are initializers")
    nodes = [NodeProto.FromString(n.SerializeToString()) for n in kept]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


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
        reason = matchability_error(graph.node, *names)
        if reason:
            raise OptionError(f"The first model of a pattern cannot be looked for: {reason}.")
        self._changed: dict[int, str] = {}

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
        if opset not in self._changed:
            changed = (changed_operator(m, opset) for m in (self.match_model, self.apply_model))
            self._changed[opset] = next(filter(None, changed), "")
        if self._changed[opset]:
            reason = f"an operator of the models changed before opset {opset}"
            return self.none(node, f"{reason}: {self._changed[opset]}")
        return super().match(g, node, matched)

    @property
    def _depends_on_match(self) -> bool:
        return False

    def _check_match_graph(self, graph: GraphTemplate) -> None:
        """Does nothing, because the models were checked when they were given."""

    def _written(self, kind: str, opset: int) -> GraphTemplate:
        model = self.match_model if kind == "match" else self.apply_model
        return template_from_model(model, opset)

    def match_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the first model."""
        return copy_graph(g, self.match_model, inputs)

    def apply_pattern(self, g: GraphBuilder, *inputs: str) -> Any:
        """Writes the second model."""
        return copy_graph(g, self.apply_model, inputs)


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
    bases = (OnnxEasyPatternOptimization,)
    cls: type[OnnxEasyPatternOptimization] = type(name, bases, {"__doc__": doc})
    return cls(match_model, apply_model, verbose=verbose)
