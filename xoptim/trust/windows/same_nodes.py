"""Windows whose sides are the same nodes: no session is needed to compare them."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from xbuilder.nodes.functions import function_key
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.domains import MICROSOFT, main_domain
from xbuilder.operators.op_traits import is_random

from .differences import difference
from .window import Window, constant_value, producer_of

#: pairs of results that are compared
_MOST = 100
#: the domains whose operators always give the same results, but for those that are random
_DOMAINS = frozenset({"", "ai.onnx.ml", MICROSOFT})
#: random when they train, in some opsets whatever they read
_DROPOUTS = frozenset({"BiasDropout", "BitmaskBiasDropout", "BitmaskDropout", "Dropout"})


def has_same_nodes(window: Window) -> bool:
    """Whether both sides of a window give their results with the same operators, the same
    attributes, the same results of the graph and equal constants, once copies are left out: they
    are equal for every size and every value.

    The nodes before the window are followed as far as both sides need them.
    """
    sides = _Sides(window)
    return bool(window.results) and all(sides.are_same(name, name) for name in window.results)


class _Sides:
    """The results of both sides of a window, compared by the nodes that give them."""

    def __init__(self, window: Window):
        self._graph, self._constants = window.graph, window.constants
        self._made = [{o: n for n in side for o in n.output if o} for side in window.sides()]
        self._known: dict[tuple[str, str], bool] = {}

    def are_same(self, first: str, second: str) -> bool:
        """Whether a result of the first side is one of the second. False if it is not known."""
        pair = self._copied(0, first), self._copied(1, second)
        if pair not in self._known:
            self._known[pair] = False  # it depends on itself, or is too far
            if len(self._known) <= _MOST:
                self._known[pair] = self._compare(*pair)
        return self._known[pair]

    def _compare(self, first: str, second: str) -> bool:
        if first == second and not any(first in made for made in self._made):
            return True
        if not first or not second:
            return False
        a, b = self._node(0, first), self._node(1, second)
        x, y = self._value(first, a), self._value(second, b)
        if x is not None and y is not None:
            found = difference(first, x, y, 0.0)
            return not found and not found.signs
        if a is None or b is None or not self._is_same_operator(a, b):
            return False
        if list(a.output).index(first) != list(b.output).index(second):
            return False
        return all(self.are_same(i, j) for i, j in zip(a.input, b.input, strict=True))

    def _is_same_operator(self, a: NodeProto, b: NodeProto) -> bool:
        """Whether two nodes give the same results when they read the same."""
        if (a.op_type, a.domain, len(a.input)) != (b.op_type, b.domain, len(b.input)):
            return False
        if main_domain(a.domain) not in _DOMAINS or function_key(a) in self._graph.functions:
            return False
        if a.op_type in _DROPOUTS or is_random([a]) or any(subgraphs_of(a)):
            return False
        outputs = [[bool(o) for o in n.output] for n in (a, b)]
        return outputs[0] == outputs[1] and _attributes(a) == _attributes(b)

    def _copied(self, side: int, name: str) -> str:
        """The result that a chain of Identity copies, the result itself if it is no copy."""
        for _ in range(_MOST):
            node = self._node(side, name)
            if node is None or node.op_type != "Identity" or main_domain(node.domain):
                break
            name = node.input[0]
        return name

    def _node(self, side: int, name: str) -> NodeProto | None:
        """The node that gives a result of a side."""
        return self._made[side].get(name) or producer_of(self._graph, name)

    def _value(self, name: str, node: NodeProto | None) -> np.ndarray | None:
        """The value of a constant, None for another result."""
        known = None if any(name in made for made in self._made) else self._constants.get(name)
        if known is not None or node is None:
            return constant_value(self._graph, name) if known is None else known
        if node.op_type != "Constant" or [a.name for a in node.attribute] != ["value"]:
            return None
        attribute = node.attribute[0]
        if attribute.ref_attr_name or attribute.t.data_location == TensorProto.EXTERNAL:
            return None
        return numpy_helper.to_array(attribute.t)


def _attributes(node: NodeProto) -> dict[str, bytes]:
    """The content of the attributes of a node, by name."""
    return {a.name: a.SerializeToString(deterministic=True) for a in node.attribute}
