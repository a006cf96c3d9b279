"""Windows that compute polynomials of their inputs: equal at random integers is nearly a proof.

Two different polynomials of degree d take the same value at a random point of S^n with a
probability of at most d/|S| (Schwartz and Zippel). The arithmetic is exact: doubles hold the
integers below 2^53.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.attributes import find_attribute

#: bits of the integers a double holds
_BITS = 52
#: operators that move or choose elements, wherever they are
_MOVES = frozenset(
    {"Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements"}
    | {"GatherND", "Identity", "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split"}
    | {"Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
#: operators whose result has the degree of their input: they move elements, or add them
_KEEPS = _MOVES | {"Add", "Neg", "Pad", "ReduceSum", "Sub", "Sum", "Trilu"}
#: operators that multiply their first two inputs, and add a third one
_MULTIPLIES = frozenset({"Mul", "MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"})
_FUSED = frozenset({"FusedMatMul"})
#: operators on shapes and integers
_OF_INTEGERS = frozenset({"Shape", "Size", "Constant", "ConstantOfShape"})


def degree_of(
    nodes: Iterable[NodeProto], inputs: Iterable[str], results: Iterable[str]
) -> int | None:
    """The degree of the results of some nodes as polynomials of their inputs.

    :param nodes: nodes in topological order
    :param inputs: inputs that are floats, the other ones count as constants
    :param results: names of results
    :return: the largest degree, None if one of the results is not a polynomial
    """
    degrees: dict[str, int] = dict.fromkeys(inputs, 1)
    for node in nodes:
        degree = _degree(node, [degrees.get(name, 0) for name in node.input])
        if degree is None:
            return None
        degrees.update(dict.fromkeys(node.output, degree))
    return max((degrees.get(name, 0) for name in results), default=0)


def only_moves(nodes: Iterable[NodeProto]) -> bool:
    """Whether every result of some nodes is a copy of elements of their inputs, or a shape."""
    return all(not n.domain and n.op_type in _MOVES | _OF_INTEGERS for n in nodes)


def moves_inputs(nodes: Iterable[NodeProto]) -> bool:
    """Whether nodes that move elements only move those of their inputs.

    :param nodes: nodes, see :func:`only_moves`
    """
    return not any(n.op_type in ("Constant", "ConstantOfShape") for n in nodes)


def _degree(node: NodeProto, degrees: list[int]) -> int | None:
    op_type = node.op_type
    if node.domain == "com.microsoft" and op_type in _FUSED:
        return sum(degrees[:2]) if _is_dyadic(node, "alpha") else None
    if node.domain or op_type in _OF_INTEGERS:
        return 0 if op_type in _OF_INTEGERS and not node.domain else None
    if op_type in _KEEPS:
        return max(degrees, default=0)
    if op_type in _MULTIPLIES:
        if not all(_is_dyadic(node, name) for name in ("alpha", "beta")):
            return None
        if op_type == "Einsum":
            return sum(degrees)
        return max([sum(degrees[:2]), *degrees[2:]])
    if op_type == "Where":
        return None if degrees[0] else max(degrees[1:])
    return None if any(degrees) else 0


def _is_dyadic(node: NodeProto, name: str) -> bool:
    """Whether a factor, 1 by default, is a multiple of 2^-10."""
    attribute = find_attribute(node, name)
    return attribute is None or attribute.f * 1024 == round(attribute.f * 1024)


def constants_bits(constants: Mapping[str, np.ndarray]) -> float | None:
    """The bits the largest constant adds to a product, None if one is not a multiple of 2^-10."""
    most = 1.0
    for value in constants.values():
        if value.dtype.kind not in "iuf" or not value.size:
            continue
        wide = value.astype(np.float64)
        scaled = wide * 1024
        if not np.isfinite(wide).all() or (scaled != np.round(scaled)).any():
            return None
        most = max(most, float(np.abs(wide).max()))
        if value.dtype.kind not in "iu" and (wide != np.round(wide)).any():
            most *= 1024
    return math.log2(most)


def bits_of(degree: int, terms: int, constant: float) -> int:
    """The bits of the integers to draw, so that no sum is rounded; below 2, it is not worth it.

    :param degree: degree of the results
    :param terms: bound of the number of products added
    :param constant: bits of the constants
    """
    room = _BITS - math.log2(max(terms, 1)) - constant * max(degree, 1)
    return min(40, int(room // max(degree, 1)))


def chance_of_missing(degree: int, bits: int, draws: int) -> float:
    """The bound of the probability that two different polynomials agree on all the draws.

    :param degree: degree of the polynomials
    :param bits: integers are below two to this power, in magnitude
    :param draws: number of draws
    """
    return float(min(1.0, degree / 2.0 ** (bits + 1)) ** draws)
