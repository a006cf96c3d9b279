"""Gelu written with Tanh or with Erf."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.arguments import other_input
from ..reading.constants import is_number
from ..reading.neighbours import only_inner_uses, producer
from ..reading.products import Product, product, product_of
from ..reading.shapes import known_rank

_SLOPE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_INVERSE_ROOT = 1 / math.sqrt(2)


@dataclass
class GeluFormula:
    """What was recognised.

    :param x: the operand
    :param nodes: nodes of the formula, in topological order
    """

    x: str
    nodes: list[NodeProto]


def _one_plus(g: GraphQueries, name: str, rank: int | None) -> tuple[NodeProto, str] | None:
    """Reads `1 + a`: the node and `a`."""
    add = producer(g, name, "Add")
    if add is None:
        return None
    for one, other in (tuple(add.input), tuple(add.input)[::-1]):
        if is_number(g, one, 1, rank):
            return add, other
    return None


def _is_power(
    g: GraphQueries, names: list[str], x: str, degree: int, nodes: list[NodeProto]
) -> bool:
    """Tells if factors multiply to `x ** degree`; adds the Pow nodes to *nodes*."""
    rank = known_rank(g, x)
    total = 0
    for name in names:
        if name == x:
            total += 1
            continue
        power = producer(g, name, "Pow")
        exponents = (2, 3) if power is not None and power.input[0] == x else ()
        found = [e for e in exponents if is_number(g, power.input[1], e, rank)]
        if not found:
            return False
        nodes.append(power)
        total += found[0]
    return total == degree


def _cubic_part(
    g: GraphQueries, name: str, x: str, degree: int, products: list[Product]
) -> list[NodeProto] | None:
    """Nodes of `0.044715 * x ** degree`, None if it is not that."""
    part = product_of(g, name)
    nodes: list[NodeProto] = []
    if not part.has_scalar(_CUBIC) or not _is_power(g, part.names, x, degree, nodes):
        return None
    products.append(part)
    return [*nodes, *part.nodes]


def _tanh_argument(
    g: GraphQueries, name: str, x: str, products: list[Product]
) -> list[NodeProto] | None:
    """Nodes of `sqrt(2/pi) * (x + 0.044715 * x**3)`, x may be a factor."""
    outer = product_of(g, name)
    if not outer.has_scalar(_SLOPE):
        return None
    products.append(outer)
    names = list(outer.names)
    if len(names) == 2 and x in names:
        names.remove(x)
        plus = _one_plus(g, names[0], known_rank(g, x))
        degree = 2
    elif len(names) == 1:
        add = producer(g, names[0], "Add")
        other = None if add is None else other_input(add, x)
        plus = None if other is None else (add, other)
        degree = 3
    else:
        return None
    inner = None if plus is None else _cubic_part(g, plus[1], x, degree, products)
    return None if inner is None or plus is None else [*inner, plus[0], *outer.nodes]


def _erf_argument(
    g: GraphQueries, name: str, x: str, products: list[Product]
) -> list[NodeProto] | None:
    """Nodes of `x / sqrt(2)`."""
    part = product_of(g, name)
    if part.names != [x] or not part.has_scalar(_INVERSE_ROOT):
        return None
    products.append(part)
    return part.nodes


_ARGUMENTS = {"Tanh": _tanh_argument, "Erf": _erf_argument}


def find_gelu(g: GraphQueries, node: NodeProto, op_type: str) -> GeluFormula | str:
    """Recognises `0.5 * x * (1 + f(x))`, factors in any order.

    :param g: the optimizer
    :param node: the last Mul
    :param op_type: `Tanh` or `Erf`
    :return: the formula, or why it is not one
    """
    outer = product(g, node)
    if len(outer.names) != 2:
        return "the product does not have two factors"
    if not outer.has_scalar(0.5):
        return "the factor 0.5 is missing"
    for x, name in (outer.names, outer.names[::-1]):
        rank = known_rank(g, x)
        plus = _one_plus(g, name, rank)
        function = None if plus is None else producer(g, plus[1], op_type)
        if plus is None or function is None:
            continue
        products = [outer]
        inner = _ARGUMENTS[op_type](g, function.input[0], x, products)
        if inner is None:
            return f"the argument of {op_type} is not the one of Gelu"
        if not all(p.keeps_shape(rank) for p in products):
            return "a constant may change the shape"
        nodes = [*inner, function, plus[0], *outer.nodes]
        if not only_inner_uses(g, nodes, node):
            return "an inner result is used elsewhere"
        return GeluFormula(x, nodes)
    return f"no factor is 1 + {op_type}"


@register_pattern("default", roots=("Mul",), priority=0, min_opset=20, precision="rounding")
class GeluPattern(PatternOptimization):
    """0.5 * x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) -> Gelu(x, approximate=tanh).

    1. x^3 is Pow(x, 3), x * x * x or Pow(x, 2) * x;
    2. the cubic term may be x * (1 + 0.044715 * x^2);
    3. constants may have been rounded to float16, factors come in any order.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = find_gelu(g, node, "Tanh")
        if isinstance(found, str):
            return self.none(node, found)

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            return [g.make_node("Gelu", [found.x], node.output[:], approximate="tanh")]

        return MatchResult(self, found.nodes, apply, insert_at=node)
