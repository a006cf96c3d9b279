"""Recognises pieces of formulas: scalar constants whatever their precision, products, powers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto

from ..api.queries import GraphQueries
from .movement import producer

#: element types of floating-point tensors that operators on floats accept
FLOAT_TYPES = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)
#: most nodes of one product
_MAX_PRODUCT = 6
#: relative error of a constant typed with ten digits in a double precision model
_TYPED_DIGITS = 1e-9


def _bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounds to bfloat16, half to even, without a bfloat16 type."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def _precision(dtype: np.dtype) -> float:
    """Relative error a constant of a type may have."""
    if dtype == np.float64:
        return _TYPED_DIGITS
    if dtype == np.float32:
        return 2 * float(np.finfo(np.float32).eps)
    return float(np.finfo(np.float16).eps) if dtype == np.float16 else 2.0**-8


def same_numbers(found: np.ndarray, expected: np.ndarray | float) -> bool:
    """Tells if float constants are the expected ones, up to the precision of their type.

    Numbers that float16 represents exactly (0, 0.5, 1, 3) must be equal. Others may have been
    rounded: to the type of the constant, or to a narrower type before they were written in it.

    :param found: constants of a model
    :param expected: what they should be, same number of elements

    ::

        same_numbers(np.array(1.4140625, dtype=np.float32), 2**0.5)  # True
    """
    a = np.asarray(found).astype(np.float64).ravel()
    b = np.asarray(expected).astype(np.float64).ravel()
    if a.shape != b.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        half = b.astype(np.float16).astype(np.float64)
        close = np.abs(a - b) <= _precision(np.asarray(found).dtype) * np.abs(b)
        rounded = [half, b.astype(np.float32).astype(np.float64), _bfloat16(b)]
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    accepted = close | np.logical_or.reduce([a == r for r in rounded])
    return bool((same | (accepted & (half != b) & np.isfinite(a) & np.isfinite(b))).all())


def scalar_constant(g: GraphQueries, name: str, rank: int | None) -> np.ndarray | None:
    """Value of a constant of one element whose broadcasting does not change a shape.

    :param g: the optimizer
    :param name: the constant
    :param rank: rank of what it is combined with, None if unknown
    :return: None if it is not such a constant
    """
    value = _scalar_value(g, name)
    if value is None or (value.ndim and (rank is None or value.ndim > rank)):
        return None
    return value


def is_number(g: GraphQueries, name: str, value: float, rank: int | None) -> bool:
    """Tells if a result is a scalar constant with this value, see :func:`same_numbers`."""
    found = scalar_constant(g, name, rank)
    return found is not None and same_numbers(found, value)


def other_input(node: NodeProto, name: str) -> str | None:
    """The second operand of a binary node, None if *name* is not one of its operands."""
    a, b = node.input
    return b if a == name else (a if b == name else None)


def reader(g: GraphQueries, name: str, *op_types: str) -> NodeProto | None:
    """The only use of a result, None if there is another one or if it is another operator."""
    if g.is_used_more_than_once(name):
        return None
    node = g.next_node(name)
    return node if node is not None and node.op_type in op_types and not node.domain else None


@dataclass
class Product:
    """A tree of Mul, and of Div by constants, whose inner results have no other use.

    :param names: factors that are not scalar constants
    :param divisors: results it is divided by, same condition
    :param scalars: values of the scalar constants, and whether they divide
    :param nodes: nodes of the tree, in topological order
    """

    names: list[str] = field(default_factory=list)
    divisors: list[str] = field(default_factory=list)
    scalars: list[tuple[np.ndarray, bool]] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)

    def has_scalar(self, value: float) -> bool:
        """Tells if there is one scalar, multiplying by *value*, and no division by a result."""
        if len(self.scalars) != 1 or self.divisors:
            return False
        found, divides = self.scalars[0]
        return same_numbers(found, 1 / value if divides else value)

    def keeps_shape(self, rank: int | None) -> bool:
        """Tells if the scalars leave the shape of a factor of this rank as it is."""
        return all(v.ndim == 0 or (rank is not None and v.ndim <= rank) for v, _ in self.scalars)


def product(g: GraphQueries, node: NodeProto) -> Product:
    """Reads a product as a list of factors. Cost: O(number of factors), bounded.

    :param g: the optimizer
    :param node: the last Mul or Div
    """
    answer = Product()
    _collect(g, node, answer)
    answer.nodes.reverse()
    return answer


def product_of(g: GraphQueries, name: str) -> Product:
    """Same as :func:`product` for a result, empty if neither Mul nor Div gives it."""
    node = producer(g, name, "Mul", "Div")
    return Product() if node is None else product(g, node)


def _scalar_value(g: GraphQueries, name: str) -> np.ndarray | None:
    shape = g.get_constant_shape(name)
    one = shape is not None and all(d == 1 for d in shape)
    return g.get_computed_constant(name) if one else None


def _collect(g: GraphQueries, node: NodeProto, answer: Product) -> None:
    answer.nodes.append(node)
    for i, name in enumerate(node.input):
        value = _scalar_value(g, name)
        divides = node.op_type == "Div" and i == 1
        if value is not None:
            answer.scalars.append((value, divides))
        elif divides:
            answer.divisors.append(name)
        else:
            _collect_factor(g, name, answer)


def _collect_factor(g: GraphQueries, name: str, answer: Product) -> None:
    inner = producer(g, name, "Mul", "Div")
    if (
        inner is None
        or len(answer.nodes) >= _MAX_PRODUCT
        or g.is_used_more_than_once(name)
        or g.is_output(name)
        or (inner.op_type == "Div" and _scalar_value(g, inner.input[1]) is None)
    ):
        answer.names.append(name)
    else:
        _collect(g, inner, answer)


def only_inner_uses(g: GraphQueries, nodes: list[NodeProto], last: NodeProto) -> bool:
    """Tells if these nodes are the only ones to read their results, but for the last node."""
    return all(g.is_used_only_by(o, *nodes) for n in nodes if n is not last for o in n.output if o)
