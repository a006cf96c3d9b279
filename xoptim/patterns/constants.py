"""Constant nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.constants.evaluation import constant_node_value

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

#: forms of a Constant that are dense tensors of numbers
DENSE = frozenset({"value", "value_int", "value_ints", "value_float", "value_floats"})


@register_pattern("default", roots=("Constant",))
class ConstantToInitializerPattern(PatternOptimization):
    """Constant(value) -> initializer, Identity(initializer).

    1. `value` is a tensor of numbers or booleans: it is not copied.
    2. `value_int`, `value_ints`, `value_float`, `value_floats`.

    Refused: strings, sparse tensors, references to an attribute of a function, and the body of a
    local function, where there is no initializer. The initializer gets a new name, no subgraph can
    hide it.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.graph.scope.is_function:
            return self.none(node, "a function has no initializer")
        if len(node.attribute) != 1 or node.attribute[0].name not in DENSE:
            return self.none(node, "the value is not a dense tensor of numbers")
        att = node.attribute[0]
        if att.ref_attr_name:
            return self.none(node, "the value belongs to the function")
        if att.name == "value" and att.t.data_type == TensorProto.STRING:
            return self.none(node, "the value holds strings")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        att = node.attribute[0]
        value: TensorProto | np.ndarray | None = att.t
        if att.name != "value":
            value = constant_node_value(node)
        name = g.make_initializer(node.output[0], value, source=f"{self.name}.apply")
        return [g.make_node("Identity", [name], [node.output[0]])]
