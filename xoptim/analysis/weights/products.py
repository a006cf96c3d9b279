"""Reads a product written with several Mul and Div as a list of factors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto

from ...authoring.queries import GraphQueries
from ..constants import scalar_value

#: most nodes of one product
_MAX_PRODUCT = 6


@dataclass
class Factors:
    """A tree of Mul, and of Div by constants, whose inner results have no other use.

    :param names: factors that are not scalar constants
    :param divisors: divisors that are not scalar constants
    :param scalars: values of the scalar constants, and whether they divide
    :param nodes: nodes of the tree, in topological order
    """

    names: list[str] = field(default_factory=list)
    divisors: list[str] = field(default_factory=list)
    scalars: list[tuple[np.ndarray, bool]] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)

    def keeps_shape(self, rank: int | None) -> bool:
        """Whether the scalars do not change the shape of a factor of this rank."""
        return all(v.ndim == 0 or (rank is not None and v.ndim <= rank) for v, _ in self.scalars)


def product(g: GraphQueries, node: NodeProto) -> Factors:
    """Reads a product as a list of factors. Cost: O(number of factors), bounded.

    :param node: the last Mul or Div
    """
    answer = Factors()
    _collect(g, node, answer)
    answer.nodes.reverse()
    return answer


def _collect(g: GraphQueries, node: NodeProto, answer: Factors) -> None:
    answer.nodes.append(node)
    for i, name in enumerate(node.input):
        value = scalar_value(g, name)
        divides = node.op_type == "Div" and i == 1
        if value is not None:
            answer.scalars.append((value, divides))
        elif divides:
            answer.divisors.append(name)
        else:
            _collect_factor(g, name, answer)


def _collect_factor(g: GraphQueries, name: str, answer: Factors) -> None:
    inner = g.producer_or_none(name, "Mul", "Div")
    if (
        inner is None
        or len(answer.nodes) >= _MAX_PRODUCT
        or g.is_used_more_than_once(name)
        or g.is_output(name)
        or (inner.op_type == "Div" and scalar_value(g, inner.input[1]) is None)
    ):
        answer.names.append(name)
    else:
        _collect(g, inner, answer)
